"""From tensors of PyTorch to what the library takes."""

from typing import Sequence, Union

import torch
from torch import Tensor

from ._engine import RowMap, engine, made_engine
from ._library import Error
from ._matrix import torch_dtypes

_DTYPES = torch_dtypes(torch)
_CPU = ("cpu", 0)


def engine_of(tensor):
    """The engine of a tensor's device and the handle of the current stream there."""
    device = tensor.device
    if device.type == "cuda":
        key = ("cuda", device.index)
        found = made_engine(key)
        if found is None:
            if torch.cuda.is_current_stream_capturing():
                raise Error("Samebit has not been used on this device yet, and its kernels cannot be "
                            "loaded while a CUDA graph is captured: run the work once before")
            found = engine(key)
            found.synchronize = lambda: torch.cuda.synchronize(device)
        return found, torch.cuda.current_stream(device).cuda_stream
    if device.type == "cpu":
        return engine(_CPU), 0
    raise Error(f"a tensor lies on {device}; Samebit computes on the CPU and on CUDA devices")


def dtype_number(dtype, name):
    """The number of a dtype, for the tensor that messages call `name`."""
    number = _DTYPES.get(dtype)
    if number is None:
        raise Error(f"{name} is of {dtype}; Samebit takes bfloat16 and float16 (and float32 where "
                    "it adds or writes): convert it with .to()")
    return number


def fields(tensor, name):
    """The fields of an sb_matrix of a tensor with two dimensions, or three for a batch."""
    if tensor.dim() == 2:
        return (dtype_number(tensor.dtype, name), tensor.data_ptr(), *tensor.shape,
                *tensor.stride(), 0)
    batch_stride, row_stride, column_stride = tensor.stride()
    return (dtype_number(tensor.dtype, name), tensor.data_ptr(), *tensor.shape[1:], row_stride,
            column_stride, batch_stride)


def rows_of(tensor):
    """The tensor as a matrix: its last dimension, and the others as one."""
    if tensor.dim() == 2:
        return tensor
    return tensor.flatten(0, -2) if tensor.dim() > 2 else tensor.unsqueeze(0)


def check_place(first, **others):
    """That all tensors lie where the first does; None is nowhere."""
    for name, tensor in others.items():
        if tensor is not None and tensor.device != first.device:
            raise Error(f"{name} lies on {tensor.device} and not with the others on {first.device}")


def row_map(where, sample_lengths):
    """The address of the map of samples on an engine, whose lock is held until it is used."""
    if sample_lengths.device.type != "cpu":
        raise Error("sample_lengths lies on a device: pass integers, or a tensor on the CPU")
    if sample_lengths.dim() != 1:
        raise Error(f"sample_lengths has {sample_lengths.dim()} dimensions: it takes 1")
    lengths = tuple(sample_lengths.tolist())
    capturing = where.device[0] == "cuda" and torch.cuda.is_current_stream_capturing()
    if capturing and not where.has_row_map(lengths):
        raise Error("these sample_lengths are new, and they cannot be brought to the device while "
                    "a CUDA graph is captured: run the work once before")
    return where.row_map(lengths, pin=capturing)


def multiply(out, a, b, sample_lengths=None, accumulate=False):
    """out = a · b, or out += a · b, of matrices or equal batches of them."""
    check_place(a, b=b, out=out)
    where, stream = engine_of(a)
    batches = a.shape[0] if a.dim() == 3 else 1
    with where.lock:
        rows = 0 if sample_lengths is None else row_map(where, sample_lengths)
        packed = where.pack(fields(a, "a"), fields(b, "b"), fields(out, "the output"), batches,
                            accumulate=accumulate, rows=rows)
        where.run(packed, stream)


def gradient_dtype(tensor):
    """What a gradient is rounded to: `grad_dtype`, by which PyTorch 2.9 lets a 16-bit parameter
    have gradients of f32, or the tensor's own."""
    if tensor.is_leaf and not torch.compiler.is_compiling():
        return getattr(tensor, "grad_dtype", None) or tensor.dtype
    return tensor.dtype


Lengths = Union[None, RowMap, Tensor, Sequence[int]]


def lengths_tensor(sample_lengths):
    """Lengths of samples as a tensor on the CPU, which torch.compile does not specialise on."""
    if sample_lengths is None:
        return None
    if isinstance(sample_lengths, RowMap):
        sample_lengths = sample_lengths.lengths
    if not isinstance(sample_lengths, Tensor):
        sample_lengths = torch.tensor(sample_lengths, dtype=torch.int64)
    return sample_lengths
