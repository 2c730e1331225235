"""Where the time of a run goes."""

import dataclasses
import time
from typing import List

from ._errors import ArgumentError
from ._handles import text
from ._session import Observer, Session


@dataclasses.dataclass
class ProfiledNode:
    """A node, or a copy between the host and a device (`op` is "Transfer"), over all measured runs."""

    name: str
    op: str
    kernel: str
    depth: int
    on_device: bool
    calls: int = 0
    total_ns: int = 0
    least_ns: int = 0
    bytes: int = 0
    """Of its outputs, or of what was copied."""


@dataclasses.dataclass(frozen=True)
class Profile:
    """What `Model.profile` measured."""

    nodes: List[ProfiledNode]
    """In the order of the run."""
    runs: int
    run_ns: float
    """How long a run takes when nothing is measured: the median, in nanoseconds."""

    def operators(self):
        """{operator: nanoseconds a run}, the slowest first. Nodes inside of others (depth > 0) are in those."""
        sums = {}
        for node in self.nodes:
            if node.depth == 0:
                sums[node.op] = sums.get(node.op, 0) + node.total_ns / self.runs
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def __str__(self):
        lines = [f"{self.run_ns / 1e6:10.3f} ms a run"]
        lines += [f"{taken / 1e6:10.3f} ms  {op}" for op, taken in self.operators().items()]
        return "\n".join(lines)


def measure(model, settings, inputs, runs, warmup):
    """The Profile of a model on inputs."""
    if runs < 1 or warmup < 0:
        raise ArgumentError("a profile takes at least one run, and no fewer than 0 before it")
    nodes = {}
    left = [warmup]

    def visit(event):
        if left[0] > 0 or event.kernel == b"constant":
            return
        key = (event.name, event.op, event.depth, event.on_device)
        node = nodes.get(key)
        taken = event.end_ns - event.start_ns
        if node is None:
            node = nodes[key] = ProfiledNode(text(event.name), text(event.op), text(event.kernel), event.depth,
                                             event.on_device, least_ns=taken)
        node.kernel = text(event.kernel)
        node.calls += 1
        node.total_ns += taken
        node.least_ns = min(node.least_ns, taken)
        node.bytes = event.output_bytes

    with Session(model, settings, observer=Observer(visit, times_only=True)) as session:
        for _ in range(warmup + runs):
            session.run(inputs)
            left[0] -= 1
    taken = []
    with Session(model, settings) as session:
        for index in range(max(warmup, 3) + runs):  # the second run records graphs, the third is the first replay
            start = time.perf_counter_ns()
            session.run(inputs)
            if index >= max(warmup, 3):
                taken.append(time.perf_counter_ns() - start)
    return Profile(list(nodes.values()), runs, float(sorted(taken)[len(taken) // 2]))
