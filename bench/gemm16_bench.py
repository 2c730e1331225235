#!/usr/bin/env python3
"""Compare Samebit's bf16 products with cuBLAS (through PyTorch) and a plain Triton kernel, on a GPU.

    python gemm16_bench.py --library libsamebit.so [--only REGEX] [--quick] [--schedule NAME] [--write FILE]

    gemm/fwd/MxKxN     y[M,N] = x[M,K] · Wᵀ, W[N,K] as nn.Linear has it
    gemm/fwd-kn/MxKxN  y[M,N] = x[M,K] · B[K,N]
    gemm/dA/MxKxN      dx[M,K] = dy[M,N] · W[N,K]
    gemm/dB/MxKxN      dW[N,K] = dyᵀ · x
    gemm/samples8/MxKxN, gemm/samples64/MxKxN  the same with a row map of so many samples of uneven
                       length, which pads them; the peer, which knows no samples, without
    gemm/silu/MxKxN    y[M,N] = silu(x · Wᵀ + b); the peer computes x · Wᵀ alone
    gemm/gated/MxKxN   y[M,N] = silu(x · Gᵀ) * (x · Uᵀ), G[N,K] above U[N,K]; the peer computes x · [G U]ᵀ alone
    gemm/residual/MxKxN  y[M,N] = x · Wᵀ + b + r, r[M,N] in bf16; the peer computes x · Wᵀ alone
    gemm/accumulate/MxKxN, gemm/accumulate64/MxKxN  dW[N,K] += dyᵀ · x in f32, as micro-batches do, without and with a row map of
                       64 samples; the peer computes dyᵀ · x alone, in bf16
    skinny/MxKxN       as fwd, of few rows
    odd/MxKxN, odd2/MxKxN  as fwd, of shapes drawn at random from networks' widths: no schedule was fitted to them. The
                       first forty have been looked at one by one, the others only as a whole

Times are medians in microseconds; a ratio above 1 means that Samebit is faster. `limit` is what the
measured matrix rate and read bandwidth allow, `of_limit` the share of it that Samebit reaches. `differ`
counts elements whose bits are not cuBLAS's, which are the same where cuBLAS does not split K. See
gpu_timing.py for how time is taken. Exit status 1 when a result is wrong.
"""

import argparse
import pathlib
import random
import re
import statistics
import sys

import torch

import gpu_timing
import triton_matmul

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402
from samebit import _products  # noqa: E402

LAYERS = [(4096, 12288), (4096, 4096), (4096, 14336), (14336, 4096), (4096, 32000)]
ROWS = [128, 256, 512, 1024, 2048]
LARGE = 4096
SKINNY = [(2048, 2048), (2048, 8192), (8192, 2048), (4096, 4096), (4096, 14336), (14336, 4096),
          (2048, 128256)]
SKINNY_ROWS = [1, 8, 16, 32, 64]
FAMILIES = ["fwd", "fwd-kn", "dA", "dB"]
# Hidden sizes, products of heads and feed-forward sizes of published language, vision and speech networks.
WIDTHS = [384, 512, 576, 640, 768, 896, 960, 1024, 1152, 1280, 1536, 1600, 1792, 1920, 2048, 2304, 2560, 2816, 2880, 3072,
          3200, 3584, 4096, 4304, 4864, 5120, 5504, 6144, 6912, 7168, 8192, 8960, 9216, 10240, 11008, 12288, 13824, 14336]
ODD_CASES = 40
# Of short k: adapters of a low rank, heads, and gradients of weights behind few rows.
SHORT = [("fwd", m, k, n) for m in (512, 4096, 8192) for k in (16, 64, 128) for n in (1024, 2880, 8192)] + \
        [("dB", m, k, n) for m in (16, 32, 96, 192) for k, n in [(2048, 8192), (4096, 6144), (1536, 1536)]]


def cases(quick):
    """(name, family, group of the means, M, K, N), the large ones first."""
    large = [(LARGE, *layer) for layer in LAYERS] + [(8192,) * 3]
    small = [(rows, *layer) for rows in ROWS for layer in LAYERS]
    skinny = [(rows, *layer) for rows in SKINNY_ROWS for layer in SKINNY]
    families = FAMILIES
    if quick:
        families = ["fwd", "dA", "dB"]
        small, skinny = small[::7], skinny[::4]
    for group, shapes in (("large", large), ("small", small)):
        for family in families:
            for m, k, n in shapes:
                yield f"gemm/{family}/{m}x{k}x{n}", family, f"{family}, {group}", m, k, n
    for family in ("silu", "gated", "residual", "accumulate", "accumulate64"):
        for m, k, n in large[:1] if quick else large[:3]:
            yield f"gemm/{family}/{m}x{k}x{n}", family, family, m, k, n
    for family in ("samples8", "samples64"):
        for m, k, n in large[:1] if quick else large[:-1]:
            yield f"gemm/{family}/{m}x{k}x{n}", family, family, m, k, n
    for group, seed in (("odd", 40), ("odd2", 52)):
        for m, k, n in odd_shapes(seed)[::5 if quick else 1]:
            yield f"{group}/{m}x{k}x{n}", "fwd", group, m, k, n
    for family, m, k, n in SHORT[::5 if quick else 1]:
        yield f"short/{family}/{m}x{k}x{n}", family, "short", m, k, n
    for m, k, n in skinny:
        yield f"skinny/{m}x{k}x{n}", "fwd", "skinny", m, k, n


def odd_shapes(seed):
    """Rows from 1 to 4,096, small ones as likely as large ones."""
    draw = random.Random(seed)
    return [(round(2 ** draw.uniform(0, 12)), draw.choice(WIDTHS), draw.choice(WIDTHS)) for _ in range(ODD_CASES)]


def operands(family, m, k, n):
    """The two factors, as views that may be transposed."""
    def normal(rows, columns):
        return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)

    if family in ("fwd", "silu", "residual"):
        return normal(m, k), normal(n, k).t()
    if family == "gated":
        return normal(m, k), normal(2 * n, k).t()
    if family == "fwd-kn":
        return normal(m, k), normal(k, n)
    if family == "dA":
        return normal(m, n), normal(n, k)
    return normal(m, n).t(), normal(m, k)


def uneven_lengths(rows, count):
    """Of so many samples that make `rows` together."""
    draw = random.Random(rows)
    ends = sorted(draw.sample(range(1, rows), count - 1))
    return [end - start for start, end in zip([0] + ends, ends + [rows])]


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.report = gpu_timing.Report(arguments.write)
        samebit.open_library(arguments.library)
        self.engine = samebit.Engine("cuda:0")
        self.report.line(
            f"# {torch.cuda.get_device_name(0)}, Samebit {samebit.version()}, numerics "
            f"{samebit.numerics_version()}, PyTorch {torch.__version__}, cuBLAS of CUDA "
            f"{torch.version.cuda}")
        self.ceilings = gpu_timing.Ceilings(self.report, 0.2 if arguments.quick else 0.6)
        self.groups = {}  # group: [(name, ratio, share of the limit, ratio to Triton)]
        self.wrong = []

    def run(self, name, family, group, m, k, n):
        a, b = operands(family, m, k, n)
        rows, inner, columns = *a.shape, b.shape[1]
        options, adds = {}, family.startswith("accumulate")
        if family.startswith("samples"):
            options = {"lengths": uneven_lengths(inner, int(family.removeprefix("samples")))}
        elif family == "silu":
            bias = torch.randn(columns, device="cuda")
            options = {"bias": bias, "activation": "silu"}
        elif family == "gated":
            options = {"gate": "stacked", "activation": "silu"}
        elif family == "residual":
            bias = torch.randn(columns, device="cuda")
            added = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
            options = {"bias": bias, "residual": added}
        elif adds:
            options = {"accumulate": True}
            if family == "accumulate64":
                options["lengths"] = uneven_lengths(inner, 64)
        moved = 8 if adds else 4 if family == "residual" else 2  # bytes of an element of what is written and added
        size = 2 * (rows * inner + inner * columns) + moved * rows * columns
        work = 2 * rows * inner * columns
        sets = [(a, b)] + [operands(family, m, k, n)
                           for _ in range(gpu_timing.sets_needed(size) - 1)]
        limit = self.ceilings.limit(work, size)

        def side(launch_for, width=columns, dtype=torch.bfloat16):
            """A side, and what it computes of the first set."""
            results = [torch.zeros(rows, width, device="cuda", dtype=dtype) for _ in sets]
            launches = [launch_for(*factors, out) for factors, out in zip(sets, results)]
            return gpu_timing.Side(launches, limit, self.arguments.eager), results[0]

        try:
            ours, our_result = side(lambda a, b, out: _products.product(
                self.engine, a, b, out, schedule=self.arguments.schedule, **options).run,
                columns // 2 if family == "gated" else columns,
                torch.float32 if adds else torch.bfloat16)
        except samebit.Error as error:
            if error.status != "unsupported" or not self.arguments.schedule:
                raise
            return self.report.line(f"# {name}: {error}")
        cublas, peer_result = side(
            lambda a, b, out: lambda stream: torch.matmul(a, b, out=out))
        sides = [ours, cublas]
        if not self.arguments.quick:
            sides.append(side(
                lambda a, b, out: lambda stream: triton_matmul.matmul(a, b, out))[0])
        timings = gpu_timing.alternate(sides, self.arguments.seconds)
        medians = [timing.median() for timing in timings]
        more = (f"gbps={size / medians[0] / 1e3:.0f}/{size / medians[1] / 1e3:.0f}"
                if group == "skinny" else
                f"tflops={work / medians[0] / 1e6:.0f}/{work / medians[1] / 1e6:.0f}")
        if len(medians) > 2:
            more += f" triton={medians[2]:.4g}"
        schedule = (self.arguments.schedule
                    or _products.product(self.engine, a, b, our_result, **options).chosen())
        if family == "silu":
            peer_result = torch.nn.functional.silu(peer_result.float() + bias).bfloat16()
        elif family == "gated":
            gate, value = peer_result.float().chunk(2, dim=1)
            peer_result = (torch.nn.functional.silu(gate) * value).bfloat16()
        elif family == "residual":
            peer_result = (peer_result.float() + bias + added.float()).bfloat16()
        elif adds:  # what all runs have added up, once
            our_result.zero_()
            _products.product(self.engine, a, b, our_result, **options).run(torch.cuda.current_stream().cuda_stream)
            our_result = our_result.bfloat16()
        differing = int((our_result.view(torch.int16) != peer_result.view(torch.int16)).sum())
        more += (f" same_as_cublas={1 - differing / our_result.numel():.4f} differ={differing}"
                 f" limit={limit:.4g} of_limit={limit / medians[0]:.3f}"
                 f" noise={100 * max(timing.noise() for timing in timings[:2]):.1f}%"
                 f" schedule={schedule}")
        if self.is_wrong(our_result, peer_result):
            self.wrong.append(name)
            more += " WRONG"
        ratio = self.report.bench(name, medians[0], medians[1], more)
        self.groups.setdefault(group, []).append(
            (name, ratio, limit / medians[0], medians[2] / medians[1] if len(medians) > 2 else 0.0))

    @staticmethod
    def is_wrong(ours, peer):
        """Whether results are further apart than roundings in another order explain."""
        difference = torch.linalg.vector_norm(ours.float() - peer.float())
        return not bool(difference <= 5e-3 * torch.linalg.vector_norm(peer.float()))

    def summary(self):
        for group, results in self.groups.items():
            ratios = [ratio for _, ratio, _, _ in results]
            lowest = min(results, key=lambda result: result[1])
            shares = statistics.geometric_mean(share for _, _, share, _ in results)
            text = (f"# {group}: geometric mean {statistics.geometric_mean(ratios):.3f}, lowest "
                    f"{lowest[1]:.3f} ({lowest[0]}), of the limit {shares:.3f}")
            if results[0][3]:
                triton = statistics.geometric_mean(each for _, _, _, each in results)
                text += f"; Triton takes {triton:.2f} times cuBLAS's time"
            self.report.line(text)
        self.target("large", ", large", 0.98, 0.93)
        self.target("small", ", small", 0.95, 0.0)
        self.target("skinny", "skinny", 0.0, 1.0)
        self.target("odd", "odd", 1.0, 0.85)
        self.target("odd2", "odd2", 1.0, 0.85)
        heavy = [(share, name) for name, _, share, _ in self.groups.get("skinny", [])
                 if self.weight_bytes(name) >= 64e6]
        if heavy:
            share, name = min(heavy)
            self.report.line(f"# target skinny, weights of 64 MB and more, 0.85 of the read bandwidth: "
                             f"lowest {share:.3f} ({name}): {'met' if share >= 0.85 else 'MISSED'}")

    def target(self, name, ending, mean, lowest):
        ratios = [ratio for group, results in self.groups.items() if group.endswith(ending)
                  for _, ratio, _, _ in results]
        if not ratios:
            return
        reached = statistics.geometric_mean(ratios)
        met = reached >= mean and min(ratios) >= lowest
        self.report.line(
            f"# target {name}, geometric mean {mean} and no case below {lowest}: {reached:.3f}, "
            f"{min(ratios):.3f}: {'met' if met else 'MISSED'}")

    @staticmethod
    def weight_bytes(name):
        _, k, n = (int(extent) for extent in name.split("/")[-1].split("x"))
        return 2 * k * n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--only", help="cases whose name this regular expression is found in")
    parser.add_argument("--quick", action="store_true", help="fewer cases, without Triton")
    parser.add_argument("--schedule", help="this one instead of the chosen one")
    parser.add_argument("--seconds", type=float, default=0.6, help="for one case")
    parser.add_argument("--eager", action="store_true", help="without CUDA graphs")
    parser.add_argument("--write", help="also write the lines to this file")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    for name, *case in cases(arguments.quick):
        if not arguments.only or re.search(arguments.only, name):
            bench.run(name, *case)
            torch.cuda.synchronize()
    bench.summary()
    bench.report.line(f"# {bench.report.elapsed():.0f} s"
                      + (f"; WRONG: {' '.join(bench.wrong)}" if bench.wrong else ""))
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
