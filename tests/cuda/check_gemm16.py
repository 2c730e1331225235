#!/usr/bin/env python3
"""16-bit products on a GPU: their bits against the CPU's, and that no row knows of its batch.

    python check_gemm16.py --library libsamebit.so [--only bits|order|invariance]
                           [--outputs N] [--products P] [--seconds S]

bits: random products (gemm16_cases.py) by every schedule that can run them, compared with the CPU
engine byte by byte, together with the memory around C, until N elements of P products have been
compared. NaNs too must be the same. `--case SEED` repeats one.
order: products that read what those just before them wrote, with no pause between (gemm16_order.py).
invariance: the sweeps of gemm16_invariance.py by every schedule, and by products with two planted
mistakes, in which they must find differences.

Exit status 1 at the first difference, when a schedule never ran, when N was not reached in time, and
when a planted mistake was not found. Under compute-sanitizer set PYTORCH_NO_CUDA_MEMORY_CACHING=1.
With `--device cpu` another instruction set of the CPU is tested, which tests the check.
"""

import argparse
import collections
import pathlib
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import samebit  # noqa: E402
from samebit import _products  # noqa: E402

import gemm16_cases  # noqa: E402
import gemm16_invariance as invariance  # noqa: E402
import gemm16_order  # noqa: E402


def say(text):
    print(text, flush=True)


class Bits:
    """Runs cases by every schedule and counts."""

    def __init__(self, engine, device):
        self.engine, self.device = engine, device
        self.cpu = samebit.Engine("cpu")
        self.cases, self.elements = 0, 0
        self.outputs = collections.Counter()  # of schedules
        self.ran = collections.Counter()
        self.refused = collections.Counter()
        self.reasons = collections.Counter()  # why whole cases were refused

    def run(self, case):
        """What is wrong, in words, or None."""
        start = case.there["c"].clone()
        reason = _products.refused(case.product(self.cpu, case.blocks).run)
        if reason:
            self.reasons[reason[:80]] += 1
            return None
        expected = case.blocks["c"]
        integer = gemm16_cases.INTEGERS[expected.dtype]
        there = expected.view(integer).to(self.device)
        blocks = dict(case.there, c=torch.empty_like(start))
        chosen = case.product(self.engine, blocks).chosen() if case.outputs else None
        for schedule in self.engine.schedules:
            blocks["c"].copy_(start)
            product = case.product(self.engine, blocks, schedule)
            if _products.refused(product.run, invariance.stream(self.device)):
                self.refused[schedule] += 1
                if schedule == chosen:
                    return f"{schedule} is chosen and refuses"
                continue
            if not torch.equal(blocks["c"].view(integer), there):
                return f"{schedule}: {case.difference(blocks['c'], expected)}"
            self.ran[schedule] += 1
            self.outputs[schedule] += case.outputs
        self.cases += 1
        self.elements += case.outputs
        return None

    def enough(self, arguments):
        return (sum(self.outputs.values()) >= arguments.outputs
                and self.cases >= arguments.products)

    def report(self):
        say(f"bits: {self.cases} products of {self.elements} elements; "
            f"{sum(self.outputs.values())} compared, 0 differ")
        for schedule in self.engine.schedules:
            say(f"bits: {schedule}: {self.outputs[schedule]} elements in {self.ran[schedule]} products, "
                f"{self.refused[schedule]} refused")
        for reason, count in self.reasons.items():
            say(f"bits: {count} refused by the CPU as well: {reason}")


def check_bits(engine, arguments):
    bits = Bits(engine, arguments.device)
    limits = () if arguments.device == "cuda" else (20_000, 5_000_000)
    seeds = [arguments.case] if arguments.case is not None else iter(
        range(arguments.seed, 1 << 62))
    end = time.monotonic() + arguments.seconds
    spoke = time.monotonic()
    for seed in seeds:
        case = gemm16_cases.Case(seed, arguments.device, *limits)
        wrong = bits.run(case)
        if wrong:
            bits.report()
            say(f"DIFFERENT: {wrong}\n{case}")
            return False
        if time.monotonic() > spoke + 10:
            spoke = time.monotonic()
            say(f"bits: … {sum(bits.outputs.values())} elements of {bits.cases} products")
        if bits.enough(arguments) or time.monotonic() > end:
            break
    bits.report()
    if arguments.case is not None:
        return True
    idle = [schedule for schedule in engine.schedules if not bits.ran[schedule]]
    if idle:
        say(f"NEVER RAN: {', '.join(idle)}")
    if not bits.enough(arguments):
        say(f"TOO FEW: {arguments.outputs} elements of {arguments.products} products were asked for; "
            "give it more --seconds")
    return not idle and bits.enough(arguments)


# dtype, K, N of what is swept over: operands that tensor copies take, odd ones, and larger ones.
SHAPES = [(torch.bfloat16, 1024, 512), (torch.float16, 777, 333), (torch.bfloat16, 2048, 2048)]
SMALL_SHAPES = [(torch.float16, 64, 24), (torch.bfloat16, 33, 17)]


def check_forward(engine, device, dtype, k, n, count):
    """Whether every schedule gives every row the same bits everywhere."""
    fine = True
    rows = invariance.Rows(invariance.Forward(engine, device), dtype, count, k, n)
    for schedule in [None] + engine.schedules:
        forward = invariance.Forward(engine, device, schedule)
        for name, sweep in invariance.SWEEPS.items():
            total = invariance.Count(device)
            sweep(total, forward, rows)
            say(f"invariance: {str(dtype)[6:]}, K {k}, N {n}, {schedule or 'chosen'}, {name}: {total}")
            fine &= int(total.differing) == 0
    return fine


def check_planted(engine, device, dtype, k, n, count):
    """Whether all sweeps in which some batches are split and others are not tell."""
    forward = invariance.SplitForward(engine, device)
    rows, fine = invariance.Rows(forward, dtype, count, k, n), True
    for name, sweep in invariance.SWEEPS.items():
        total = invariance.Count(device)
        sweep(total, forward, rows)
        say(f"invariance: planted: few rows split along K, {name}: {total}")
        fine &= int(total.differing) > 0
    samples = invariance.Samples(invariance.Gradient(engine, device), dtype, k, n)
    total = invariance.Count(device)
    invariance.sweep_splits(total, invariance.AddedGradient(engine, device), samples)
    say(f"invariance: planted: gradients of micro-batches added: {total}")
    fine &= int(total.differing) > 0
    if not fine:
        say("NOT FOUND: a planted mistake shows in no bit")
    return fine


def check_gradients(engine, device, dtype, k, n):
    fine = True
    samples = invariance.Samples(invariance.Gradient(engine, device), dtype, k, n)
    for schedule in [None] + engine.schedules:
        gradient = invariance.Gradient(engine, device, schedule)
        for name, sweep in (("in micro-batches", invariance.sweep_splits),
                            ("padded", invariance.sweep_sample_padding)):
            total = invariance.Count(device)
            sweep(total, gradient, samples)
            say(f"invariance: {str(dtype)[6:]}, dW of {n} x {k}, {schedule or 'chosen'}, "
                f"64 samples {name}: {total}")
            fine &= int(total.differing) == 0
    return fine


def check_invariance(engine, device):
    shapes, count = (SHAPES, 4096) if device == "cuda" else (SMALL_SHAPES, 80)
    fine = check_planted(engine, device, *shapes[0], count)
    for dtype, k, n in shapes:
        fine &= check_gradients(engine, device, dtype, k, n)
        fine &= check_forward(engine, device, dtype, k, n, count)
    return fine


def check_order(engine, device):
    cpu, fine = samebit.Engine("cpu"), True
    sizes, sequences, steps = ((64, 128, 256, 512, 520, 1024), 8, 40) if device == "cuda" else (
        (32, 33), 2, 10)
    for size in sizes:
        differing, compared = 0, 0
        for seed in range(sequences):
            dtype = (torch.bfloat16, torch.float16)[seed % 2]
            each = gemm16_order.check_order(engine, cpu, device, dtype, size, steps, seed)
            differing, compared = differing + each[0], compared + each[1]
        say(f"order: {sequences} sequences of {steps} products of {size} x {size}: {compared} compared, "
            f"{differing} differ")
        fine &= differing == 0
    return fine


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--only", choices=["bits", "order", "invariance"])
    parser.add_argument("--outputs", type=lambda text: int(float(text)), default=10 ** 9,
                        help="elements to compare, each with each schedule")
    parser.add_argument("--products", type=int, default=1500, help="that they are elements of")
    parser.add_argument("--seconds", type=float, default=300, help="at most for comparing them")
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--case", type=int, help="only the case of this seed")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    engine = (samebit.Engine("cuda:0") if arguments.device == "cuda" else
              samebit.Engine("cpu", isa="scalar"))
    say(f"# {torch.cuda.get_device_name(0) if arguments.device == 'cuda' else 'CPU'}, Samebit "
        f"{samebit.version()}, schedules {', '.join(engine.schedules)}")
    start, fine = time.monotonic(), True
    if arguments.only in (None, "bits"):
        fine &= check_bits(engine, arguments)
    if arguments.only in (None, "order") and arguments.case is None:
        fine &= check_order(engine, arguments.device)
    if arguments.only in (None, "invariance") and arguments.case is None:
        fine &= check_invariance(engine, arguments.device)
    say(f"# {time.monotonic() - start:.0f} s: {'all the same' if fine else 'FAILED'}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
