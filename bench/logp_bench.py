#!/usr/bin/env python3
"""Compare linear_logp with cuBLAS and a log-softmax behind it, on a GPU: time and memory.

    python logp_bench.py --library libsamebit.so [--only REGEX] [--seconds S] [--write FILE]

    logp/MxKxV        log-probabilities of the chosen tokens of M rows
    logp/train/MxKxV  the same with the gradients of hidden states and weight, by autograd

The peer is cuBLAS and then whichever is faster: one kernel that reads the logits once (Triton's
`fused` column; without gradients), or PyTorch's log_softmax in f32 and gather (`torch`). `mb` is what
is allocated at most beside the operands: by Samebit, and by the peer that takes least. Times are
medians in milliseconds. Exit status 1 when a result is wrong.
"""

import argparse
import pathlib
import re
import sys

import torch

import gpu_timing
import triton_matmul

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit.torch  # noqa: E402

SHAPES = [(4096, 4096, 151936), (4096, 4096, 128256), (1024, 4096, 151936), (64, 4096, 151936)]


def peak(run):
    """Megabytes that are allocated at most while it runs, beside what was there. Also its result."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    result = run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 1e6, result


class Case:
    def __init__(self, m, k, v):
        def normal(rows, columns, scale):
            return torch.randn(rows, columns, device="cuda").mul_(scale).bfloat16().requires_grad_()

        self.hidden = normal(m, k, 1.0)
        self.weight = normal(v, k, k ** -0.5)
        self.targets = torch.randint(0, v, (m,), device="cuda")
        self.upstream = torch.randn(m, device="cuda")
        self.work = 2 * m * k * v

    def ours(self):
        return samebit.torch.linear_logp(self.hidden, self.weight, self.targets)

    def plain(self):
        logits = torch.nn.functional.linear(self.hidden, self.weight)
        logp = torch.nn.functional.log_softmax(logits, -1, dtype=torch.float32)
        return logp.gather(1, self.targets[:, None]).squeeze(1)

    def fused(self):
        logits = torch.nn.functional.linear(self.hidden, self.weight)
        out = torch.empty(self.hidden.shape[0], device="cuda")
        triton_matmul.fused_logp(logits, self.targets, out)
        return out

    def inference(self, forward):
        with torch.inference_mode():
            return forward()

    def training(self, forward):
        """The log-probabilities, and the gradients as new tensors."""
        logp = forward()
        return logp.detach(), *torch.autograd.grad(logp, (self.hidden, self.weight), self.upstream)


def distance(ours, peer):
    """Of log-probabilities, the mean difference; of gradients, the difference's share of the norm."""
    difference = (ours.float() - peer.float())
    if ours.dim() == 1:
        return float(difference.abs().mean())
    return float(torch.linalg.vector_norm(difference) / torch.linalg.vector_norm(peer.float()))


class Bench:
    def __init__(self, arguments):
        self.seconds = arguments.seconds
        self.report = gpu_timing.Report(arguments.write)
        self.report.line(f"# {torch.cuda.get_device_name(0)}, Samebit {samebit.version()}, "
                         f"PyTorch {torch.__version__}")
        self.ceilings = gpu_timing.Ceilings(self.report)
        self.wrong = []

    def run(self, name, sides, products):
        """`sides`: {name: function}, of which the first is Samebit's; `products`: operations of all
        that must be multiplied."""
        memory, results = {}, {}
        for side, function in sides.items():
            function()  # compiles, and makes what stays
            memory[side], results[side] = peak(function)
        limit = products / self.ceilings.rate * 1e3
        # Launches take many milliseconds: graphs would only keep their memory.
        timings = gpu_timing.alternate(
            [gpu_timing.Side([lambda stream, run=function: run()], 1e3 * limit, eager=True)
             for function in sides.values()], self.seconds)
        times = {side: timing.median() / 1e3 for side, timing in zip(sides, timings)}
        ours, *peers = sides
        peer = min(peers, key=times.get)
        least = min(memory[each] for each in peers)
        far = distance_of(results[ours], results["torch"])
        is_wrong = not far < 2e-2
        self.report.line(
            f"bench {name} samebit={times[ours]:.4g} peer={times[peer]:.4g} unit=ms "
            f"ratio={times[peer] / times[ours]:.3f} "
            + " ".join(f"{each}={times[each]:.4g}" for each in peers)
            + f" mb={memory[ours]:.0f}/{least:.0f} memory_ratio={least / max(memory[ours], 1e-3):.1f}"
            f" limit={limit:.4g} of_limit={limit / times[ours]:.3f} distance={far:.2g}"
            f" noise={100 * max(timing.noise() for timing in timings):.1f}%"
            + (" WRONG" if is_wrong else ""))
        if is_wrong:
            self.wrong.append(name)


def distance_of(ours, peer):
    """The largest distance of a result, or of several."""
    if isinstance(ours, torch.Tensor):
        ours, peer = (ours,), (peer,)
    return max(map(distance, ours, peer))


def run_case(bench, case, wanted):
    for name in wanted:
        if "train" in name:
            # Two products more; Samebit's backward pass computes the logits again besides.
            bench.run(name, {"ours": lambda: case.training(case.ours),
                             "torch": lambda: case.training(case.plain)}, 3 * case.work)
        else:
            bench.run(name, {"ours": lambda: case.inference(case.ours),
                             "torch": lambda: case.inference(case.plain),
                             "fused": lambda: case.inference(case.fused)}, case.work)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--only", help="cases whose name this regular expression is found in")
    parser.add_argument("--seconds", type=float, default=3.0, help="for one case")
    parser.add_argument("--write", help="also write the lines to this file")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    bench = Bench(arguments)
    for shape in SHAPES:
        extents = "x".join(map(str, shape))
        wanted = [name for name in (f"logp/{extents}", f"logp/train/{extents}")
                  if not arguments.only or re.search(arguments.only, name)]
        if not wanted:
            continue
        run_case(bench, Case(*shape), wanted)
    bench.report.line(f"# {bench.report.elapsed():.0f} s"
                      + (f"; WRONG: {' '.join(bench.wrong)}" if bench.wrong else ""))
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
