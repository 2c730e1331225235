"""Quantised forms of ONNX files, by onnxruntime.quantization."""

import numpy
import onnx
import onnxruntime.quantization as quantization

VARIANTS = ("qdq", "qoperator", "dynamic")
FORMATS = {"qdq": quantization.QuantFormat.QDQ, "qoperator": quantization.QuantFormat.QOperator}


class Feeds(quantization.CalibrationDataReader):
    """Ranges are those that one run has."""

    def __init__(self, feeds):
        self.left = [feeds]

    def get_next(self):
        return self.left.pop() if self.left else None


def without_shapes(path, to):
    """The quantiser infers shapes anew, and what an exporter noted may be of more dimensions than that."""
    model = onnx.load(str(path))
    del model.graph.value_info[:]
    onnx.save(model, str(to))


def write(variant, path, to, feeds):
    """A file of the form, of activations of 8 bits without a sign and weights with one."""
    bare = to.with_suffix(".bare")
    without_shapes(path, bare)
    try:
        if variant == "dynamic":
            quantization.quantize_dynamic(str(bare), str(to))
            return
        feeds = {name: numpy.asarray(value) for name, value in feeds.items()}
        quantization.quantize_static(str(bare), str(to), Feeds(feeds), quant_format=FORMATS[variant], per_channel=variant == "qdq",
                                     activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    finally:
        bare.unlink()
