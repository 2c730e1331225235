"""Timing kernels on a GPU, ours beside others': what the benchmarks of products share.

Each side is a CUDA graph of many launches that take several sets of buffers in turn, so that no
launch finds its operands in the L2. Sides are timed by events, in rounds, forwards and backwards, so
that what one side does to the clocks is not always paid by the same other.
"""

import math
import pathlib
import statistics
import time

import torch

import triton_matmul

# A graph runs at least so long, beside which its own start does not count.
GRAPH_MICROSECONDS = 2000.0
# No kernel takes less between others.
LEAST_MICROSECONDS = 2.0
ROUNDS = 6


def sets_needed(bytes_of_a_set):
    """How many sets of buffers are four times the L2."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    return max(2, math.ceil(4 * cache / bytes_of_a_set))


class Side:
    """`launches`: functions that are given a stream, each for a set of buffers of its own."""

    def __init__(self, launches, microseconds, eager=False):
        """`microseconds`: about what a launch takes, which decides how many are in a graph."""
        self.launches = launches  # and with them the buffers that the graph writes to
        microseconds = max(microseconds, LEAST_MICROSECONDS)
        self.count = max(len(launches), math.ceil(GRAPH_MICROSECONDS / microseconds))
        self.expected = 1e-6 * self.count * microseconds  # seconds of a replay
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for launch in launches:  # compiles, chooses, sizes workspaces
                launch(stream.cuda_stream)
        torch.cuda.synchronize()

        def give(handle):
            for i in range(self.count):
                launches[i % len(launches)](handle)

        if eager:
            self.replay = lambda: give(torch.cuda.current_stream().cuda_stream)
        else:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                give(stream.cuda_stream)
            self.replay = graph.replay

    def time(self, seconds):
        """Microseconds a launch, one figure for each replay, for about `seconds` seconds after a
        replay that does not count."""
        events = [torch.cuda.Event(enable_timing=True)
                  for _ in range(1 + max(1, round(seconds / self.expected)))]
        self.replay()
        for event in events[:-1]:
            event.record()
            self.replay()
        events[-1].record()
        torch.cuda.synchronize()
        times = [1e3 * start.elapsed_time(end) / self.count
                 for start, end in zip(events, events[1:])]
        self.expected = 1e-6 * self.count * statistics.median(times)
        return times


class Timing:
    """Medians of a side, in microseconds, over all replays and of each round."""

    def __init__(self):
        self.all, self.rounds = [], []

    def add(self, times):
        self.all += times
        self.rounds.append(statistics.median(times))

    def median(self):
        return statistics.median(self.all)

    def noise(self):
        """Half of what lies between the fastest and the slowest round, as a share."""
        return (max(self.rounds) - min(self.rounds)) / (2 * self.median())


def alternate(sides, seconds, rounds=ROUNDS):
    """A Timing of each side; `seconds` is for all of them together."""
    timings = [Timing() for _ in sides]
    turn = seconds / (rounds * len(sides))
    for number in range(rounds):
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        for i in order:
            timings[i].add(sides[i].time(turn))
    return timings


# ---- ceilings ----


class Ceilings:
    """What this GPU gives: bytes a second to a kernel that only reads, and bf16 operations a second
    in a product of normal data."""

    def __init__(self, report, seconds=0.5, size=8192):
        self.bandwidth = self.measure_reads(report, seconds)
        a, b, c = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        side = Side([lambda stream: torch.matmul(a, b.t(), out=c)], 1500.0)
        self.rate = 2e6 * size ** 3 / alternate([side], seconds, 2)[0].median()
        report.line(f"# matrix rate (cuBLAS, {size}^3, bf16, normal data): {self.rate / 1e12:.0f} TFLOP/s")

    @staticmethod
    def measure_reads(report, seconds):
        data = torch.randint(0, 100, (1 << 30,), device="cuda", dtype=torch.int32)
        other = torch.empty_like(data)
        multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count
        kernels = {"torch.sum": (1, lambda stream: torch.sum(data, dtype=torch.int32)),
                   "copy": (2, lambda stream: other.copy_(data))}
        for programs in (2, 4, 8, 16):
            out = torch.empty(programs * multiprocessors, device="cuda", dtype=torch.int32)
            kernels[f"read by {programs} blocks each"] = (
                1, lambda stream, out=out: triton_matmul.read_all(data, out))
        rates = {}
        for name, (times, launch) in kernels.items():
            timing = alternate([Side([launch], 1000.0)], seconds / len(kernels), 1)[0]
            rates[name] = 1e6 * times * 4 * data.numel() / timing.median()
        report.line("# memory: " + ", ".join(
            f"{name} {rate / 1e12:.2f} TB/s" for name, rate in rates.items()))
        return max(rate for name, rate in rates.items() if name != "copy")

    def limit(self, operations, size):
        """Microseconds below which no kernel comes."""
        return 1e6 * max(operations / self.rate, size / self.bandwidth)


# ---- lines ----


class Report:
    """Prints lines as they come, and keeps them in a file."""

    def __init__(self, path=None):
        self.lines, self.path = [], path and pathlib.Path(path)
        self.start = time.perf_counter()

    def line(self, text):
        print(text, flush=True)
        self.lines.append(text)
        if self.path:
            self.path.write_text("\n".join(self.lines) + "\n")

    def bench(self, name, ours, peer, more):
        self.line(f"bench {name} samebit={ours:.4g} peer={peer:.4g} unit=us ratio={peer / ours:.3f} {more}")
        return peer / ours

    def elapsed(self):
        return time.perf_counter() - self.start
