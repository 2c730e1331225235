"""Arrays of nothing but the standard library that speak DLPack, with a say in every field: what the package reads must
not depend on any library's habits."""
import ctypes
import math
import struct

DTYPES = {"f16": (2, 16), "bf16": (4, 16), "f32": (2, 32), "u16": (1, 16), "s16": (0, 16), "f64": (2, 64)}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def to_bits(dtype, value):
    """A float as the integer of its bits; of bf16 the value must be exact."""
    if dtype == "bf16":
        bits = struct.unpack("I", struct.pack("f", value))[0]
        assert bits & 0xFFFF == 0, value
        return bits >> 16
    return struct.unpack({"f16": "H", "f32": "I"}[dtype], struct.pack({"f16": "e", "f32": "f"}[dtype], value))[0]


def from_bits(dtype, bits):
    if dtype == "bf16":
        return struct.unpack("f", struct.pack("I", bits << 16))[0]
    return struct.unpack({"f16": "e", "f32": "f"}[dtype], struct.pack({"f16": "H", "f32": "I"}[dtype], bits))[0]


class Array:
    """Numbers of a dtype in a shape. `strides` are in elements; memory is what they need, from `offset` on."""

    def __init__(self, dtype, shape, values=None, *, strides=None, offset=0, versioned=True, **fields):
        self.dtype, self.shape, self.offset = dtype, tuple(shape), offset
        self.row_major = strides is None
        self.strides = strides or tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        self.versioned, self.fields = versioned, fields
        self.bits_type = {16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}[DTYPES[dtype][1]]
        room = offset + 1 + sum(max(n - 1, 0) * s for n, s in zip(self.shape, self.strides))
        self.memory = (self.bits_type * max(room, 1))()
        self.exports = 0
        self.kept = []  # what capsules point to: threads may export the same array at the same time
        for index, value in enumerate(values or ()):
            self.memory[self._place(index)] = to_bits(dtype, value)

    def _place(self, index):
        place = self.offset
        for extent, stride in zip(reversed(self.shape), reversed(self.strides)):
            index, at = divmod(index, extent)
            place += at * stride
        return place

    def bits(self):
        return [self.memory[self._place(index)] for index in range(math.prod(self.shape))]

    def values(self):
        return [from_bits(self.dtype, bits) for bits in self.bits()]

    def __dlpack_device__(self):
        return (self.fields.get("device_type", 1), self.fields.get("device_id", 0))

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("an old producer: no max_version")
        self.exports += 1
        self.options = options
        rank = len(self.shape)
        shape = (ctypes.c_int64 * max(rank, 1))(*self.shape)
        strides = (ctypes.c_int64 * max(rank, 1))(*self.strides)
        code, bits = DTYPES[self.dtype]
        tensor = Tensor(ctypes.addressof(self.memory), 1, 0, rank, code, bits, 1,
                        ctypes.addressof(shape),
                        None if self.row_major else ctypes.addressof(strides),
                        self.offset * ctypes.sizeof(self.bits_type))
        for name, value in self.fields.items():
            if name not in ("major", "flags"):
                setattr(tensor, name, value)
        if self.versioned:
            managed = ManagedVersioned(self.fields.get("major", 1), 0, None, None, self.fields.get("flags", 0), tensor)
        else:
            managed = Managed(tensor, None, None)
        self.kept.append((shape, strides, managed))
        return _new_capsule(ctypes.addressof(managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)
