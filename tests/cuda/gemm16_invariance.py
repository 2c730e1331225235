"""What check_gemm16.py asks of products of a batch: that no row knows of another.

Every sweep compares with rows that were computed alone. A forward product is a callable, so that the
same sweeps can be given one that splits K by the number of rows, which they must find out.
"""

import random

import torch

from samebit import _products
from gemm16_cases import INTEGERS


def stream(device):
    return torch.cuda.current_stream().cuda_stream if device == "cuda" else 0


class Count:
    """Compared and differing elements, counted where the tensors lie, so that nothing waits."""

    def __init__(self, device):
        self.compared, self.refused = 0, 0
        self.differing = torch.zeros((), dtype=torch.int64, device=device)

    def compare(self, ours, expected):
        integer = INTEGERS[ours.dtype]
        self.compared += ours.numel()
        self.differing += (ours.view(integer) != expected.view(integer)).sum()

    def __str__(self):
        return f"{self.compared} compared, {int(self.differing)} differ, {self.refused} refused"


class Forward:
    """y = x · Wᵀ by a schedule; None where the schedule refuses."""

    def __init__(self, engine, device, schedule=None):
        self.engine, self.device, self.schedule = engine, device, schedule

    def __call__(self, x, weight, out=None):
        if out is None:
            out = torch.empty(x.shape[0], weight.shape[0], dtype=x.dtype, device=x.device)
        product = _products.product(self.engine, x, weight.t(), out, schedule=self.schedule)
        if _products.refused(product.run, stream(self.device)):
            return None
        return out


class SplitForward(Forward):
    """The mistake that the sweeps must find: few rows are computed as two halves of K, added in f32."""

    MOST_ROWS = 16

    def __call__(self, x, weight, out=None):
        if x.shape[0] > self.MOST_ROWS:
            return super().__call__(x, weight, out)
        half, sums = x.shape[1] // 2, []
        for part in (slice(None, half), slice(half, None)):
            sums.append(torch.empty(x.shape[0], weight.shape[0], device=x.device))
            _products.product(self.engine, x[:, part], weight[:, part].t(), sums[-1]).run(
                stream(self.device))
        total = (sums[0] + sums[1]).to(x.dtype)
        return total if out is None else out.copy_(total)


class Rows:
    """Rows, a weight, and each row's result alone; twice, so that every cut from any row on is a view."""

    def __init__(self, forward, dtype, count, k, n, seed=1):
        generator = torch.Generator(forward.device).manual_seed(seed)
        x = torch.randn(count, k, generator=generator, device=forward.device).to(dtype)
        self.weight = torch.randn(n, k, generator=generator, device=forward.device).to(dtype)
        alone = torch.empty(count, n, dtype=dtype, device=forward.device)
        for row in range(count):
            forward(x[row:row + 1], self.weight, alone[row:row + 1])
        self.count, self.x, self.alone = count, torch.cat([x, x]), torch.cat([alone, alone])


def check(count, forward, rows, x, start, keep=slice(None)):
    """Rows `keep` of the product of x against those computed alone from row `start` on."""
    y = forward(x, rows.weight)
    if y is None:
        count.refused += 1
    else:
        count.compare(y[keep], rows.alone[start:start + x.shape[0]][keep])


def sweep_positions(count, forward, rows):
    """Batches of every size; each begins at another row, so that rows come to lie everywhere."""
    for size in range(2, rows.count + 1):
        start = size * 997 % rows.count
        check(count, forward, rows, rows.x[start:start + size], start)


def sweep_neighbours(count, forward, rows):
    """Every other row is NaN, infinite or as large as can be."""
    largest = torch.finfo(rows.x.dtype).max
    sizes = [size for size in range(2, rows.count + 1) if size <= 64 or size % 37 == 0]
    for value in (float("nan"), float("inf"), largest, -largest):
        for parity in (0, 1):
            x = rows.x.clone()
            x[parity::2] = value
            for size in sizes:
                start = size * 997 % rows.count
                keep = slice((start + parity + 1) % 2, None, 2)
                check(count, forward, rows, x[start:start + size], start, keep)


def sweep_chunks(count, forward, rows):
    """All rows at once, in chunks, and 1,000 of them one by one."""
    check(count, forward, rows, rows.x[:rows.count], 0)
    for chunk in (1, 2, 3, 7, 16, 17, 63, 64, 65, 100, 128, 129, 1000):
        for start in range(0, min(rows.count, 1000 * chunk), chunk):
            size = min(chunk, rows.count - start)
            check(count, forward, rows, rows.x[start:start + size], start)


def sweep_padding(count, forward, rows):
    """Zero or NaN rows behind, zeros behind k, more columns."""
    k, n = rows.x.shape[1], rows.weight.shape[0]
    for size in (1, 5, 64, 100, rows.count):
        for padding in (1, 3, 64, 128):
            for value in (0.0, float("nan")):
                more = torch.full((padding, k), value, dtype=rows.x.dtype, device=rows.x.device)
                check(count, forward, rows, torch.cat([rows.x[:size], more]), 0, slice(size))
            for beyond in (0, padding):
                x = torch.nn.functional.pad(rows.x[:size], (0, padding))
                weight = torch.nn.functional.pad(rows.weight, (0, padding, 0, beyond))
                y = forward(x, weight)
                if y is None:
                    count.refused += 1
                else:
                    count.compare(y[:, :n], rows.alone[:size])


def odd_view(tensor, offset, step, gap):
    """The same elements in a view into NaN: `offset` elements in, `step` apart, with a `gap` between lines."""
    lines, length = tensor.shape
    line = length * step + gap
    block = torch.full((offset + lines * line,), float("nan"), dtype=tensor.dtype,
                       device=tensor.device)
    view = torch.as_strided(block, (lines, length), (line, step), offset)
    return view.copy_(tensor)


def sweep_views(count, forward, rows):
    """Operands and results in views with odd strides, and transposed."""
    for size in (1, 2, 17, 64, 100, rows.count):
        for offset, step, gap in ((1, 1, 0), (0, 1, 1), (3, 1, 7), (1, 2, 3), (8, 1, 8)):
            x, expected = rows.x[:size], rows.alone[:size]
            weight = odd_view(rows.weight, offset, step, gap)
            for left, right in ((odd_view(x, offset, step, gap), rows.weight), (x, weight),
                                (odd_view(x, offset, step, gap), weight),
                                (x.t().contiguous().t(), rows.weight),
                                (x, rows.weight.t().contiguous().t())):
                y = forward(left, right, odd_view(expected.abs() + 1, offset, step, gap))
                if y is None:
                    count.refused += 1
                else:
                    count.compare(y.contiguous(), expected)


SWEEPS = {"at every position of batches": sweep_positions, "beside NaN and huge rows": sweep_neighbours,
          "in chunks": sweep_chunks, "with padding": sweep_padding, "in odd views": sweep_views}

# ---- gradients of weights ----


class Gradient:
    """dW = dyᵀ · x over samples, accumulated in f32; None where the schedule refuses."""

    def __init__(self, engine, device, schedule=None):
        self.engine, self.device, self.schedule = engine, device, schedule

    def __call__(self, x, dy, lengths, out, accumulate):
        product = _products.product(self.engine, dy.t(), x, out, lengths=lengths,
                                     accumulate=accumulate, schedule=self.schedule)
        if _products.refused(product.run, stream(self.device)):
            return None
        return out


class AddedGradient(Gradient):
    """The mistake that the sweep must find: micro-batches' gradients are added, not continued."""

    def __call__(self, x, dy, lengths, out, accumulate):
        part = super().__call__(x, dy, lengths, torch.empty_like(out), False)
        return out.copy_(out + part if accumulate else part)


class Samples:
    """64 samples of uneven length, and their gradient in one call."""

    def __init__(self, gradient, dtype, k, n, count=64, longest=200, seed=2):
        draw = random.Random(seed)
        self.lengths = [draw.choice([0, 1, 15, 16, 17, 33, draw.randint(0, longest)])
                        for _ in range(count)]
        self.starts = [sum(self.lengths[:i]) for i in range(count + 1)]
        generator = torch.Generator(gradient.device).manual_seed(seed)
        self.x, self.dy = (torch.randn(self.starts[-1], width, generator=generator,
                                       device=gradient.device).to(dtype) for width in (k, n))
        self.whole = gradient(self.x, self.dy, self.lengths, self.new(), False)

    def new(self):
        return torch.empty(self.dy.shape[1], self.x.shape[1], device=self.x.device)


def splits(samples, seed=3):
    """Lists of the samples that micro-batches begin with: in two, in equal parts, at random."""
    draw, count = random.Random(seed), len(samples.lengths)
    yield []
    yield from ([cut] for cut in range(1, count))
    yield from (list(range(size, count, size)) for size in range(1, count))
    for _ in range(200):
        yield sorted(draw.sample(range(1, count), draw.randint(1, count - 1)))


def sweep_splits(count, gradient, samples):
    for cuts in splits(samples):
        out = samples.new()
        for first, last in zip([0] + cuts, cuts + [len(samples.lengths)]):
            rows = slice(samples.starts[first], samples.starts[last])
            out = gradient(samples.x[rows], samples.dy[rows], samples.lengths[first:last], out,
                           first > 0)
            if out is None:
                count.refused += 1
                break
        else:
            count.compare(out, samples.whole)


def sweep_sample_padding(count, gradient, samples):
    """Samples with zeros behind them, to 16 rows or to the longest one's, with a row map and without;
    rounded to 16 bits; long samples in parts."""
    longest = -(-max(samples.lengths) // 16) * 16
    for height in (lambda rows: -(-rows // 16) * 16, lambda rows: longest):
        parts = [[torch.nn.functional.pad(operand[start:start + rows], (0, 0, 0, height(rows) - rows))
                  for start, rows in zip(samples.starts, samples.lengths)]
                 for operand in (samples.x, samples.dy)]
        x, dy = (torch.cat(each) for each in parts)
        for lengths in (None, [height(rows) for rows in samples.lengths]):
            compare_gradient(count, gradient(x, dy, lengths, samples.new(), False), samples.whole)
    narrow = samples.new().to(samples.x.dtype)
    compare_gradient(count, gradient(samples.x, samples.dy, samples.lengths, narrow, False),
                     samples.whole.to(narrow.dtype))
    parts = [part for rows in samples.lengths
             for part in [16] * (rows // 16) + [rows % 16]]
    compare_gradient(count, gradient(samples.x, samples.dy, parts, samples.new(), False),
                     samples.whole)


def compare_gradient(count, ours, expected):
    if ours is None:
        count.refused += 1
    else:
        count.compare(ours, expected)
