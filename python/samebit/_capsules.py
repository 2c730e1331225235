"""DLPack's structures, and the capsules of Python that carry them."""

import ctypes
import itertools

READ_ONLY = 1
_VERSIONED, _LEGACY = b"dltensor_versioned", b"dltensor"
# What a capsule is called when somebody has taken what was in it; the capsule keeps the address of the text.
_USED = {_LEGACY: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Managed(ctypes.Structure):
    """DLManagedTensor, from before DLPack 1.0."""

    _fields_ = [("tensor", Tensor), ("manager_context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


is_capsule = ctypes.pythonapi.PyCapsule_IsValid
is_capsule.restype = ctypes.c_int
is_capsule.argtypes = [ctypes.py_object, ctypes.c_char_p]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype = ctypes.c_void_p
pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.restype = ctypes.c_int
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
# The same two on addresses: a capsule that is being destroyed must not become an object of Python again.
_address_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_pointer_of_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", ctypes.pythonapi)
)


def mark_used(capsule, label):
    """Says that what was in the capsule has an owner."""
    _set_name(capsule, _USED[label])


def _delete(address, kind):
    deleter = kind.from_address(address).deleter
    if deleter:
        _DELETER(deleter)(address)


def _destroy(capsule):
    """What a capsule that nobody has taken anything from does when it goes."""
    for label, kind in ((_VERSIONED, Versioned), (_LEGACY, Managed)):
        if _address_is_capsule(capsule, label):
            _delete(_pointer_of_address(capsule, label), kind)


_destructor = _DESTRUCTOR(_destroy)


def versioned_capsule(address):
    """A capsule that owns a DLManagedTensorVersioned."""
    return _new_capsule(address, _VERSIONED, _destructor)


# Structures for consumers from before DLPack 1.0, by the number that they carry, until they are deleted.
_legacy = {}
_numbers = itertools.count(1)


def _delete_legacy(address):
    _, versioned = _legacy.pop(Managed.from_address(address).manager_context)
    _delete(versioned, Versioned)


_legacy_deleter = _DELETER(_delete_legacy)


def legacy_capsule(address):
    """A capsule as there were before DLPack 1.0, which owns a DLManagedTensorVersioned. It cannot say that the
    elements are read-only."""
    number = next(_numbers)
    managed = Managed(
        Versioned.from_address(address).tensor, number, ctypes.cast(_legacy_deleter, ctypes.c_void_p)
    )
    _legacy[number] = (managed, address)
    return _new_capsule(ctypes.addressof(managed), _LEGACY, _destructor)
