"""Random 16-bit products for check_gemm16.py: shape, places in memory, data, epilogue, all from a seed."""

import math
import random

import torch

from samebit import _products

INTEGERS = {torch.float16: torch.int16, torch.bfloat16: torch.int16, torch.float32: torch.int32}


class Place:
    """Where a batch of matrices lies in a block of memory. `offset` is that of element (0, 0, 0)."""

    def __init__(self, dtype, extents, strides, before, behind):
        """`extents` and `strides` are of batch, row, column; strides may be negative, or zero."""
        self.dtype, self.extents, self.strides = dtype, extents, strides
        spans = [(extent - 1) * stride if all(extents) else 0
                 for extent, stride in zip(extents, strides)]
        self.lowest = before
        self.offset = before - sum(span for span in spans if span < 0)
        self.size = before + sum(map(abs, spans)) + 1 + behind

    def block(self, bits, generator):
        """Memory for it, all of it the pattern `bits`, or random when None."""
        integer = INTEGERS[self.dtype]
        if bits is not None:
            return torch.full((self.size,), bits, dtype=integer,
                              device=generator.device).view(self.dtype)
        limits = torch.iinfo(integer)
        return torch.randint(limits.min, limits.max, (self.size,), dtype=integer,
                             generator=generator, device=generator.device).view(self.dtype)

    def fill(self, block, values):
        """Puts values where the elements lie. Of elements that share a place, the first counts."""
        values = values.to(self.dtype)
        if values.numel() == 0:
            return
        extents = [1 if stride == 0 else extent
                   for extent, stride in zip(self.extents, self.strides)]
        values = values[tuple(slice(extent) for extent in extents)]
        backwards = [axis for axis, stride in enumerate(self.strides) if stride < 0]
        view = torch.as_strided(block, extents, [abs(stride) for stride in self.strides], self.lowest)
        view.copy_(values.flip(backwards) if backwards else values)

    def describe(self, block):
        batch, row, column = self.strides
        address = block.data_ptr() + self.offset * block.element_size()
        return (_products.DTYPES[self.dtype], address, *self.extents[1:], row, column, batch)

    def __repr__(self):
        return f"{str(self.dtype)[6:]}{list(self.extents)} strides {list(self.strides)} at {self.offset}"


def draw_place(draw, dtype, extents, is_written=False, aligned_column_major=None):
    """Where a matrix may lie; with `aligned_column_major` as it does in gradients of weights, and whether its columns
    lie one behind the other."""
    batches, rows, columns = extents
    column_major = draw.random() < (0.2 if is_written else 0.5)  # columns lie one behind the other
    if aligned_column_major is not None:
        column_major = aligned_column_major
    adjacent, lines = (rows, columns) if column_major else (columns, rows)
    kinds = ["tight", "aligned", "odd", "apart", "backwards"] + ([] if is_written else ["repeated"])
    kind = draw.choices(kinds, [8, 6, 8, 2, 1, 1][:len(kinds)])[0]
    if aligned_column_major is not None:
        kind = "aligned"
    step, line, before = 1, max(adjacent, 1), 0
    if kind == "aligned":
        line, before = -(-line // 8) * 8 + 8 * draw.randint(0, 4), 8 * draw.randint(0, 3)
    elif kind != "tight":
        before = draw.randint(0, 15)
        if kind in ("apart", "backwards"):
            step = draw.randint(2, 3) if kind == "apart" else draw.choice([-1, 1])
        line = line * abs(step) + draw.randint(0, 9)
        if kind == "backwards":
            line = -line
        elif kind == "repeated":
            line = 0
    batch = abs(line) * lines + (step if kind == "apart" else 0) + draw.choice([0, 0, 8, 3])
    if batches > 1 and not is_written and draw.random() < 0.2:
        batch = 0
    elif batch == 0:
        batch = adjacent  # of repeated lines, which are one
    strides = (batch, step, line) if column_major else (batch, line, step)
    return Place(dtype, extents, strides, before, draw.randint(0, 16))


# ---- data ----


def normal(shape, generator):
    return torch.randn(shape, generator=generator, device=generator.device)


def uniform(shape, generator):
    return torch.rand(shape, generator=generator, device=generator.device)


def integers(low, high, shape, generator, dtype=torch.int64):
    return torch.randint(low, high, shape, generator=generator, device=generator.device, dtype=dtype)


def sprinkled(values, chosen, share, generator):
    """`values`, a share of which is replaced by elements of `chosen`."""
    picks = torch.tensor(chosen, device=values.device)[
        integers(0, len(chosen), values.shape, generator)]
    return torch.where(uniform(values.shape, generator) < share, picks, values)


def any_bits(shape, dtype, generator, keep=-1):
    bits = integers(-(1 << 15), 1 << 15, shape, generator, torch.int16)
    values = (bits & keep).view(torch.bfloat16 if dtype == torch.float32 else dtype).float()
    return torch.where(values.isfinite(), values, 1.0)


def draw_values(kind, dtype, shape, generator):
    """f32 values that `dtype` holds or rounds, finite but for the kinds that are named after what is not."""
    largest = torch.finfo(torch.bfloat16 if dtype == torch.float32 else dtype).max
    values = normal(shape, generator)
    if kind == "wide":
        reach = 12 if dtype == torch.float16 else 60
        exponents = integers(-reach, reach + 1, shape, generator)
        values = torch.ldexp(values, exponents).clamp(-largest, largest)
    elif kind == "any":
        values = any_bits(shape, dtype, generator)
    elif kind == "subnormal":
        values = any_bits(shape, dtype, generator,
                          -0x7c01 + 0x0400 if dtype == torch.float16 else -0x7f81 + 0x0080)
    elif kind == "zeros":
        values = sprinkled(values, [0.0, -0.0], 0.75, generator)
    elif kind == "only zeros":
        values = sprinkled(values, [0.0, -0.0], 2.0, generator)
    elif kind == "largest":
        values = sprinkled(values, [largest, -largest], 0.3, generator)
    elif kind == "infinities":
        share = 2.0 / max(1, shape[-1] * shape[-2]) ** 0.5
        values = sprinkled(values, [math.inf, -math.inf], min(0.1, share), generator)
    elif kind == "nans":
        share = 2.0 / max(1, shape[-1] * shape[-2]) ** 0.5
        values = sprinkled(values, [math.nan, math.inf, 0.0], min(0.1, share), generator)
    elif kind == "cancelling":  # along both axes, whichever of them is summed over
        rows, columns = shape[1] // 2, shape[2] // 2
        values[:, :, columns:2 * columns] = -values[:, :, :columns] * (1 + 2.0 ** -8)
        values[:, rows:2 * rows] = -values[:, :rows]
    elif kind == "whole":
        values = values.mul(8).round()
    return values


KINDS = ["normal", "wide", "any", "subnormal", "zeros", "only zeros", "largest", "infinities", "nans",
         "cancelling", "whole"]
KIND_WEIGHTS = [8, 4, 2, 1, 2, 0.3, 1, 1, 1, 3, 1]

# ---- shapes ----


MOST_OPERAND = 20_000_000


def draw_shape(draw, most_outputs, most_work):
    """batches, M, N, K, whose outputs and products are not more than asked for."""
    def extent(low, high):
        size = draw.randint(low, high)
        whole = draw.choice([1, 1, 8, 16, 64])
        return max(low, size // whole * whole)

    batches, small_k = 1, [0, 1, 2, 7, 15, 16, 17, 31, 33, 64, 100]
    kind = draw.choices(["tiny", "odd", "skinny", "square", "huge", "deep", "tall", "empty"],
                        [3, 3, 4, 6, 4, 1, 1, 0.3])[0]
    if kind in ("tiny", "empty"):
        m, n, k = extent(1, 40), extent(1, 40), draw.choice(small_k)
        batches = draw.randint(1, 5)
    elif kind == "odd":
        m, n, k = extent(1, 300), extent(1, 300), extent(1, 600)
        batches = draw.randint(1, 3)
    elif kind == "skinny":
        m, n, k = extent(1, 64), extent(1, 9000), extent(1, 8192)
    elif kind == "square":
        m, n, k = extent(64, 2560), extent(64, 2560), extent(16, 1024)
        batches = draw.choice([1, 1, 1, 2])
    elif kind == "huge":
        m, n, k = extent(1024, 4096), extent(1024, 4096), extent(1, 300)
    elif kind == "deep":
        m, n, k = extent(1, 300), extent(1, 300), extent(8000, 40000)
    else:
        m, n, k = extent(10000, 200000), extent(1, 64), extent(1, 100)
        if draw.random() < 0.5:
            m, n = n, m
    shape = [batches, m, n, k]
    if kind == "empty":
        shape[draw.randrange(4)] = 0
    while (math.prod(shape[:3]) > most_outputs or math.prod(shape) > most_work
           or shape[0] * max(shape[1:3]) * shape[3] > MOST_OPERAND):
        largest = max(range(4), key=lambda axis: shape[axis])
        shape[largest] = (shape[largest] + 1) // 2
    if shape[3] > 64 and draw.random() < 0.5:  # what schedules of few rows want
        shape[3] -= shape[3] % 64
    return shape


def draw_lengths(draw, rows):
    """Row counts of samples that make `rows` together."""
    typical = draw.choice([1, 5, 16, 40, 200, 2000])
    lengths = []
    while rows > sum(lengths):
        left = rows - sum(lengths)
        lengths.append(min(left, draw.choice([0, 1, 15, 16, 17, draw.randint(0, 2 * typical)])))
        if len(lengths) >= 500:
            lengths.append(rows - sum(lengths))
    return lengths + [0] * draw.randint(0, 2)


# ---- cases ----


class Case:
    """One product: blocks of memory on a device and the same on the CPU, places in them, and options.
    A seed gives other data on another device."""

    def __init__(self, seed, device="cpu", most_outputs=4_000_000, most_work=3_000_000_000):
        self.seed = seed
        draw = random.Random(seed)
        generator = torch.Generator(device).manual_seed(seed)
        batches, m, n, k = draw_shape(draw, most_outputs, most_work)
        dtype = draw.choice([torch.bfloat16, torch.float16])
        either = (torch.float32, dtype)
        mode = draw.choices(["plain", "epilogue", "accumulate"], [4, 4, 2])[0]
        c_dtype = torch.float32 if mode == "accumulate" else draw.choice(either)
        kinds = draw.choices(KINDS, KIND_WEIGHTS, k=3)
        self.options = {"batches": batches}
        gate = "none"
        if mode == "accumulate":
            self.options["accumulate"] = True
        elif mode == "epilogue":
            gate = draw.choice(["none", "none", "stacked", "interleaved"])
            self.options.update(
                gate=gate, scale=draw.choice([1.0, 1.0, 0.5, 0.3337, -1.7, 0.0, 1e-30, 3e38]),
                activation=draw.choice(["none", "relu", "silu", "gelu", "gelu_tanh"]))
        if draw.random() < 0.2:
            self.options["lengths"] = draw_lengths(draw, k)
        is_plain_gate = gate != "none" and n >= 8 and draw.random() < 0.6  # weights as layers have them
        if is_plain_gate:
            n -= n % 8
        b_columns = n if gate == "none" else 2 * n

        self.places, self.there = {}, {}
        is_gradient = "lengths" in self.options and draw.random() < 0.6
        a_column_major, b_column_major = ((True, False) if is_gradient else (False, True) if is_plain_gate else (None, None))
        self.add(draw, generator, "a", dtype, (batches, m, k), kinds[0], a_column_major)
        self.add(draw, generator, "b", dtype, (batches, k, b_columns), kinds[1], b_column_major)
        self.add(draw, generator, "c", c_dtype, (batches, m, n),
                 kinds[2] if mode == "accumulate" else None)
        if mode == "epilogue" and draw.random() < 0.5:
            self.add(draw, generator, "bias", draw.choice(either), (batches, 1, b_columns), kinds[2])
        self.residual_is_c = False
        if mode == "epilogue" and draw.random() < 0.5:
            self.residual_is_c = draw.random() < 0.3
            if self.residual_is_c:
                self.places["c"].fill(self.there["c"],
                                      draw_values(kinds[2], c_dtype, (batches, m, n), generator))
            else:
                self.add(draw, generator, "residual", draw.choice(either), (batches, m, n), kinds[2])
        self.blocks = {name: block.cpu() for name, block in self.there.items()}
        self.outputs = batches * m * n
        self.kinds = kinds

    def add(self, draw, generator, name, dtype, extents, kind, aligned_column_major=None):
        """An operand with data of a kind; with None it has none yet. NaN lies around what is read,
        noise around what is written."""
        place = draw_place(draw, dtype, extents, name == "c", aligned_column_major)
        block = place.block(None if name == "c" else -1, generator)
        if kind:
            place.fill(block, draw_values(kind, dtype, extents, generator))
        self.places[name], self.there[name] = place, block

    def product(self, engine, blocks, schedule=None):
        """The product of these blocks."""
        described = {name: self.places[name].describe(block) for name, block in blocks.items()}
        if self.residual_is_c:
            described["residual"] = described["c"]
        return _products.Product(engine, schedule=schedule, **described, **self.options)

    def difference(self, ours, expected):
        """What differs first between two blocks of C, in words."""
        integer, place = INTEGERS[ours.dtype], self.places["c"]
        ours, expected = ours.view(integer).cpu(), expected.view(integer).cpu()
        where = torch.nonzero(ours != expected).flatten()
        view = torch.as_strided(torch.arange(place.size), place.extents,
                                [abs(stride) for stride in place.strides], place.lowest)
        view = view.flip([axis for axis, stride in enumerate(place.strides) if stride < 0])
        inside = torch.isin(where, view.flatten())
        first = int(where[0])
        text = f"{int(inside.sum())} of {self.outputs} elements differ"
        if not bool(inside.all()):
            text += f", {int((~inside).sum())} outside of C were written"
        mask = 0xffff if integer == torch.int16 else 0xffffffff
        at = torch.nonzero(view == first).tolist()
        return (f"{text}; first {'batch, row, column ' + str(at[0]) if at else 'outside'}: "
                f"{int(ours[first]) & mask:x} for {int(expected[first]) & mask:x}")

    def __str__(self):
        parts = [f"{name} {place}" for name, place in self.places.items()]
        options = dict(self.options)
        if len(options.get("lengths", [])) > 20:
            options["lengths"] = f"{len(options['lengths'])} samples"
        return (f"case {self.seed}: {'; '.join(parts)}; data {', '.join(self.kinds)}; {options}"
                + (", residual is C" if self.residual_is_c else ""))
