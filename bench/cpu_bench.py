#!/usr/bin/env python3
"""Time Samebit against ONNX Runtime on this machine's CPU: the script behind `make bench-cpu`.

    python cpu_bench.py --library libsamebit.so --models CACHE_FOLDER

Both engines run in this one process and take turns, so that a slow minute of the machine is slow
for both. A line a case:

    bench cpu/MODEL/bBATCH/tTHREADS samebit=MS peer=MS unit=ms ratio=PEER/SAMEBIT

Times are medians; a ratio above 1 says that Samebit is faster. Load times and peak memory are taken
in processes of their own. The outputs of the two engines are compared, and Samebit's outputs at
different numbers of threads must have the same bits. Exit status 1 when an output is wrong or
`--require` is not met.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

import numpy

import engines

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "models"))

import make_models  # noqa: E402

# Two correct f32 implementations of fifty layers differ by rounding alone: 1e-5 of the largest
# output is usual. A wrong kernel is off by far more than this.
LARGEST_DIFFERENCE = 1e-3

# Two threads on two cores meet at every layer, so another busy process makes them several times
# slower, and not both engines alike. A round in which others took more of a core than this is
# repeated, within limits.
QUIET = 0.05


def settle():
    """Wait until no worker thread of either engine spins.

    Workers of both engines spin for some milliseconds after a run, waiting for more work. On a
    machine with as many threads as cores they would take time from the engine whose turn is next.
    """
    for _ in range(100):
        before = time.process_time()
        time.sleep(0.01)
        if time.process_time() - before < 0.001:
            return


def times_of(session, repetitions):
    """Seconds of each of `repetitions` runs, after one run that warms the caches up again."""
    settle()
    session.run()
    taken = []
    for _ in range(repetitions):
        start = time.perf_counter()
        session.run()
        taken.append(time.perf_counter() - start)
    return taken


def machine_seconds():
    """Seconds of CPU time that the whole machine has spent busy, lent to other guests included."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


class Others:
    """How much of a core other processes take from now on."""

    def __init__(self):
        self.start = time.perf_counter()
        self.before = machine_seconds() - time.process_time()

    def share(self):
        taken = machine_seconds() - time.process_time() - self.before
        return max(0.0, taken / (time.perf_counter() - self.start))


def difference_of(ours, theirs):
    """The largest absolute difference, and the same relative to the largest value of the output."""
    absolute, relative = 0.0, 0.0
    if ours.keys() != theirs.keys():
        raise ValueError(f"outputs {sorted(ours)} are not the peer's {sorted(theirs)}")
    for name, expected in theirs.items():
        if ours[name].shape != expected.shape:
            raise ValueError(f"{name} has shape {ours[name].shape}, the peer's {expected.shape}")
        worst = float(numpy.abs(ours[name].astype(numpy.float64) - expected).max(initial=0.0))
        scale = float(numpy.abs(expected).max(initial=0.0))
        absolute = max(absolute, worst)
        # Written so that a NaN on either side counts as infinitely wrong.
        share = worst / max(scale, 1e-30)
        relative = max(relative, share) if share < math.inf else math.inf
    return absolute, relative


def measure(case, sides, seconds):
    """Time one case. Returns its record; `sides` are the engines, Samebit first when present."""
    inputs = dict(numpy.load(case["inputs"]))
    sessions = {}
    for engine in sides:
        sessions[engine.name] = engine.load(case["model"], case["threads"])
        sessions[engine.name].feed(inputs)
        sessions[engine.name].run()
    once = max(min(times_of(session, 3)) for session in sessions.values())
    # Rounds of about a fifth of a second each: long enough to pay for the warm-up run, short enough
    # that a disturbance meets both engines.
    repetitions = max(1, min(50, round(0.2 / once)))
    rounds = max(5, min(40, round(seconds / (len(sessions) * once * (repetitions + 1)))))
    turns = []
    give_up = time.perf_counter() + 4 * seconds
    while len(turns) < 4 * rounds:
        order = list(sessions) if len(turns) % 2 == 0 else list(sessions)[::-1]
        others = Others()
        taken = {name: times_of(sessions[name], repetitions) for name in order}
        turns.append((others.share(), taken))
        quiet = sum(share <= QUIET for share, _ in turns)
        if quiet >= rounds or (time.perf_counter() > give_up and len(turns) >= rounds):
            break
    # The rounds least disturbed count, and the worst of them is told.
    turns = sorted(turns, key=lambda turn: turn[0])[:rounds]
    record = {key: case[key] for key in ("name", "threads", "batch")}
    record["runs"] = rounds * repetitions
    record["others"] = turns[-1][0]
    for name in sessions:
        values = [value for _, taken in turns for value in taken[name]]
        record[f"{name}_ms"] = 1e3 * statistics.median(values)
        record[f"{name}_best_ms"] = 1e3 * min(values)
    if len(sessions) == 2:
        outputs = {name: session.outputs() for name, session in sessions.items()}
        record["ratio"] = record["onnxruntime_ms"] / record["samebit_ms"]
        record["digest"] = sessions["samebit"].digest()
        record["max_abs"], record["max_rel"] = difference_of(
            outputs["samebit"], outputs["onnxruntime"]
        )
    for session in sessions.values():
        session.close()
    return record


# -- Load time and peak memory, each in a process of its own ---------------------------------------


def peak_bytes():
    """The largest resident set so far.

    Not ru_maxrss: on Linux it starts at the parent's value, so a child of a large process would
    report the parent.
    """
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))


def probe(engine, case):
    """Load, run twice, and print what it took. Runs in a process of its own."""
    inputs = dict(numpy.load(case["inputs"]))
    before = peak_bytes()
    start = time.perf_counter()
    session = engine.load(case["model"], case["threads"])
    loaded = time.perf_counter()
    session.feed(inputs)
    session.run()
    first = time.perf_counter()
    session.run()
    print(json.dumps({
        "load_ms": 1e3 * (loaded - start),
        "first_ms": 1e3 * (first - loaded),
        "peak_mb": (peak_bytes() - before) / 1e6,
    }))


def probed(arguments, engine, case):
    """The medians of three probes of one engine."""
    command = [
        sys.executable, __file__, "--models", str(arguments.models), "--probe", engine.name,
        "--only", f"^{re.escape(case['name'])}$",
    ]
    if arguments.library:
        command += ["--library", str(arguments.library)]
    results = []
    for _ in range(3):
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        results.append(json.loads(run.stdout))
    return {key: statistics.median(r[key] for r in results) for key in results[0]}


# -- What is run, and what is told -----------------------------------------------------------------


def cases_of(arguments):
    """Every case of `--threads` whose name matches `--only`, each with its files in place."""
    cases = []
    for name, (_, _, batches) in make_models.MODELS.items():
        for batch in batches:
            for threads in arguments.threads:
                case = f"cpu/{name}/b{batch}/t{threads}"
                if re.search(arguments.only, case):
                    make_models.write(arguments.models, name)
                    cases.append({
                        "name": case, "batch": batch, "threads": threads,
                        "model": str(make_models.model_path(arguments.models, name)),
                        "inputs": str(make_models.input_path(arguments.models, name, batch)),
                    })
    return cases


def command_output(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=True, text=True, cwd=HERE).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    """What the numbers were taken on, as {what: value}."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", info)
    flags = re.search(r"flags\s*:\s*(.+)", info)
    shown = ("avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "avx512_vnni")
    has = flags.group(1).split() if flags else []
    commit = command_output("git", "describe", "--always", "--dirty", "--abbrev=12")
    return {
        "CPU": model.group(1) if model else platform.processor(),
        "cores": os.cpu_count(),
        "instruction sets": ", ".join(flag for flag in shown if flag in has),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "date": datetime.date.today().isoformat(),
        "commit": commit or "unknown",
        "load before": f"{os.getloadavg()[0]:.2f}",
    }


def line_of(record):
    if "ratio" in record:
        return (f"bench {record['name']} samebit={record['samebit_ms']:.3f} "
                f"peer={record['onnxruntime_ms']:.3f} unit=ms ratio={record['ratio']:.3f}")
    side = "samebit" if "samebit_ms" in record else "onnxruntime"
    label = "samebit" if side == "samebit" else "peer"
    return (f"bench {record['name']} {label}={record[f'{side}_ms']:.3f} unit=ms "
            f"best={record[f'{side}_best_ms']:.3f}")


def markdown(report):
    """The results as a page for docs/results/: the machine, a table, and the bench lines."""
    rows = ["# CPU: Samebit and ONNX Runtime", ""]
    rows += ["| machine | |", "|---|---|"]
    rows += [f"| {what} | {value} |" for what, value in report["machine"].items()]
    rows += [f"| {name} | {value} |" for name, value in report["versions"].items()]
    rows += [
        "", "Medians in milliseconds, taken in one process with the engines in turn; a ratio above "
        "1 says that Samebit is faster. `difference` is the largest difference of an output, "
        "relative to the output's largest value: what two orders of rounding give. `others` is the "
        "part of a core that other processes took meanwhile.",
        "", "| case | Samebit ms | ONNX Runtime ms | ratio | difference | runs each | others |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for r in report["cases"]:
        rows.append(f"| {r['name']} | {r['samebit_ms']:.2f} | {r['onnxruntime_ms']:.2f} | "
                    f"{r['ratio']:.3f} | {r['max_rel']:.1e} | {r['runs']} | "
                    f"{r['others']:.2f} |")
    rows += ["", f"Geometric mean of the ratios: **{report['geometric_mean']:.3f}**. "
             f"Lowest: {report['lowest']:.3f}."]
    if report["loads"]:
        rows += [
            "", "Loading (file in the page cache) and the growth of the process's peak memory over "
            "load and two runs, each in a process of its own:", "",
            "| case | Samebit load ms | ONNX Runtime load ms | Samebit first run ms | "
            "ONNX Runtime first run ms | Samebit peak MB | ONNX Runtime peak MB |",
            "|---|---:|---:|---:|---:|---:|---:|",
        ]
        for name, sides in report["loads"].items():
            values = [sides[side][key] for key in ("load_ms", "first_ms", "peak_mb")
                      for side in ("samebit", "onnxruntime")]
            rows.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |")
    rows += ["", "```"] + [line_of(r) for r in report["cases"]] + ["```", ""]
    return "\n".join(rows)


def wrong(report):
    """What is not as it must be, as sentences."""
    found = []
    digests = {}
    for record in report["cases"]:
        if not record.get("max_rel", 0.0) <= LARGEST_DIFFERENCE:
            found.append(f"{record['name']}: an output differs from the peer's by "
                         f"{record['max_rel']:.3g} of its largest value")
        if "digest" in record:
            case = record["name"].rsplit("/t", 1)[0]
            if digests.setdefault(case, record["digest"]) != record["digest"]:
                found.append(f"{case}: the output's bits depend on the number of threads")
    return found


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--library", type=pathlib.Path, help="libsamebit.so; without it only the peer is timed")
    add("--models", type=pathlib.Path, required=True, help="cache folder of the models")
    add("--only", default="", metavar="REGEX", help="cases whose name this matches")
    add("--threads", default="1,2", help="numbers of threads, by commas (default 1,2)")
    add("--seconds", type=float, default=8.0, help="time for one case (default 8)")
    add("--isa", default="best", choices=("best", "scalar", "avx2", "avx512"),
        help="Samebit's instruction set; the peer takes what the machine has")
    add("--no-load", action="store_true", help="leave load times and peak memory out")
    add("--json", type=pathlib.Path, metavar="FILE", help="write everything as JSON")
    add("--write", type=pathlib.Path, metavar="FILE", help="write a Markdown page")
    add("--require", metavar="MEAN,LOWEST", help="exit 1 below this geometric mean or ratio")
    add("--probe", choices=("samebit", "onnxruntime"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        arguments.threads = [int(part) for part in arguments.threads.split(",")]
        required = arguments.require.split(",") if arguments.require else ("0", "0")
        arguments.mean, arguments.lowest = map(float, required)
    except ValueError as error:
        parser.error(str(error))
    if (arguments.write or arguments.require) and not arguments.library:
        parser.error("--write and --require compare two engines: name the --library")
    return arguments


def main(argv=None):
    arguments = parse(argv)
    sides = [engines.Samebit(arguments.library, arguments.isa)] if arguments.library else []
    sides.append(engines.OnnxRuntime())
    cases = cases_of(arguments)
    if not cases:
        print(f"no case matches {arguments.only!r}", file=sys.stderr)
        return 2
    if arguments.probe:
        probe(next(engine for engine in sides if engine.name == arguments.probe), cases[0])
        return 0

    report = {"machine": machine(), "versions": {e.name: e.version() for e in sides}}
    for what, value in {**report["machine"], **report["versions"]}.items():
        print(f"# {what}: {value}")
    report["cases"] = []
    for case in cases:
        record = measure(case, sides, arguments.seconds)
        report["cases"].append(record)
        print(line_of(record), flush=True)
        if record["others"] > QUIET:
            print(f"disturbed {record['name']}: other processes took {record['others']:.2f} of a "
                  "core; do not trust this case at several threads", flush=True)
        if "max_abs" in record:
            print(f"check {record['name']} max_abs={record['max_abs']:.3g} "
                  f"max_rel={record['max_rel']:.3g}", flush=True)

    report["loads"] = {}
    for case in cases:
        # Neither depends on the number of threads by much, so one number of threads tells enough.
        if arguments.no_load or case["threads"] != arguments.threads[0]:
            continue
        loads = report["loads"][case["name"]] = {e.name: probed(arguments, e, case) for e in sides}
        for name, values in loads.items():
            told = " ".join(f"{key}={value:.1f}" for key, value in values.items())
            print(f"load {case['name']} {name} {told}", flush=True)

    ratios = [record["ratio"] for record in report["cases"] if "ratio" in record]
    if ratios:
        report["geometric_mean"] = math.exp(statistics.fmean(map(math.log, ratios)))
        report["lowest"] = min(ratios)
        print(f"bench cpu/mean ratio={report['geometric_mean']:.3f} lowest={min(ratios):.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    problems = wrong(report)
    if ratios and (report["geometric_mean"] < arguments.mean or min(ratios) < arguments.lowest):
        problems.append(f"slower than required: mean {report['geometric_mean']:.3f} of "
                        f"{arguments.mean}, lowest {min(ratios):.3f} of {arguments.lowest}")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if arguments.write and not wrong(report):
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text(markdown(report))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
