#!/usr/bin/env python3
"""16-bit products on the tensor cores, conversions of all 2^32 floats, and all weights of attention in 16 bits, against the CPU.

    python check_exact.py --library libsamebit.so [--products N]

Products have random sizes, odd ones too, and data of many kinds: ordinary, of all exponents, with
infinities, NaN, zeros of both signs and subnormals. Exit 1 when a bit differs (every NaN equals
every NaN).
"""

import argparse
import pathlib
import sys
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import samebit  # noqa: E402

TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def save(path, nodes, inputs, output, opset=17):
    graph = helper.make_graph(
        nodes, "check",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 23 else 10),
              path)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs, [output], name=output, **attributes)


def same(ours, expected):
    """How many elements differ."""
    left, right = ours.view(numpy.uint32), expected.view(numpy.uint32)
    different = left != right
    if different.any():
        different &= ~(numpy.isnan(ours) & numpy.isnan(expected))
    return int(different.sum())


class Pair:
    """A model on the device and on the CPU."""

    def __init__(self, device, path):
        model = samebit.load(path)
        self.ours = model.session(device=device)
        self.cpu = model.session()

    def differing(self, inputs):
        return same(self.ours.run(inputs)["y"], self.cpu.run(inputs)["y"])


def draw(random, shape):
    kind = random.integers(0, 4)
    values = random.standard_normal(shape).astype(numpy.float32)
    if kind == 1:
        values *= numpy.exp2(random.integers(-30, 30, shape)).astype(numpy.float32)
    if kind >= 2:
        special = numpy.array([0.0, -0.0, 1.0, -1.0, 6e-8, -6e-8, 65504.0, 1e-40, numpy.inf,
                               -numpy.inf, numpy.nan, 1e38], numpy.float32)
        chosen = special[random.integers(0, 8 if kind == 2 else 12, shape)]
        values = numpy.where(random.random(shape) < 0.05, chosen, values)
    return values


def check_products(device, folder, count):
    total = 0
    for name, dtype in TYPES.items():
        path = folder / f"{name}.onnx"
        save(path, [node("Cast", ["a"], "left", to=dtype), node("Cast", ["b"], "right", to=dtype),
                    node("MatMul", ["left", "right"], "c"),
                    node("Cast", ["c"], "y", to=TensorProto.FLOAT)],
             [("a", ["batch", "m", "k"]), ("b", ["k", "n"])], ["batch", "m", "n"])
        pair, random, different, outputs = (
            Pair(device, path), numpy.random.default_rng(16), 0, 0)
        for index in range(count):
            m, n = (int(size) for size in random.integers(1, 150, 2))
            k = int(random.choice([1, 7, 15, 16, 17, 100, 256, 1000, 4096]))
            batch = int(random.integers(1, 4))
            different += pair.differing(
                {"a": draw(random, (batch, m, k)), "b": draw(random, (k, n))})
            outputs += batch * m * n
        print(f"products {name}: {count} of them, {outputs} outputs, {different} differ", flush=True)
        total += different
    return total


def check_casts(device, folder):
    total = 0
    for name, dtype in TYPES.items():
        path = folder / f"cast_{name}.onnx"
        save(path, [node("Cast", ["x"], "narrow", to=dtype),
                    node("Cast", ["narrow"], "y", to=TensorProto.FLOAT)], [("x", ["n"])], ["n"])
        pair, different = Pair(device, path), 0
        for start in range(0, 1 << 32, 1 << 27):
            bits = numpy.arange(start, start + (1 << 27), dtype=numpy.uint32)
            different += pair.differing({"x": bits.view(numpy.float32)})
        print(f"f32 to {name} and back: 2^32 inputs, {different} differ", flush=True)
        total += different
    return total


def held_in(name, values):
    """The values, or most of each, as numbers of a type."""
    if name == "f16":
        return values.astype(numpy.float16).astype(numpy.float32)
    return (values.astype(numpy.float32).view(numpy.uint32) & 0xffff0000).view(numpy.float32)


def check_weights(device, folder):
    """Every exponent that a weight of attention in 16 bits has, a multiple of 2^-12 from 1/2 to -127: a row of its own sees a key with
    that score, whose value is 1, and a key whose score and value are 0. So what comes out is p / (1 + p): of a weight p of less than
    2^-9 nearly that, so that another one would be seen."""
    total, scale = 0, 1 / 1.4426950408889634
    exponents = numpy.arange(-127 * 4096, 2049, dtype=numpy.float64) / 4096
    for name, dtype in TYPES.items():
        path = folder / f"weights-{name}.onnx"
        inputs = [("q", [1, 1, len(exponents), 16]), ("k", [1, 1, 2, 16]), ("v", [1, 1, 2, 16])]
        save(path, [*(node("Cast", [each], f"{each}16", to=dtype) for each, _ in inputs),
                    node("Attention", ["q16", "k16", "v16"], "y16", scale=scale),
                    node("Cast", ["y16"], "y", to=TensorProto.FLOAT)], inputs, [1, 1, len(exponents), 16], 23)
        queries, keys, values = (numpy.zeros(dims, numpy.float32) for _, dims in inputs)
        rest = exponents.copy()
        for part in range(4):  # what 16 bits hold, of that what is left, and so on: their sum is the score
            queries[0, 0, :, part] = held_in(name, rest)
            rest -= queries[0, 0, :, part]
        keys[0, 0, 1, :4] = 1
        values[0, 0, 1] = 1
        different = Pair(device, path).differing({"q": queries, "k": keys, "v": values})
        print(f"{name}: {different} of {len(exponents)} weights of attention differ")
        total += different
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--products", type=int, default=300)
    arguments = parser.parse_args()
    samebit.open_library(arguments.library)
    device = samebit.open_device("cuda")
    with tempfile.TemporaryDirectory() as folder:
        different = check_products(device, pathlib.Path(folder), arguments.products)
        different += check_weights(device, pathlib.Path(folder))
        different += check_casts(device, pathlib.Path(folder))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
