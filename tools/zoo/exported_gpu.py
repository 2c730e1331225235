#!/usr/bin/env python3
"""The networks of exported.py on a GPU, by Samebit and by PyTorch, in f32 and in f16.

    python tools/zoo/exported_gpu.py --library build/src/libsamebit.so --folder FOLDER [--dtype f16] [--only REGEX] [--seconds S] [--jobs N]
                                     [--measuring N] [--limit S] [--export-limit S] [--write FILE] [--peer cpu]

Exports first, in N processes at once, what is not in the folder yet; of f16 a network is made so before it is exported. Then both engines run on
the GPU, each replaying a CUDA graph over inputs that lie there, f32 without TF32, in turns, and medians count; the peer runs eagerly where it
cannot be captured, and convolutions of f16 also with channels last, of which the better counts:

    bench exported-gpu/NAME/DTYPE samebit=US peer=US unit=us ratio=PEER/SAMEBIT worst=DIFFERENCE cpu_nodes=N bits=equal peer_by=graph graphs=…

cpu_nodes are those that Samebit left on the CPU, and a line more says which and why. `bits` compares Samebit's outputs with those that it
computes on the CPU. At the end come the slowest nodes of each network whose ratio is below 0.8. Networks are taken from all over the tables, so
that those measured are of all kinds where the limit of seconds ends it early; what fails is said and left out. Processes that prepare a network
while another one is measured share the GPU, but never while something is timed. Exit status 1 when bits differ.

`--seconds 0` only exports. `--peer cpu` has PyTorch on the CPU, to try this over a driver that is emulated (tests/cuda/fake_gpu).
"""

import argparse
import collections
import contextlib
import copy
import dataclasses
import fcntl
import functools
import gc
import os
import pathlib
import re
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

import numpy  # noqa: E402
import torch  # noqa: E402

import crew  # noqa: E402
import exported  # noqa: E402
import gpu_bench  # noqa: E402
import samebit  # noqa: E402

DTYPES = {"f32": torch.float32, "f16": torch.float16}
EXPORT_SECONDS = 120  # for one network
MEASURE_SECONDS = {"cuda": 90, "cpu": 1800}  # waiting for the GPU included; by the peer's device
CPU_SECONDS = 5  # for the run whose bits are compared
SLOW = 0.8  # ratios below are looked into
SHOWN = 8  # nodes of a profile


@dataclasses.dataclass(frozen=True)
class Settings:
    """What all processes know."""

    folder: pathlib.Path
    dtype: str
    seconds: float
    peer: str

    def path(self, name):
        return self.folder / f"{name}.{self.dtype}.onnx"


@dataclasses.dataclass(frozen=True)
class Measured:
    """What the process that measured has to say of a network."""

    ours: float  # seconds
    peer: float
    more: str  # of the line
    notes: list
    slow: list  # lines for the end


class NotCaptured(Exception):
    """PyTorch could not record a graph, and its state is not to be trusted any more."""


# ---- exporting ----


def export(settings, name):
    """Seconds that it took."""
    torch.set_num_threads(1)
    begin = time.monotonic()
    exported.export(name, settings.path(name), DTYPES[settings.dtype])
    return time.monotonic() - begin


# ---- the peer ----


class Eager:
    """A network that PyTorch runs launch by launch."""

    def __init__(self, forward, wait):
        self.forward, self.wait, self.result = forward, wait, None

    def run(self):
        with torch.inference_mode():
            self.result = self.forward()


def tensors(value):
    """All tensors of a network's result, in the exporter's order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [tensor for each in value for tensor in tensors(each)]


def has_convolutions(network):
    """More than what cuts a picture into patches."""
    return sum(isinstance(module, torch.nn.Conv2d) for module in network.modules()) > 2


def last_channels_peer(network, inputs):
    """{what it is: a side}, or nothing where the network cannot have its channels last."""
    network = network.to(memory_format=torch.channels_last)
    inputs = {key: value.to(memory_format=torch.channels_last) if value.dim() == 4 else value for key, value in inputs.items()}
    try:
        Eager(lambda: network(**inputs), None).run()
    except RuntimeError:  # a view of what lies in another order now
        return {}
    return {"graph,channels_last": gpu_bench.Peer(lambda: network(**inputs), [])}


def peers(network, inputs, settings, captured):
    """{what it is: a side of PyTorch}."""
    if settings.peer == "cpu":
        return {"eager,cpu": Eager(lambda: network(**inputs), lambda: None)}
    network = network.cuda()
    inputs = {key: value.cuda() for key, value in inputs.items()}
    if not captured:
        return {"eager": Eager(lambda: network(**inputs), torch.cuda.synchronize)}
    try:
        sides = {"graph": gpu_bench.Peer(lambda: network(**inputs), [])}
        if settings.dtype != "f32" and has_convolutions(network):
            sides.update(last_channels_peer(copy.deepcopy(network), inputs))
        return sides
    except Exception as error:
        raise NotCaptured(crew.sentence(error)) from error


# ---- Samebit ----


def arrays(inputs, model):
    """A network's inputs by the names that the file has for them."""
    given = list(inputs.items())
    return {info.name: inputs.get(info.name, given[min(i, len(given) - 1)][1]).numpy() for i, info in enumerate(model.inputs)}


def on_cpu(model, feeds):
    """The outputs' arrays; None where it takes too long."""
    with model.session(threads=0) as session:
        timer = threading.Timer(CPU_SECONDS, session.interrupt)
        timer.start()
        try:
            return [numpy.asarray(value) for value in session.run(feeds).values()]
        except (KeyboardInterrupt, samebit.Interrupted):
            return None
        finally:
            timer.cancel()


def differing_elements(mine, other):
    if mine.shape != other.shape or mine.dtype != other.dtype:
        return max(mine.size, other.size)
    words = f"V{mine.dtype.itemsize}"
    return int((numpy.ascontiguousarray(mine).view(words) != numpy.ascontiguousarray(other).view(words)).sum())


def tell_bits(ours, cpu):
    """Whether both have the same, in one word."""
    if cpu is None:
        return f"unknown,more-than-{CPU_SECONDS}-s-on-the-CPU"
    different = [differing_elements(mine, other) for mine, other in zip(ours, cpu)]
    if not any(different):
        return "equal"
    return f"DIFFERENT,{sum(map(bool, different))}-of-{len(different)}-outputs,{sum(different)}-elements"


def left_on_cpu(session):
    """{operator and reason: how many nodes} of those that the device did not compute."""
    return collections.Counter(f"{node.op} ({node.why or '?'})" for node in session.placement()
                               if not node.on_device and node.op != "Transfer" and node.kernel != "constant")


def slowest(case, ours):
    """Lines of where the time goes: kinds of nodes, then single nodes."""
    placed = {node.name: node for node in ours.session.placement()}
    profile = ours.session.model.profile(ours.inputs, runs=5)
    nodes = sorted((node for node in profile.nodes if node.depth == 0), key=lambda node: -node.total_ns)
    total = sum(node.total_ns for node in nodes)
    kinds = collections.defaultdict(list)
    for node in nodes:
        way = getattr(placed.get(node.name), "way", None)
        node.said = f"{node.op} {node.kernel}" + (f" {way}" if way and way != node.kernel else "") + ("" if node.on_device else " on the host")
        kinds[node.said].append(node.total_ns)
    lines = [f"# slow {case}: {len(nodes)} nodes, {total / 5e3:.0f} us one by one"]
    for said, times in sorted(kinds.items(), key=lambda item: -sum(item[1]))[:SHOWN]:
        lines.append(f"#   {sum(times) / 5e3:8.1f} us {100 * sum(times) / total:5.1f} %  {len(times)} x {said}")
    for node in nodes[:SHOWN]:
        reason = getattr(placed.get(node.name), "slow", None)
        lines.append(f"#     {node.total_ns / 5e3:8.1f} us {100 * node.total_ns / total:5.1f} %  {node.said}, {node.bytes} bytes, {node.name[-60:]}"
                     + (f" [{reason}]" if reason else ""))
    return lines


# ---- measuring ----


@contextlib.contextmanager
def machine(settings, how):
    """The GPU, shared among those who prepare, or for one alone."""
    with open(settings.folder / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, how)
        yield


@functools.cache
def device():
    return samebit.open_device("cuda")


def prepare(settings, name):
    """The network, its inputs, Samebit's session on the device after some runs, and how its bits are."""
    network, inputs = exported.make(name, DTYPES[settings.dtype])
    path = settings.path(name)
    host = samebit.load(path)
    feeds = arrays(inputs, host)
    ours = gpu_bench.Ours(device(), path, feeds)
    for _ in range(3):
        ours.run()
    return network, inputs, ours, tell_bits(ours.results(), on_cpu(host, feeds))


def tell_worst(ours, side):
    """(The largest difference in words, notes)."""
    theirs = [tensor.cpu().numpy() for tensor in tensors(side.result)]
    if [array.shape for array in ours] != [array.shape for array in theirs]:
        return "unknown", [f"{len(ours)} outputs are not like the peer's {len(theirs)}: "
                           f"{[array.shape for array in ours][:4]} {[array.shape for array in theirs][:4]}"]
    return f"{exported.largest_difference(ours, theirs):.1e}", []


def timed(settings, case, prepared, uncaptured):
    """Measured of a network that was prepared, with the GPU alone."""
    network, inputs, ours, bits = prepared
    sides = peers(network, inputs, settings, not uncaptured)
    mine, *others = gpu_bench.alternate([(side.run, side.wait) for side in [ours, *sides.values()]], settings.seconds)
    peer, by = min(zip(others, sides))
    worst, notes = tell_worst(ours.results(), next(iter(sides.values())))
    away = left_on_cpu(ours.session)
    if away:
        notes.append("on the CPU: " + ", ".join(f"{count} {node}" for node, count in away.most_common(10)))
    if uncaptured:
        notes.append(f"PyTorch runs eagerly: {uncaptured}")
    more = f" worst={worst} cpu_nodes={away.total()} bits={bits} peer_by={by}{ours.note()}"
    return Measured(mine, peer, more, notes, slowest(case, ours) if peer / mine < SLOW else [])


def measure(settings, name, uncaptured=""):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with machine(settings, fcntl.LOCK_SH):
        prepared = prepare(settings, name)
    with machine(settings, fcntl.LOCK_EX):
        measured = timed(settings, case_of(settings, name), prepared, uncaptured)
    del prepared
    gc.collect()
    if settings.peer == "cuda":
        torch.cuda.empty_cache()
    return measured


# ---- all of it ----


def case_of(settings, name):
    return f"exported-gpu/{name}/{settings.dtype}"


def names_of(only):
    """All that are asked for, such that the first ones come from all over the tables."""
    names = [name for name in [*exported.TRANSFORMERS, *exported.TIMM] if re.search(only, name)]
    order = sorted(range(len(names)), key=lambda i: i * 0.6180339887 % 1)
    return [names[i] for i in order]


def export_all(settings, names, jobs, end, report):
    """The names that have a file then."""
    begin = time.monotonic()
    missing = [(settings, name) for name in names if not settings.path(name).exists()]
    workers = crew.Crew("forkserver", export, missing, jobs, EXPORT_SECONDS, end)
    taken = {}
    for outcome in workers.outcomes():
        if outcome.failure:
            report.line(f"# {case_of(*outcome.task)}: not exported: {outcome.failure}")
        else:
            taken[outcome.task[1]] = outcome.value
    for task in workers.tasks:
        report.line(f"# {case_of(*task)}: not exported: no time was left")
    longest = ", ".join(f"{name} {taken[name]:.0f}" for name in sorted(taken, key=taken.get)[:-9:-1])
    report.line(f"# {len(taken)} exported in {time.monotonic() - begin:.0f} s, {sum(taken.values()):.0f} s of processes: {longest}")
    return [name for name in names if settings.path(name).exists()]


def measure_all(settings, names, count, end, report):
    """Lines of each network, and at the end of the slow ones."""
    tasks = [(settings, name) for name in names]
    # What is forked cannot use a GPU that was looked at before.
    workers = crew.Crew("spawn", measure, tasks, count, MEASURE_SECONDS[settings.peer], end)
    slow = []
    for outcome in workers.outcomes():
        case = case_of(*outcome.task[:2])
        if outcome.failure.startswith("NotCaptured: ") and len(outcome.task) == 2:
            workers.tasks.append((*outcome.task, outcome.failure.removeprefix("NotCaptured: ")))
        elif outcome.failure:
            report.line(f"# {case}: {outcome.failure}")
        else:
            measured = outcome.value
            report.bench(case, 1e6 * measured.ours, 1e6 * measured.peer, "us", measured.more)
            for note in measured.notes:
                report.line(f"# {case}: {note}")
            slow += measured.slow
    for task in workers.tasks:
        report.line(f"# {case_of(*task[:2])}: no time was left")
    for line in slow:
        report.line(line)


def summary(settings, report):
    """Returns whether no bits differ."""
    ratios = list(report.ratios.values())
    if ratios:
        report.line(f"bench exported-gpu/mean/{settings.dtype} ratio={statistics.geometric_mean(ratios):.3f} lowest={min(ratios):.3f} "
                    f"below_0.8={sum(ratio < SLOW for ratio in ratios)} of={len(ratios)}")
    return not any("bits=DIFFERENT" in line for line in report.lines)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where models are kept")
    parser.add_argument("--dtype", default="f32", choices=DTYPES)
    parser.add_argument("--only", default="", help="models in whose name this regular expression is found")
    parser.add_argument("--seconds", type=float, default=0.15, help="for each side; 0: only export")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes that export")
    parser.add_argument("--measuring", type=int, default=3, help="processes that prepare and measure")
    parser.add_argument("--limit", type=float, default=86400, help="seconds for all of it")
    parser.add_argument("--export-limit", type=float, default=86400, help="seconds of them for exporting")
    parser.add_argument("--write", help="also write the lines to this file")
    parser.add_argument("--peer", default="cuda", choices=["cuda", "cpu"])
    return parser.parse_args()


def main():
    begin = time.monotonic()
    arguments = parse()
    os.environ["SAMEBIT_LIBRARY"] = arguments.library  # of all processes
    arguments.folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(arguments.folder, arguments.dtype, arguments.seconds, arguments.peer)
    report = gpu_bench.Report(arguments.write)
    names = names_of(arguments.only)
    names = export_all(settings, names, arguments.jobs, begin + min(arguments.export_limit, arguments.limit), report)
    if settings.seconds > 0:
        report.line(f"# {device().name}, Samebit {samebit.version()}, PyTorch {torch.__version__}, {os.cpu_count()} CPUs")
        measure_all(settings, names, arguments.measuring, begin + arguments.limit, report)
    return 0 if summary(settings, report) else 1


if __name__ == "__main__":
    sys.exit(main())
