"""Writes ONNX models of single nodes over initialisers, and runs them: enough of protobuf and npz for that."""
import ast
import math
import os
import struct
import subprocess
import zipfile

CODES = {"f32": 1, "u8": 2, "s8": 3, "s32": 6, "s64": 7, "bool": 9, "f16": 10, "f64": 11, "bf16": 16}
PACKED = {"f32": "f", "u8": "B", "s8": "b", "s32": "i", "s64": "q", "bool": "?", "f16": "e", "f64": "d"}


def varint(number):
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def typed(name, dtype):
    """A value of a graph: its name and its element type."""
    return field(1, name) + field(2, field(1, field(1, CODES[dtype])))


def square_graph(dtype):
    """A graph of one node, the square of its input."""
    node = field(1, "x") + field(1, "x") + field(2, "y") + field(4, "Mul")
    return field(1, node) + field(2, "square") + field(11, typed("x", dtype)) + field(12, typed("y", dtype))


def attribute(name, value):
    if isinstance(value, bytes):
        return field(1, name) + field(6, value) + field(20, 5)
    items = value if isinstance(value, list) else [value]
    kind = {int: 2, float: 1, str: 3}[type(items[0])]
    if isinstance(value, list):
        kind, number = kind + 5, {int: 8, float: 7, str: 9}[type(items[0])]
    else:
        number = {int: 3, float: 2, str: 4}[type(value)]
    return field(1, name) + b"".join(field(number, item) for item in items) + field(20, kind)


class Tensor:
    """A dtype, dimensions, and numbers in row-major order."""

    def __init__(self, dtype, dims, values):
        self.dtype, self.dims, self.values = dtype, list(dims), list(values)
        assert len(self.values) == math.prod(self.dims)

    def at(self, *index):
        offset = 0
        for extent, i in zip(self.dims, index):
            offset = offset * extent + i
        return self.values[offset]

    def encode(self, name):
        if self.dtype == "bf16":
            data = b"".join(struct.pack("<f", x)[2:] for x in self.values)
        else:
            data = struct.pack("<%d%s" % (len(self.values), PACKED[self.dtype]), *self.values)
        return b"".join(field(1, d) for d in self.dims) + field(2, CODES[self.dtype]) + field(8, name) + field(9, data)


class Model:
    """Nodes over initialisers; every output is widened to f64 or s64, which is exact."""

    def __init__(self):
        self.nodes, self.initialisers, self.outputs = [], [], []

    def add(self, op, inputs, output_count, attributes):
        """Adds a node, of an operator or DOMAIN:OPERATOR; returns the names of its outputs."""
        domain, op = op.rpartition(":")[::2]
        names = []
        for tensor in inputs:
            names.append("" if tensor is None else "i%d" % len(self.initialisers))
            if tensor is not None:
                self.initialisers.append(tensor.encode(names[-1]))
        outputs = ["o%d_%d" % (len(self.nodes), i) for i in range(output_count)]
        self.nodes.append(
            b"".join(field(1, n) for n in names)
            + b"".join(field(2, n) for n in outputs)
            + field(4, op)
            + field(7, domain)
            + b"".join(field(5, attribute(*pair)) for pair in attributes.items())
        )
        return outputs

    def widen(self, name, dtype):
        wide = "w" + name
        code = CODES["f64" if dtype in ("f16", "bf16", "f32", "f64") else "s64"]
        self.nodes.append(field(1, name) + field(2, wide) + field(4, "Cast") + field(5, attribute("to", code)))
        self.outputs.append((wide, code))
        return wide

    def run(self, samebit, folder):
        """Runs the model; returns the outputs as {name: (dims, numbers)}."""
        graph = b"".join(field(1, node) for node in self.nodes) + field(2, "definitions")
        graph += b"".join(field(5, tensor) for tensor in self.initialisers)
        for name, code in self.outputs:
            graph += field(12, field(1, name) + field(2, field(1, field(1, code))))
        domains = field(8, field(1, "") + field(2, 27)) + b"".join(
            field(8, field(1, name) + field(2, 1)) for name in ("ai.onnx.preview", "samebit"))
        path, result = os.path.join(folder, "model.onnx"), os.path.join(folder, "result.npz")
        with open(path, "wb") as file:
            file.write(field(1, 8) + field(7, graph) + domains)
        subprocess.run([samebit, "run", path, "--output", result, "--threads", "1"], check=True, stdout=subprocess.DEVNULL)
        with zipfile.ZipFile(result) as archive:
            return {entry[:-4]: read_npy(archive.read(entry)) for entry in archive.namelist()}


def read_npy(data):
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10 : 10 + length].decode())
    count = math.prod(header["shape"])
    kind = {"<f8": "d", "<i8": "q"}[header["descr"]]
    return list(header["shape"]), list(struct.unpack("<%d%s" % (count, kind), data[10 + length :]))
