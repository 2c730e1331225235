#!/usr/bin/env python3
"""The products of one decode step of a language model in their order, each reading the last one's result, against cuBLAS.

    python chain_bench.py --library libsamebit.so [--only REGEX] [--seconds S] [--write FILE]

    chain/1B/bB  16 layers of 2048→3072, 2048→2048, 2048→2·8192 with SwiGLU, 8192→2048, then 2048→128256
    chain/8B/bB  32 layers of 4096→6144, 4096→4096, 4096→2·14336 with SwiGLU, 14336→4096, then 4096→128256

of B rows in bf16, captured as one CUDA graph. Where a product's result is wider than what the next reads, that reads its
first columns. cuBLAS computes the same products without the SwiGLU, of which the next one reads the first half. A launch
cannot begin before the one ahead has ended, which is what a model's layers are like and independent launches are not.

Times are medians of a step in microseconds; a ratio above 1 means that Samebit is faster. `of_reads` is the share of
the measured read bandwidth at which the weights go by.
"""

import argparse
import pathlib
import re
import sys

import torch

import gpu_timing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402
from samebit import _products  # noqa: E402

# name: (layers, [(K, N, whether gated)] of one layer, the last product)
MODELS = {
    "1B": (16, [(2048, 3072, False), (2048, 2048, False), (2048, 8192, True), (8192, 2048, False)], (2048, 128256)),
    "8B": (32, [(4096, 6144, False), (4096, 4096, False), (4096, 14336, True), (14336, 4096, False)], (4096, 128256)),
}
ROWS = [1, 8, 32]


def make_weights(name):
    """[(weights as nn.Linear has them, whether gated)] in order; small enough that values neither grow nor vanish."""
    layers, shapes, (inner, last) = MODELS[name]
    normal = lambda n, k: torch.randn(n, k, device="cuda", dtype=torch.bfloat16) * k ** -0.5  # noqa: E731
    return [(normal(2 * n if gated else n, k), gated) for _ in range(layers) for k, n, gated in shapes] + [
        (normal(last, inner), False)]


def our_step(engine, weights, start):
    """The step's launches, and the last result."""
    products, rows = [], start
    for weight, gated in weights:
        columns = weight.shape[0] // 2 if gated else weight.shape[0]
        out = torch.empty(rows.shape[0], columns, device="cuda", dtype=torch.bfloat16)
        options = {"gate": "stacked", "activation": "silu"} if gated else {}
        products.append(_products.product(engine, rows[:, :weight.shape[1]], weight.t(), out, **options))
        rows = out

    def launch(stream):
        for product in products:
            product.run(stream)

    return launch, rows


def peer_step(weights, start):
    results, rows = [], start
    for weight, _ in weights:
        out = torch.empty(rows.shape[0], weight.shape[0], device="cuda", dtype=torch.bfloat16)
        results.append((rows[:, :weight.shape[1]], weight.t(), out))
        rows = out

    def launch(stream):
        for a, b, out in results:
            torch.matmul(a, b, out=out)

    return launch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--only", help="cases whose name this regular expression is found in")
    parser.add_argument("--seconds", type=float, default=1.0, help="for one case")
    parser.add_argument("--write", help="also write the lines to this file")
    arguments = parser.parse_args()
    report = gpu_timing.Report(arguments.write)
    samebit.open_library(arguments.library)
    engine = samebit.Engine("cuda:0")
    report.line(f"# {torch.cuda.get_device_name(0)}, Samebit {samebit.version()}, PyTorch {torch.__version__}")
    ceilings = gpu_timing.Ceilings(report, 0.2)
    for name in MODELS:
        wanted = [rows for rows in ROWS if not arguments.only or re.search(arguments.only, f"chain/{name}/b{rows}")]
        weights = make_weights(name) if wanted else []
        size = 2 * sum(weight.numel() for weight, _ in weights)
        limit = 1e6 * size / ceilings.bandwidth
        for rows in wanted:
            start = torch.randn(rows, weights[0][0].shape[1], device="cuda", dtype=torch.bfloat16)
            ours, result = our_step(engine, weights, start)
            sides = [gpu_timing.Side([ours], limit), gpu_timing.Side([peer_step(weights, start)], limit)]
            timings = gpu_timing.alternate(sides, arguments.seconds)
            medians = [timing.median() for timing in timings]
            finite = bool(torch.isfinite(result.float()).all())
            report.bench(f"chain/{name}/b{rows}", *medians,
                         f"of_reads={limit / medians[0]:.3f}/{limit / medians[1]:.3f}"
                         f" noise={100 * max(timing.noise() for timing in timings):.1f}%" + ("" if finite else " WRONG"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
