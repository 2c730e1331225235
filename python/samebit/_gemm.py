"""samebit.gemm: a product of arrays."""

from ._engine import NO_MATRIX, RowMap, activation_number, engine, gate_number
from ._library import DTYPE_NUMBERS, Error
from ._matrix import allocate, describe, dtype_number, is_torch

_SIDES = {"cpu": "the CPU", "cuda": "CUDA device {}"}


def _place(device):
    return _SIDES[device[0]].format(device[1])


def _fields(view, name):
    """The seven fields of an sb_matrix, and the number of its batches, None for one matrix."""
    shape, strides = view.shape, view.strides
    if len(shape) == 2:
        return (view.dtype, view.data, *shape, *strides, 0), None
    if len(shape) == 3:
        batch_stride = strides[0] if shape[0] != 1 else 0
        return (view.dtype, view.data, *shape[1:], *strides[1:], batch_stride), shape[0]
    raise Error(f"{name} has {len(shape)} dimensions; it takes 2, or 3 for a batch of matrices")


def _bias_fields(view):
    if len(view.shape) == 1:
        return (view.dtype, view.data, 1, view.shape[0], 0, view.strides[0], 0), None
    if len(view.shape) == 2:
        batches, columns = view.shape
        batch_stride = view.strides[0] if batches != 1 else 0
        return (view.dtype, view.data, 1, columns, 0, view.strides[1], batch_stride), batches
    raise Error(f"bias has {len(view.shape)} dimensions; it takes 1, or 2 for one of each batch")


def _batches(counts):
    """The number of batches: that of all operands that have one, except those with a batch of 1,
    which every batch reads."""
    given = {name: count for name, count in counts.items() if count is not None}
    many = {name: count for name, count in given.items() if count != 1}
    if len(set(many.values())) > 1:
        raise Error("the numbers of batches differ: "
                    + ", ".join(f"{count} of {name}" for name, count in many.items()))
    return next(iter(many.values()), 1) if given else 1


def gemm(a, b, *, out=None, out_dtype=None, dtype=None, bias=None, activation=None, gate=None,
         residual=None, scale=1.0, accumulate=False, rows=None, schedule=None, stream=None,
         on=None):
    """The product of a (M × K) and b (K × N), or of batches of them in a first dimension, with the
    bits that docs/numerics.md specifies; gives `out`.

    a, b        arrays of f16 or bf16 of any library that speaks DLPack, with any strides (so a.T is
                as good as a). A batch of 1, or none, is read by all batches.
    out         where it is written; new, of `out_dtype` ("f32", "f16", "bf16", else a's), if None.
    dtype       what arrays of 16-bit integers hold: "bf16" or "f16".
    scale, bias, activation, gate, residual
                y = chain · scale + bias; activation(y), or activation(gate) · value with a gate;
                + residual. Activations: "relu", "silu", "gelu", "gelu_tanh". With gate "stacked" or
                "interleaved", b has 2N columns, gates and values. bias: N (2N) numbers; residual:
                like out.
    accumulate  the chains go on from what is in `out`, which is of f32; with nothing of the above.
    rows        a RowMap, or the lengths of samples: cuts K into samples, see RowMap.
    schedule    the name of a schedule (see Engine.schedules), which never changes a bit.
    stream      on a device, the handle of the stream to compute in; torch's current one for tensors
                of torch, else the legacy stream. The call does not wait for it.
    on          an Engine; else the process's engine of the device that the arrays lie on.
    """
    if dtype not in (None, "f16", "bf16"):
        raise Error(f"dtype {dtype!r} is not 'bf16' or 'f16': it says what 16-bit integers hold")
    torch = is_torch(a)
    if stream is None and torch is not None and a.device.type == "cuda":
        stream = torch.cuda.current_stream(a.device).cuda_stream
    stream = stream or 0
    view_a = describe(a, "a", dtype, stream)
    views = {"a": view_a, "b": describe(b, "b", dtype, stream)}
    for name, operand in (("bias", bias), ("residual", residual), ("out", out)):
        if operand is not None:
            views[name] = describe(operand, name, dtype, stream)
    for name, view in views.items():
        if view.device != view_a.device:
            raise Error(f"a lies on {_place(view_a.device)} and {name} on {_place(view.device)}: "
                        "bring them together")
    if on is None:
        on = engine(view_a.device)
    elif on.device != view_a.device:
        raise Error(f"the engine is for {_place(on.device)} and a lies on {_place(view_a.device)}")

    counts = {}
    fields_a, counts["a"] = _fields(view_a, "a")
    fields_b, counts["b"] = _fields(views["b"], "b")
    fields_bias = fields_residual = NO_MATRIX
    if bias is not None:
        fields_bias, counts["bias"] = _bias_fields(views["bias"])
    if residual is not None:
        fields_residual, counts["residual"] = _fields(views["residual"], "residual")
    gate = gate_number(gate)
    if out is None:
        if accumulate:
            raise Error("accumulate goes on from what is in out: pass out=, of f32")
        number = dtype_number(out_dtype, "out_dtype") if out_dtype is not None else view_a.dtype
        columns = fields_b[3] // 2 if gate else fields_b[3]
        shape = (fields_a[2], columns)
        if any(count is not None for count in counts.values()):
            shape = (_batches(counts), *shape)
        out = allocate(a, view_a, shape, number)
        view = describe(out, "out", dtype, stream)
    else:
        view = views["out"]
        if out_dtype is not None and DTYPE_NUMBERS.get(out_dtype) != view.dtype:
            raise Error(f"out is not of out_dtype {out_dtype!r}")
    if view.read_only:
        raise Error("out is read-only")
    fields_out, counts["out"] = _fields(view, "out")
    batches = _batches(counts)
    if batches != (counts["out"] if counts["out"] is not None else 1):
        raise Error(f"out has {counts['out'] or 'no'} batches for {batches}")
    address = 0
    if rows is not None:
        rows = rows if isinstance(rows, RowMap) else RowMap(rows)
        address = rows.address(on)
    packed = on.pack(fields_a, fields_b, fields_out, batches, scale, fields_bias,
                     activation_number(activation), gate, fields_residual, accumulate, address,
                     schedule)
    on.run(packed, stream)
    return out
