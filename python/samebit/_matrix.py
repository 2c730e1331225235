"""Arrays of other libraries as matrices of Samebit, without a copy: anything that speaks DLPack, and
torch tensors more directly."""

import sys

from ._capsules import Tensor, Versioned, is_capsule, pointer_of
from ._library import DTYPE_NUMBERS, Error

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# What a device's memory is called in DLPack, and on which side of Samebit it is read.
KINDS = {CPU: "cpu", CUDA_HOST: "cpu", CUDA: "cuda", CUDA_MANAGED: "cuda"}
_INT, _UINT, _FLOAT, _BFLOAT = 0, 1, 2, 4
_CODE_NAMES = {_INT: "int", _UINT: "uint", _FLOAT: "float", 3: "handle", _BFLOAT: "bfloat",
               5: "complex", 6: "bool"}
_DTYPES = {
    (_FLOAT, 16): DTYPE_NUMBERS["f16"],
    (_BFLOAT, 16): DTYPE_NUMBERS["bf16"],
    (_FLOAT, 32): DTYPE_NUMBERS["f32"],
}
_READ_ONLY = 1
# The stream that a producer makes wait for its work when nobody names one: the legacy stream, which
# is also what a product without a stream runs in.
_LEGACY_STREAM = 1


class View:
    """Where an array's elements are. `keep` holds whatever keeps them there."""

    __slots__ = ("dtype", "data", "shape", "strides", "device", "read_only", "keep")

    def __init__(self, dtype, data, shape, strides, device, read_only, keep):
        self.dtype = dtype
        self.data = data
        self.shape = shape
        self.strides = strides
        self.device = device
        self.read_only = read_only
        self.keep = keep


def dtype_number(name, role):
    """The number of "f16", "bf16" or "f32"."""
    try:
        return DTYPE_NUMBERS[name]
    except (KeyError, TypeError):
        raise Error(f"{role} {name!r} is not one of 'f16', 'bf16' and 'f32'") from None


def torch_dtypes(torch):
    """The number of each dtype of torch that Samebit multiplies or writes."""
    return {
        torch.float16: DTYPE_NUMBERS["f16"],
        torch.bfloat16: DTYPE_NUMBERS["bf16"],
        torch.float32: DTYPE_NUMBERS["f32"],
    }


def _is_numpy(array):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def is_torch(array):
    """torch, when `array` is one of its tensors; else None. Does not import it."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def _from_torch(torch, tensor, name):
    if tensor.requires_grad and torch.is_grad_enabled():
        raise Error(
            f"{name} requires a gradient, which samebit.gemm does not track: use samebit.torch, or "
            "detach it"
        )
    if tensor.layout != torch.strided or tensor.is_neg():
        raise Error(f"{name} is not a plain strided tensor: make it dense and resolve its signs")
    number = torch_dtypes(torch).get(tensor.dtype)
    if number is None:
        raise Error(f"{name} is of {tensor.dtype}; Samebit takes bfloat16, float16 and float32")
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise Error(f"{name} lies on {device}; Samebit computes on the CPU and on CUDA devices")
    return View(number, tensor.data_ptr(), tuple(tensor.shape), tensor.stride(),
                (device.type, device.index or 0), False, tensor)


def export(array, name, stream):
    """The array's capsule. It stays unused, so its own destructor frees what it holds."""
    kind = KINDS.get(int(array.__dlpack_device__()[0]))
    if kind is None:
        raise Error(f"{name} lies in memory that is neither the CPU's nor a CUDA device's")
    options = {}
    if kind == "cuda":
        options["stream"] = stream or _LEGACY_STREAM
    try:
        try:
            return array.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # a producer from before DLPack 1.0
            return array.__dlpack__(**options)
    except (BufferError, TypeError, ValueError, RuntimeError) as failure:
        raise Error(f"{name} cannot be passed on through DLPack: {failure}") from failure


def _from_capsule(capsule, name, keep):
    read_only = False
    if is_capsule(capsule, b"dltensor_versioned"):
        managed = Versioned.from_address(pointer_of(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise Error(f"{name} is of DLPack {managed.major}; this package reads version 1")
        read_only = bool(managed.flags & _READ_ONLY)
        tensor = managed.tensor
    elif is_capsule(capsule, b"dltensor"):
        tensor = Tensor.from_address(pointer_of(capsule, b"dltensor"))
    else:
        raise Error(f"what {name} gives as its DLPack capsule is none")
    if tensor.lanes != 1 or not 0 <= tensor.ndim <= 64:
        raise Error(f"{name} has {tensor.ndim} dimensions of vectors of {tensor.lanes}")
    kind = KINDS.get(tensor.device_type)
    if kind is None:
        raise Error(f"{name} lies in memory that is neither the CPU's nor a CUDA device's")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    if tensor.strides:
        strides = tuple(tensor.strides[: tensor.ndim])
    else:
        strides, step = [], 1
        for extent in reversed(shape):
            strides.insert(0, step)
            step *= extent
        strides = tuple(strides)
    device = (kind, tensor.device_id if kind == "cuda" else 0)
    data = (tensor.data or 0) + tensor.byte_offset
    return tensor.code, tensor.bits, View(0, data, shape, strides, device, read_only, keep)


def describe(array, name, dtype=None, stream=0):
    """A View of an array, which is called `name` in messages. `dtype` says what the elements of
    arrays of 16-bit integers are ("bf16", "f16"): numpy has no bfloat16. `stream` is the handle of
    the stream of the product, in which the array's maker has to be waited for."""
    torch = is_torch(array)
    if torch is not None:
        return _from_torch(torch, array, name)
    if not hasattr(array, "__dlpack__"):
        raise Error(f"{name} is {type(array).__name__}, which has no __dlpack__: pass an array of "
                    "numpy, torch, cupy or another library that speaks DLPack")
    exported = array
    if _is_numpy(array) and array.dtype.name == "bfloat16":  # ml_dtypes, which numpy cannot export
        exported = array.view("uint16")
        dtype = "bf16"
    capsule = export(exported, name, stream)
    code, bits, view = _from_capsule(capsule, name, (array, capsule))
    if bits == 16 and code in (_INT, _UINT) and dtype is not None:
        view.dtype = DTYPE_NUMBERS[dtype]
        return view
    number = _DTYPES.get((code, bits))
    if number is None:
        hint = "; say dtype='bf16' or 'f16' if these are its bits" if bits == 16 else ""
        raise Error(f"{name} is of {_CODE_NAMES.get(code, 'unknown')}{bits}; Samebit takes f16, bf16 "
                    f"and f32{hint}")
    view.dtype = number
    return view


def allocate(like, view, shape, dtype):
    """A new array of the kind of `like`, whose View is given. bf16 is what `like` has it as."""
    torch = is_torch(like)
    if torch is not None:
        kinds = {number: kind for kind, number in torch_dtypes(torch).items()}
        return torch.empty(shape, dtype=kinds[dtype], device=like.device)
    if dtype == view.dtype:
        kind = like.dtype
    elif dtype == DTYPE_NUMBERS["f32"]:
        kind = "float32"
    else:
        kind = {DTYPE_NUMBERS["f16"]: "float16", DTYPE_NUMBERS["bf16"]: None}[dtype]
    namespace = None
    if hasattr(like, "__array_namespace__"):
        namespace = like.__array_namespace__()
    elif _is_numpy(like):
        namespace = sys.modules["numpy"]
    if namespace is None or kind is None:
        raise Error(f"there is no way to make an output like {type(like).__name__}: pass out=")
    if isinstance(kind, str):
        kind = getattr(namespace, kind)
    if view.device[0] == "cpu":
        return namespace.empty(shape, dtype=kind)
    return namespace.empty(shape, dtype=kind, device=like.device)
