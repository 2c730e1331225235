#!/usr/bin/env python3
"""Where ONNX Runtime spends its time on a benchmark model, by operator and by shape.

    python peer_profile.py --models CACHE_FOLDER MODEL [--batch 1] [--threads 1] [--top 12]

Tells kernel authors what they measure themselves against. The operators are those after ONNX
Runtime's own fusions, which is also how to see what it fuses.
"""

import argparse
import collections
import pathlib
import sys

import engines

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "models"))

import make_models  # noqa: E402

RUNS = 10


def shapes_of(event):
    """The shapes of a node's inputs, as one string."""
    shapes = event["args"].get("input_type_shape", [])
    return " ".join("x".join(map(str, next(iter(shape.values())))) or "scalar" for shape in shapes)


def tabulate(title, totals, whole, top):
    print(f"{title:>70}  {'ms':>9}  {'%':>5}  {'nodes':>5}")
    for key, (microseconds, calls) in totals.most_common(top):
        print(f"{key[-70:]:>70}  {microseconds / RUNS / 1e3:9.3f}  "
              f"{100 * microseconds / whole:5.1f}  {calls // RUNS:5d}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=list(make_models.MODELS))
    parser.add_argument("--models", type=pathlib.Path, required=True, help="cache folder")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--top", type=int, default=12, help="rows of the table by shape")
    arguments = parser.parse_args()
    make_models.write(arguments.models, arguments.model)
    inputs = make_models.MODELS[arguments.model][1](arguments.batch)
    session = engines.ProfiledOnnxRuntimeSession(
        str(make_models.model_path(arguments.models, arguments.model)), arguments.threads
    )
    session.feed(inputs)
    for _ in range(RUNS + 2):
        session.run()
    events = [e for e in session.end() if e["cat"] == "Node" and e["name"].endswith("_kernel_time")]
    nodes = len(events) // (RUNS + 2)
    events = events[2 * nodes :]  # the first two runs warm up

    by_operator = collections.Counter()
    by_shape = collections.Counter()
    for totals, name in ((by_operator, lambda e: e["args"]["op_name"]),
                         (by_shape, lambda e: f"{e['args']['op_name']} {shapes_of(e)}")):
        for event in events:
            microseconds, calls = totals[name(event)] or (0, 0)
            totals[name(event)] = (microseconds + event["dur"], calls + 1)
    whole = sum(event["dur"] for event in events)
    print(f"{arguments.model} b{arguments.batch} t{arguments.threads}: "
          f"{whole / RUNS / 1e3:.3f} ms in {nodes} nodes, mean of {RUNS} runs\n")
    tabulate("operator", by_operator, whole, None)
    tabulate("operator and input shapes", by_shape, whole, arguments.top)
    return 0


if __name__ == "__main__":
    sys.exit(main())
