"""Python's values as the library's, and back.

    tensor    numpy arrays, whatever has __dlpack__ (torch, cupy, jax, …), scalars and nested lists of numbers;
              text as str, lists of str, or arrays of them
    sequence  a list or tuple of tensors
    nothing   None, for an optional value
"""

import ctypes
import itertools
import math

import numpy

from ._arrays import address_of
from ._dtypes import dtype_name, tables
from ._capsules import is_capsule, legacy_capsule, mark_used, pointer_of, versioned_capsule
from ._errors import ArgumentError, ArgumentTypeError, Error, UnsupportedError
from ._library import KIND_SEQUENCE, KIND_TENSOR, library
from ._matrix import CPU, CUDA, KINDS, export, is_torch
from ._structures import String, Value

# ---- into the library ----

# Arrays that tensors of the library look at, by the number that the library gives back when the last of them is gone.
_kept = {}
_numbers = itertools.count(1)


def _release(number):
    _kept.pop(number, None)


_RELEASE_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_release_callback = _RELEASE_TYPE(_release)
_RELEASE = ctypes.cast(_release_callback, ctypes.c_void_p)


def _is_plain(array):
    """Whether the library can look at the elements where they are."""
    size = array.itemsize
    return array.flags.aligned and all(stride % size == 0 for stride in array.strides)


def _wrap(array, number):
    """The library's tensor over an array's own memory, which it keeps alive."""
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not _is_plain(array):
        array = array.copy()  # not ascontiguousarray, to which memory at odd addresses is contiguous too
    rank, size = array.ndim, array.itemsize
    dims = (ctypes.c_int64 * rank)(*array.shape)
    strides = (ctypes.c_int64 * rank)(*(stride // size for stride in array.strides))
    key = next(_numbers)
    pointer = ctypes.c_void_p()
    _kept[key] = array
    try:
        library().call("sb_tensor_wrap", number, rank, dims, strides, address_of(array), _RELEASE, key,
                       ctypes.byref(pointer))
    except BaseException:
        del _kept[key]
        raise
    return pointer.value


def _from_strings(array):
    """A tensor of text, which is copied."""
    given = array.astype(object).ravel()
    encoded = []
    for item in given:
        if not isinstance(item, (str, bytes)):
            raise ArgumentTypeError(f"an element of a tensor of text is {type(item).__name__}, not str")
        encoded.append(item if isinstance(item, bytes) else item.encode("utf-8", "surrogateescape"))
    strings = (String * len(encoded))(*((item, len(item)) for item in encoded))
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    pointer = ctypes.c_void_p()
    library().call("sb_tensor_from_strings", array.ndim, dims, strings, ctypes.byref(pointer))
    return pointer.value


def _is_text(array):
    return array.dtype.kind in "USTO"


def _from_numpy(array, expected, name):
    known = tables()
    number = known.numbers.get(array.dtype if array.dtype.isnative else array.dtype.newbyteorder("="))
    if number is None and _is_text(array):
        return _from_strings(array)
    # The bits of a type that numpy has not, where the model says that it is meant.
    if expected in known.raw and number != expected and array.dtype == known.raw[expected]:
        number = expected
        array = array.view(known.raw[expected])
    if number is None:
        raise ArgumentTypeError(
            f"input {name} is of numpy's {array.dtype}, which Samebit does not have; it has "
            f"{', '.join(known.names.values())}"
        )
    return _wrap(array, number)


def _take_over(capsule, device):
    """A tensor over what a DLPack capsule holds, which is the library's from then on."""
    pointer = ctypes.c_void_p()
    versioned = is_capsule(capsule, b"dltensor_versioned")
    label = b"dltensor_versioned" if versioned else b"dltensor"
    if not versioned and not is_capsule(capsule, b"dltensor"):
        raise ArgumentTypeError("what is given as a DLPack capsule is none")
    name = "sb_tensor_from_dlpack" if versioned else "sb_tensor_from_dlpack_legacy"
    address = pointer_of(capsule, label)
    if device is None:
        library().call(name, address, ctypes.byref(pointer))
    else:
        library().call(name + "_on", device.pointer, address, ctypes.byref(pointer))
    mark_used(capsule, label)
    return pointer.value


def _from_dlpack(given, name, device, stream):
    kind, index = (int(part) for part in given.__dlpack_device__())
    on_device = KINDS.get(kind) == "cuda"
    if on_device and kind != CUDA:
        raise UnsupportedError(f"input {name} lies in managed memory: copy it to the host or to a device")
    if on_device and device is None:
        raise ArgumentError(
            f"input {name} lies on CUDA device {index} and the model runs on the CPU: load the model with "
            f"device='cuda:{index}', or copy the input to the host"
        )
    if not on_device and kind != CPU:
        raise UnsupportedError(f"input {name} lies in memory of DLPack's kind {kind}: copy it to the host")
    try:
        capsule = export(given, f"input {name}", stream)
    except Error as failure:
        torch = is_torch(given)
        if torch is not None and given.requires_grad:
            raise ArgumentError(f"input {name} requires a gradient, and Samebit has none: detach it") from failure
        raise
    if on_device and not stream:
        device.wait()  # for what the array's maker gave to the legacy stream, in which the export waits for it
    return _take_over(capsule, device)


def _from_python(given, expected, name):
    """Scalars and lists, which have no dtype of their own: the one that is expected, where numpy calls that the same
    kind of number."""
    known = tables()
    try:
        array = numpy.asarray(given)
        if array.dtype.kind in "US" or expected == known.string:
            return _from_strings(numpy.asarray(given, dtype=object))
        wanted = known.numpy.get(expected)
        if wanted is not None and array.dtype != wanted and expected not in known.raw and (
            array.size == 0 or numpy.can_cast(array.dtype, wanted, "same_kind")
        ):
            array = numpy.asarray(given, dtype=wanted)
    except (ValueError, OverflowError) as failure:
        raise ArgumentError(f"input {name} is no array of numbers: {failure}") from None
    if array.dtype == object:
        raise ArgumentTypeError(
            f"input {name} is {type(given).__name__}; pass an array of numpy, torch or another library that speaks "
            "DLPack, numbers, or text"
        )
    return _from_numpy(array, expected, name)


def tensor_pointer(given, expected=0, name="", device=None, stream=0):
    """The library's tensor of a Python value: one reference, to release. `expected`: the dtype's number that a model
    wants, or 0."""
    if isinstance(given, Tensor):
        return library().sb_tensor_retain(given.pointer)
    if isinstance(given, numpy.ndarray):
        return _from_numpy(given, expected, name)
    if hasattr(given, "__dlpack__"):
        return _from_dlpack(given, name, device, stream)
    return _from_python(given, expected, name)


def fill_value(value, given, kind, expected, name, device=None, stream=0):
    """Fills a Value, nothing so far, with a Python value; the caller releases it. `kind` and `expected` are what the
    model's description says."""
    if given is None:
        return
    if kind == KIND_SEQUENCE:
        if not isinstance(given, (list, tuple)):
            raise ArgumentTypeError(f"input {name} is a sequence: pass a list, not {type(given).__name__}")
        items = (Value * len(given))()
        try:
            for index, item in enumerate(given):
                inner = KIND_SEQUENCE if isinstance(item, (list, tuple)) and not expected else KIND_TENSOR
                fill_value(items[index], item, inner, expected, f"{name}[{index}]")
            library().call("sb_value_of_sequence", expected, len(given), items, ctypes.byref(value))
        finally:
            for item in items:
                library().sb_value_release(ctypes.byref(item))
        return
    value.pointer = tensor_pointer(given, expected, name, device, stream)
    value.kind = KIND_TENSOR


def release_all(values):
    """Releases an array of Values."""
    known = library()
    for value in values:
        if value.kind:
            known.sb_value_release(ctypes.byref(value))


def input_memory(values):
    """Where the host's memory of inputs lies that is the caller's: pairs of addresses. An output that shows such
    memory has to be copied, since the caller may write there again."""
    known, found = library(), []
    for value in values:
        if value.kind == KIND_TENSOR:
            pointer = value.pointer
            if known.sb_tensor_is_on_device(pointer) or known.sb_tensor_elements(pointer) == 0:
                continue
            found.append(_span(known, pointer))
        elif value.kind == KIND_SEQUENCE:
            count = known.sb_sequence_count(value.pointer)
            found += input_memory([known.sb_sequence_item(value.pointer, index) for index in range(count)])
    return found


def _span(known, pointer):
    """The addresses that a tensor's elements lie between: [first, last)."""
    rank = known.sb_tensor_rank(pointer)
    size = known.sb_dtype_size(known.sb_tensor_dtype(pointer))
    first = last = known.sb_tensor_data(pointer)
    if rank:
        for extent, stride in zip(known.sb_tensor_dims(pointer)[:rank], known.sb_tensor_strides(pointer)[:rank]):
            reach = (extent - 1) * stride * size
            first, last = first + min(reach, 0), last + max(reach, 0)
    return first, last + size


# ---- out of it ----


class Tensor:
    """A tensor of the library: what stays on a device, or text and numbers on the host before numpy sees them.

    Immutable; any thread may read it. `numpy.asarray(tensor)` and `torch.from_dlpack(tensor)` look at its memory
    without a copy, on the side on which it lies, and keep it alive.
    """

    def __init__(self, pointer, device=None):
        self._library = library()
        self.pointer = pointer
        self.device = device if self._library.sb_tensor_is_on_device(pointer) else None

    def __del__(self):
        pointer, self.pointer = getattr(self, "pointer", None), None
        if pointer is not None:
            self._library.sb_tensor_release(pointer)

    @property
    def shape(self):
        """The extents: a tuple of int."""
        rank = self._library.sb_tensor_rank(self.pointer)
        return tuple(self._library.sb_tensor_dims(self.pointer)[:rank]) if rank else ()

    @property
    def strides(self):
        """The strides in elements: a tuple of int."""
        rank = self._library.sb_tensor_rank(self.pointer)
        return tuple(self._library.sb_tensor_strides(self.pointer)[:rank]) if rank else ()

    @property
    def dtype(self):
        """Samebit's name of the element type, such as "f32"."""
        return dtype_name(self._library.sb_tensor_dtype(self.pointer))

    @property
    def address(self):
        """Where the element lies whose indices are all 0: on the device for a tensor that lies on one."""
        return self._library.sb_tensor_data(self.pointer) or 0

    def __repr__(self):
        place = f" on {self.device}" if self.device is not None else ""
        return f"<samebit.Tensor {self.dtype}[{','.join(map(str, self.shape))}]{place}>"

    def numpy(self):
        """The elements as an array of numpy: over the library's memory, read-only, when they lie on the host, else a
        copy. Text becomes an array of str."""
        if self.device is None:
            return self._array()
        pointer = ctypes.c_void_p()
        self._library.call("sb_tensor_to_host", self.device.pointer, self.pointer, ctypes.byref(pointer))
        return Tensor(pointer.value)._array()

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def _array(self):
        known = tables()
        number = self._library.sb_tensor_dtype(self.pointer)
        if number == known.string:
            return self._text()
        shape = self.shape
        dtype = known.numpy[number]
        if math.prod(shape) == 0:
            return numpy.empty(shape, dtype)
        bits = known.raw.get(number, dtype)
        view = numpy.asarray(_Memory(self, bits))
        return view if bits == dtype else view.view(dtype)

    def _text(self):
        pointer = ctypes.c_void_p()
        self._library.call("sb_tensor_contiguous", self.pointer, ctypes.byref(pointer))
        plain = Tensor(pointer.value)
        count = self._library.sb_tensor_elements(plain.pointer)
        array = numpy.empty(count, dtype=object)
        if count:
            strings = ctypes.cast(plain.address, ctypes.POINTER(_RawString))
            for index in range(count):
                item = strings[index]
                bytes_ = ctypes.string_at(item.data, item.bytes) if item.bytes else b""
                array[index] = bytes_.decode("utf-8", "surrogateescape")
        return array.reshape(self.shape)

    def __dlpack_device__(self):
        return (CUDA, self.device.index) if self.device is not None else (CPU, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """DLPack's capsule, versioned: the consumer asks for at least version 1.0. What was computed on a device is
        done, so that no stream waits for it."""
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError("the tensor lies elsewhere: copy it with numpy(), or by the consumer")
        if copy:
            raise BufferError("samebit makes no copy here: ask the consumer for one")
        managed = ctypes.c_void_p()
        self._library.call("sb_tensor_to_dlpack", self.pointer, ctypes.byref(managed))
        legacy = max_version is None or max_version[0] < 1
        return legacy_capsule(managed.value) if legacy else versioned_capsule(managed.value)


def tensor(array, device=None):
    """A samebit.Tensor of an array: over its own memory, which must not be written any more; with `device` (as in
    samebit.load, a GPU) a copy there. What models run on again and again is brought into the library, or to a device,
    once."""
    from ._devices import open_device

    place = open_device(device)
    made = Tensor(tensor_pointer(array, 0, "array", place), place)
    if place is None or made.device is not None:
        return made
    pointer = ctypes.c_void_p()
    library().call("sb_tensor_to_device", place.pointer, made.pointer, ctypes.byref(pointer))
    return Tensor(pointer.value, place)


class _RawString(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class _Memory:
    """A tensor's memory for numpy.asarray, whose array keeps this object, and so the tensor."""

    def __init__(self, tensor, dtype):
        self.tensor = tensor
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.str,
            "shape": tensor.shape,
            "strides": tuple(stride * dtype.itemsize for stride in tensor.strides),
            "data": (tensor.address, True),
        }
