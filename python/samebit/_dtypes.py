"""Element types: Samebit's names, numpy's dtypes, ONNX's names of types."""

import numpy

from ._errors import ArgumentTypeError
from ._library import library

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

# Samebit's name: (numpy's or ml_dtypes' name, what holds the bits where ml_dtypes is not installed, ONNX's name).
# A library knows some of them, and says which by sb_dtype_from_name.
_TYPES = {
    "bool": ("bool", None, "bool"),
    "u8": ("uint8", None, "uint8"),
    "u16": ("uint16", None, "uint16"),
    "u32": ("uint32", None, "uint32"),
    "u64": ("uint64", None, "uint64"),
    "s8": ("int8", None, "int8"),
    "s16": ("int16", None, "int16"),
    "s32": ("int32", None, "int32"),
    "s64": ("int64", None, "int64"),
    "f16": ("float16", None, "float16"),
    "f32": ("float32", None, "float"),
    "f64": ("float64", None, "double"),
    "bf16": ("bfloat16", "uint16", "bfloat16"),
    "f8e4m3fn": ("float8_e4m3fn", "uint8", "float8e4m3fn"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "uint8", "float8e4m3fnuz"),
    "f8e5m2": ("float8_e5m2", "uint8", "float8e5m2"),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "uint8", "float8e5m2fnuz"),
    "f8e8m0": ("float8_e8m0fnu", "uint8", "float8e8m0"),
    "f6e3m2": ("float6_e3m2fn", "uint8", "float6e3m2"),
    "f6e2m3": ("float6_e2m3fn", "uint8", "float6e2m3"),
    "f4e2m1": ("float4_e2m1fn", "uint8", "float4e2m1"),
    "s4": ("int4", "uint8", "int4"),
    "u4": ("uint4", "uint8", "uint4"),
    "s2": ("int2", "uint8", "int2"),
    "u2": ("uint2", "uint8", "uint2"),
    "string": ("object", None, "string"),
}


class _Tables:
    """What the opened library knows."""

    def __init__(self):
        known = library()
        self.names = {}  # number -> Samebit's name
        self.numpy = {}  # number -> dtype of numpy
        self.raw = {}  # number -> dtype of the bits, where it is not numpy's own
        self.onnx = {}  # number -> ONNX's name
        self.numbers = {}  # dtype of numpy -> number
        for name, (of_numpy, bits, of_onnx) in _TYPES.items():
            number = known.sb_dtype_from_name(name.encode())
            if not number:
                continue
            self.names[number] = name
            self.onnx[number] = of_onnx
            if bits is not None:
                self.raw[number] = numpy.dtype(bits)
            if bits is not None and (ml_dtypes is None or not hasattr(ml_dtypes, of_numpy)):
                self.numpy[number] = numpy.dtype(bits)
                continue
            dtype = numpy.dtype(getattr(ml_dtypes, of_numpy) if bits is not None else of_numpy)
            self.numpy[number] = dtype
            if name != "string":
                self.numbers[dtype] = number
        self.string = known.sb_dtype_from_name(b"string")


_tables = None


def tables():
    """The tables of the library, made when first needed."""
    global _tables
    if _tables is None:
        _tables = _Tables()
    return _tables


def dtype_name(number):
    """Samebit's name of a type, "f32"; None for no type."""
    name = library().sb_dtype_name(number).decode()
    return name if number else None


def dtype_number(name):
    """The number of a type given by Samebit's name or as numpy's dtype."""
    known = tables()
    if isinstance(name, str):
        number = library().sb_dtype_from_name(name.encode())
        if number:
            return number
    try:
        return known.numbers[numpy.dtype(name)]
    except (KeyError, TypeError):
        raise ArgumentTypeError(
            f"{name!r} is not a type of Samebit; there are {', '.join(known.names.values())}"
        ) from None
