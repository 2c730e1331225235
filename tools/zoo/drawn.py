"""Models without their large weights, and such weights drawn again: what fits where the real ones do not.

Which kernels run, on which shapes, and whether two devices give the same bits does not depend on what weights are. Each that
is left out is drawn with the mean and the deviation that it had, so that numbers stay in the range for which the model was made.
"""

import json
import zlib

import numpy
import onnx

LEAST_BYTES = 1 << 15  # smaller ones stay: biases, factors of normalizations, tables of indices
KINDS = {onnx.TensorProto.FLOAT: "<f4", onnx.TensorProto.FLOAT16: "<f2", onnx.TensorProto.INT8: "i1", onnx.TensorProto.UINT8: "u1"}
KEY = "drawn"


def tensors(graph):
    """All tensors of a graph: initialisers, attributes of nodes, and those of graphs inside."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else ())):
                yield from tensors(inner)


def elements(tensor):
    return numpy.frombuffer(tensor.raw_data, KINDS[tensor.data_type]) if tensor.raw_data else \
        numpy.asarray(tensor.float_data, "<f4")


def emptied(model):
    """Takes the large weights out of the model."""
    told = []
    for number, tensor in enumerate(tensors(model.graph)):
        if tensor.data_type not in KINDS or (tensor.data_type != onnx.TensorProto.FLOAT and not tensor.raw_data):
            continue
        values = elements(tensor)
        if values.nbytes < LEAST_BYTES:
            continue
        told.append([number, float(values.mean(dtype="f8")), float(values.std(dtype="f8"))])
        tensor.ClearField("raw_data")
        del tensor.float_data[:]
    entry = model.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(told)
    return model


def filled(model):
    """Draws them again, by the model's own list: always the same ones."""
    (entry,) = [entry for entry in model.metadata_props if entry.key == KEY]
    told = {number: (mean, deviation) for number, mean, deviation in json.loads(entry.value)}
    for number, tensor in enumerate(tensors(model.graph)):
        if number not in told:
            continue
        mean, deviation = told[number]
        kind = numpy.dtype(KINDS[tensor.data_type])
        rng = numpy.random.default_rng([number, zlib.crc32(tensor.name.encode())])
        values = mean + deviation * rng.standard_normal(int(numpy.prod(tensor.dims)), numpy.float32)
        if kind.kind in "iu":
            limits = numpy.iinfo(kind)
            values = values.round().clip(limits.min, limits.max)
        tensor.raw_data = values.astype(kind).tobytes()
    return model


def write_emptied(path, to):
    to.write_bytes(emptied(onnx.load(path)).SerializeToString())


def write_filled(path, to):
    to.write_bytes(filled(onnx.load(path)).SerializeToString())
