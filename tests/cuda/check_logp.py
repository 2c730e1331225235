#!/usr/bin/env python3
"""linear_logp on a GPU: its bits against the CPU's, and that no row knows of its batch.

    python check_logp.py --library libsamebit.so [--seconds S] [--seed N] [--device cpu]

bits: random extents, dtypes, temperatures, ignored rows, log-probabilities and both gradients, byte by byte,
for S seconds.

model: a vocabulary of 151,936 and 4096 rows on the device; some of its rows alone on the CPU, and all of them again
in uneven parts on the device. Then the gradient of weight, whole and in micro-batches of samples.

Exit status 1 at the first difference. With `--device cpu` two runs on the CPU are compared, and extents are small:
that tests the check.
"""

import argparse
import pathlib
import random
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import samebit  # noqa: E402
from samebit.torch import linear_logp  # noqa: E402

INTEGERS = {2: torch.int16, 4: torch.int32}


def say(text):
    print(text, flush=True)


def differing(ours, expected, rounded_by_torch=False):
    """How many elements have other bits. PyTorch, which rounds a gradient of 16-bit weights, has another
    NaN on each device."""
    integer = INTEGERS[ours.element_size()]
    ours = ours.detach().to(expected.device).contiguous()
    expected = expected.detach().contiguous()
    differs = ours.view(integer) != expected.view(integer)
    if rounded_by_torch:
        differs &= ~(ours.isnan() & expected.isnan())
    return int(differs.sum())


def passes(device, hidden, weight, targets, grad, **options):
    """Log-probabilities, and the gradients of hidden and weight, computed on the device."""
    hidden, weight = (t.detach().to(device).requires_grad_() for t in (hidden, weight))
    logp = linear_logp(hidden, weight, targets.to(device), **options)
    return logp, *torch.autograd.grad(logp, (hidden, weight), grad.to(device))


class Case:
    """A random one. Some have what is not a number, and rows of nothing else."""

    def __init__(self, seed):
        choice = random.Random(seed)
        torch.manual_seed(seed)
        self.seed = seed
        self.m = choice.choice([1, 2, 7, 16, 33, 64, choice.randint(1, 300)])
        self.k = choice.choice([1, 8, 16, 64, choice.randint(1, 400)])
        self.v = choice.choice([1, 127, 128, 129, choice.randint(1, 3000), choice.randint(1, 20000)])
        dtype = choice.choice([torch.bfloat16, torch.float16])
        spread = choice.choice([0.0, 1.0, 5.0, 40.0])
        self.hidden = torch.randn(self.m, self.k).to(dtype)
        self.weight = (torch.randn(self.v, self.k) * (spread / self.k ** 0.5)).to(dtype)
        self.targets = torch.randint(0, self.v, (self.m,))
        self.targets[torch.rand(self.m) < 0.1] = -100
        self.grad = torch.randn(self.m)
        if choice.random() < 0.2:
            self.hidden[choice.randrange(self.m), 0] = choice.choice([float("inf"), float("nan"), 6e4])
        self.options = {"temperature": choice.choice([1.0, 0.7, 2.0])}
        if choice.random() < 0.5:
            cut = choice.randint(0, self.m)
            self.options["sample_lengths"] = [cut, self.m - cut]

    def __str__(self):
        return f"seed {self.seed}: M {self.m}, K {self.k}, V {self.v}, {self.hidden.dtype}, {self.options}"


def check_bits(device, seed, seconds):
    end, elements, cases = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        case = Case(seed + cases)
        operands = (case.hidden, case.weight, case.targets, case.grad)
        ours, expected = passes(device, *operands, **case.options), passes("cpu", *operands, **case.options)
        for name, one, other in zip(("logp", "d_hidden", "d_weight"), ours, expected):
            count = differing(one, other, name == "d_weight")
            elements += one.numel()
            if count:
                say(f"DIFFERENT: {count} of {one.numel()} in {name}, {case}")
                return False
        cases += 1
    say(f"bits: {cases} cases, {elements} elements compared, 0 differ")
    return True


def rows_alone(hidden, weight, targets, grad, logp, d_hidden, count):
    """Differing elements of `count` rows, each alone on the CPU."""
    total, weight = 0, weight.cpu()
    for row in random.Random(1).sample(range(len(targets)), count):
        part = slice(row, row + 1)
        own = hidden[part].cpu().requires_grad_()
        alone = linear_logp(own, weight, targets[part].cpu())
        total += differing(logp[part], alone)
        total += differing(d_hidden[part], *torch.autograd.grad(alone, own, grad[part].cpu()))
    return total


def in_parts(hidden, weight, targets, grad, logp, d_hidden):
    """Differing elements of all rows in uneven parts, on the device that they are on."""
    total, at, choice = 0, 0, random.Random(2)
    while at < len(targets):
        part = slice(at, at + choice.choice([1, 3, 16, 100, 777]))
        own = hidden[part].detach().requires_grad_()
        own_logp = linear_logp(own, weight, targets[part])
        total += differing(logp[part], own_logp)
        total += differing(d_hidden[part], *torch.autograd.grad(own_logp, own, grad[part]))
        at = part.stop
    return total


def d_weight(hidden, weight, targets, grad, lengths, batch):
    """The gradient of weight, added up over micro-batches of so many samples."""
    weight = weight.detach().requires_grad_()
    result, at = torch.zeros(weight.shape, device=weight.device), 0
    for first in range(0, len(lengths), batch):
        own = lengths[first:first + batch]
        part = slice(at, at + sum(own))
        linear_logp(hidden[part], weight, targets[part], sample_lengths=own,
                    main_grad=result).backward(grad[part])
        at = part.stop
    return result


def check_model(device, m, k, v, alone):
    torch.manual_seed(3)
    hidden = torch.randn(m, k, device=device).bfloat16().requires_grad_()
    weight = (torch.randn(v, k, device=device) * k ** -0.5).bfloat16()
    targets, grad = torch.randint(0, v, (m,), device=device), torch.randn(m, device=device)
    targets[::17] = -100
    logp = linear_logp(hidden, weight, targets)
    d_hidden, = torch.autograd.grad(logp, hidden, grad)
    hidden = hidden.detach()
    counts = {f"{alone} rows alone on the CPU": rows_alone(hidden, weight, targets, grad, logp, d_hidden, alone),
              "all rows in parts": in_parts(hidden, weight, targets, grad, logp, d_hidden)}
    lengths = [m // 7, 1, m // 3]
    lengths += [m - sum(lengths), 0]
    whole = d_weight(hidden, weight, targets, grad, lengths, len(lengths))
    for batch in (1, 2):
        counts[f"d_weight, {batch} samples at once"] = differing(
            d_weight(hidden, weight, targets, grad, lengths, batch), whole)
    for name, count in counts.items():
        say(f"model: {m} x {k} x {v}, {name}: {count} differ")
    return not any(counts.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="of random cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    extents = (4096, 4096, 151936, 16) if arguments.device != "cpu" else (150, 48, 3001, 5)
    fine = check_bits(arguments.device, arguments.seed, arguments.seconds)
    return 0 if fine and check_model(arguments.device, *extents) else 1


if __name__ == "__main__":
    sys.exit(main())
