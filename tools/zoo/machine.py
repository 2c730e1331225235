"""All engines of a machine beside each other: Samebit on a device and on the CPU, and ONNX Runtime on the CPU.

One process holds the sessions of a model at once and times them in turns. Before that, the CPU's outputs are compared with
the peer's, and the device's digests with the CPU's in all graph modes.
"""

import collections
import dataclasses
import math
import pathlib
import re
import statistics
import time

import numpy

import bundle
import cpu_bench
import make_models

GRAPH_MODES = ("off", "capture", "build")
ROUNDS = 5
SHOWN = 60  # letters of a reason why a node is not on the device


@dataclasses.dataclass(frozen=True)
class Case:
    """A model with inputs, and how far it may be from the peer."""

    name: str
    model: str
    inputs: str
    difference: float


def cases_of(zoo):
    """The zoo's models, and with --networks those of bench/cpu_bench.py; none that --without names."""
    unwanted = re.compile(zoo.arguments.without) if zoo.arguments.without else None
    for case in (*zoo_cases(zoo), *network_cases(zoo.arguments.networks)):
        if unwanted is None or not unwanted.search(case.name):
            yield case


def zoo_cases(zoo):
    for model in zoo.models:
        if not model.refused:
            case = zoo.case(model, model.sizes[0])
            # Drawn weights can make a network that doubles each rounding: how far the peer is says nothing there.
            difference = math.inf if bundle.is_drawn(pathlib.Path(case["model"])) else model.difference
            yield Case(f"zoo/{model.name}", case["model"], case["inputs"], difference)


def network_cases(folder):
    for name, (_, _, batches) in make_models.MODELS.items() if folder else ():
        make_models.write(folder, name)
        for batch in batches:
            yield Case(f"cpu/{name}/b{batch}", str(make_models.model_path(folder, name)),
                       str(make_models.input_path(folder, name, batch)), cpu_bench.LARGEST_DIFFERENCE)


class Side:
    """An engine with a session, and what loading it and running it for the first time took."""

    def __init__(self, engine, case, inputs, threads, **options):
        start = time.perf_counter()
        self.session = engine.load(case.model, threads, **options)
        loaded = time.perf_counter()
        self.session.feed(inputs)
        self.session.run()
        self.load_ms, self.first_ms = 1e3 * (loaded - start), 1e3 * (time.perf_counter() - loaded)
        self.times = []
        self.repetitions = 1

    def plan(self, seconds):
        """Sets how often a round runs it; by then graphs are recorded."""
        self.session.run()
        once = min(cpu_bench.times_of(self.session, 3))
        self.repetitions = max(1, round(seconds / ROUNDS / once) - 1)

    def median_ms(self):
        return 1e3 * statistics.median(self.times)


def sides_of(zoo, case, inputs):
    """{name: Side}: "cpu" and "peer", and with a device "gpu" (arrays go in and come out) and "resident"."""
    ours, peer = zoo.sides()
    threads, device = zoo.arguments.threads[0], zoo.arguments.device
    sides = {"cpu": Side(ours, case, inputs, threads), "peer": Side(peer, case, inputs, threads)}
    if device:
        sides["gpu"] = Side(ours, case, inputs, threads, device=device)
        sides["resident"] = Side(ours, case, inputs, threads, device=device, resident=True)
    return sides


# -- what must be so -------------------------------------------------------------------------------


def digests_of(zoo, case, inputs, sides):
    """{way: digest} of one thread, of all sides, and of the device in each graph mode."""
    ours = zoo.samebit()
    digests = {name: side.session.digest() for name, side in sides.items() if name != "peer"}
    further = {"cpu, one thread": {}}
    if zoo.arguments.device:
        further |= {f"gpu, graphs={mode}": {"device": zoo.arguments.device, "graphs": mode} for mode in GRAPH_MODES}
    for way, options in further.items():
        session = ours.load(case.model, 1, **options)
        session.feed(inputs)
        for _ in range(3 if "graphs" in options else 1):  # the third run is the first one of a recorded graph
            session.run()
        digests[way] = session.digest()
        session.close()
    return digests


def check(zoo, case, inputs, sides):
    """Prints that the case is as it must be; tells `zoo` where it is not."""
    _, difference = cpu_bench.difference_of(sides["cpu"].session.outputs(), sides["peer"].session.outputs())
    digests = digests_of(zoo, case, inputs, sides)
    others = {way: digest for way, digest in digests.items() if digest != digests["cpu"]}
    for way, digest in others.items():
        zoo.fault(case, f"the bits are others ({way}): {digest} instead of {digests['cpu']}")
    if not difference <= case.difference:
        zoo.fault(case, f"an output differs by {difference:.2g} of its largest element, where {case.difference:g} is allowed")
    elif not others:
        print(f"same {case.name} {digests['cpu']} ways={len(digests)} max_rel={difference:.2g}", flush=True)


# -- what is told ----------------------------------------------------------------------------------


def tell_placement(case, session):
    """Which nodes the device does not compute, and why."""
    nodes = session.placement()
    away = collections.Counter(f"{node.op} ({(node.why or '?')[:SHOWN]})" for node in nodes
                               if not node.on_device and node.op != "Transfer" and node.kernel != "constant")
    transfers = sum(node.op == "Transfer" for node in nodes)
    graphs, run = session.graphs(), session.last_run()
    told = f"device={sum(node.on_device for node in nodes)} host={sum(away.values())} transfers={transfers}"
    told += f" graphs={graphs.recorded}/{graphs.segments} tasks={graphs.tasks}"
    if graphs.reason:
        told += f" no graph: {graphs.reason};"
    if run is not None and run.synchronous:
        told += f" waits: {run.reason} ({run.op} {run.node});"
    told += "".join(f" {count}x{what};" for what, count in away.most_common(6))
    print(f"placed {case.name}/gpu {told}", flush=True)


def tell_kernels(zoo, case, inputs, model):
    """Where the time on the device goes, waited for node by node."""
    sums = {}
    profile = model.profile(inputs, runs=3, warmup=1)
    for node in profile.nodes:
        if node.depth == 0:
            key = f"{node.op}:{node.kernel}" + ("" if node.on_device or node.op == "Transfer" else " on the host")
            count, taken = sums.get(key, (0, 0.0))
            sums[key] = (count + 1, taken + node.total_ns / profile.runs / 1e6)
    slowest = sorted(sums.items(), key=lambda item: -item[1][1])[:zoo.arguments.top]
    whole = sum(taken for _, taken in sums.values())
    print(f"nodes {case.name}/gpu all={whole:.3f}ms " +
          ", ".join(f"{count}x {key} {taken:.3f}" for key, (count, taken) in slowest), flush=True)


def tell_times(zoo, case, sides):
    """The lines of a case; gives {"t8": ratio, "gpu": ratio}."""
    peer = sides["peer"].median_ms()
    ratios = {}
    for name, label in (("cpu", f"t{zoo.arguments.threads[0]}"), ("gpu", "gpu")):
        if name not in sides:
            continue
        mine = sides[name].median_ms()
        ratios[label] = peer / mine
        line = f"bench {case.name}/{label} samebit={mine:.3f} peer={peer:.3f} unit=ms ratio={peer / mine:.3f}"
        if name == "gpu":
            line += f" resident={sides['resident'].median_ms():.3f} to_cpu={sides['cpu'].median_ms() / mine:.3f}"
        print(line, flush=True)
    print(f"load {case.name} " + " ".join(f"{name}={side.load_ms:.1f}+{side.first_ms:.1f}" for name, side in sides.items()),
          flush=True)
    return ratios


def time_case(zoo, case):
    inputs = dict(numpy.load(case.inputs))
    sides = sides_of(zoo, case, inputs)
    try:
        check(zoo, case, inputs, sides)
        for side in sides.values():
            side.plan(zoo.arguments.seconds)
        for number in range(ROUNDS):
            for side in list(sides.values())[:: 1 if number % 2 == 0 else -1]:
                side.times += cpu_bench.times_of(side.session, side.repetitions)
        ratios = tell_times(zoo, case, sides)
        if "gpu" in sides:
            tell_placement(case, sides["gpu"].session.session)
            if zoo.arguments.top:
                tell_kernels(zoo, case, inputs, sides["gpu"].session.model)
        return ratios
    finally:
        for side in sides.values():
            side.session.close()


def summary_of(ratios, label):
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return (f"bench zoo/mean/{label} ratio={mean:.3f} lowest={min(ratios):.3f} below_0.8={sum(r < 0.8 for r in ratios)}"
            f" of={len(ratios)}")


def run(zoo):
    """All cases; a case that fails is told, and the next one begins."""
    for engine in zoo.sides():
        print(f"# {engine.name}: {engine.version()}", flush=True)
    gained, tried = collections.defaultdict(list), 0
    for case in cases_of(zoo):
        tried += 1
        print(f"begin {case.name}", flush=True)
        try:
            ratios = time_case(zoo, case)
        except Exception as failure:  # of either library: the next model may be right
            zoo.fault(case, f"{type(failure).__name__}: {failure}")
            continue
        for label, ratio in ratios.items():
            gained[label].append(ratio)
    for label, ratios in gained.items():
        print(summary_of(ratios, label))
    print(f"cases={tried} faults={len(zoo.problems)}", flush=True)
