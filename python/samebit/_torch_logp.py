"""Log-probabilities of chosen tokens from hidden states, for PyTorch."""

from typing import Optional, Tuple

import torch
from torch import Tensor

from ._library import Error
from ._logp import WORKSPACE_ALIGNMENT, pack_gradient, pack_logp, workspace_bytes
from ._torch_tensors import (
    Lengths,
    check_place,
    dtype_number,
    engine_of,
    fields,
    gradient_dtype,
    lengths_tensor,
    row_map,
    rows_of,
)


def _head(weight, name="weight"):
    """The fields of a weight of (V, K), which the library sees as K × V."""
    return fields(weight.mT, name)


def _workspace(like, engine, packed, packed_gradient=None):
    """A tensor to keep, the address in it that is aligned, and the bytes from there."""
    size = workspace_bytes(engine, packed, packed_gradient)
    room = torch.empty(size + WORKSPACE_ALIGNMENT, dtype=torch.uint8, device=like.device)
    address = -(-room.data_ptr() // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
    return room, address, size


@torch.library.custom_op("samebit::linear_logp", mutates_args=())
def _linear_logp(hidden: Tensor, weight: Tensor, targets: Tensor, inverse_temperature: float,
                 ignore_index: int, sample_lengths: Optional[Tensor],
                 main_grad: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    """The log-probabilities, and each row's maximum and sum for the backward, whose the last two
    arguments are."""
    check_place(hidden, weight=weight, targets=targets)
    logp = hidden.new_empty(hidden.shape[:-1], dtype=torch.float32)
    maximum = hidden.new_empty(hidden.shape[:-1], dtype=torch.int32)
    total = hidden.new_empty(hidden.shape[:-1], dtype=torch.float32)
    engine, stream = engine_of(hidden)
    rows, targets = rows_of(hidden), targets.to(torch.int64).contiguous()
    operands = (fields(rows, "hidden"), _head(weight), targets.data_ptr(), ignore_index,
                inverse_temperature, logp.data_ptr(), maximum.data_ptr(), total.data_ptr())
    kept, workspace, size = _workspace(hidden, engine, pack_logp(*operands))
    engine.call("sb_linear_logp_forward", stream, pack_logp(*operands, workspace, size))
    return logp, maximum, total


@_linear_logp.register_fake
def _(hidden, weight, targets, inverse_temperature, ignore_index, sample_lengths, main_grad):
    shape = hidden.shape[:-1]
    return (hidden.new_empty(shape, dtype=torch.float32),
            hidden.new_empty(shape, dtype=torch.int32),
            hidden.new_empty(shape, dtype=torch.float32))


@torch.library.custom_op("samebit::linear_logp_gradient", mutates_args=("d_weight",))
def _linear_logp_gradient(d_logp: Tensor, hidden: Tensor, weight: Tensor, targets: Tensor,
                          maximum: Tensor, total: Tensor, inverse_temperature: float,
                          ignore_index: int, wants_hidden: bool, d_weight: Optional[Tensor],
                          accumulate: bool, sample_lengths: Optional[Tensor]) -> Tensor:
    """The gradient of hidden (without elements, unless it is wanted); that of weight is written to
    d_weight, of float32 or weight's dtype, or added to one of float32."""
    check_place(hidden, d_logp=d_logp, weight=weight, targets=targets, d_weight=d_weight)
    if accumulate and d_weight is not None and d_weight.dtype != torch.float32:
        raise Error(f"main_grad is of {d_weight.dtype}; sums are kept in float32")
    engine, stream = engine_of(hidden)
    rows, targets = rows_of(hidden), targets.to(torch.int64).contiguous()
    d_logp, maximum, total = d_logp.contiguous(), maximum.contiguous(), total.contiguous()
    d_hidden = hidden.new_empty(hidden.shape if wants_hidden else (0,))
    wanted = {"d_logp": d_logp.data_ptr()}
    if wants_hidden:
        m, k = rows.shape
        wanted["d_hidden"] = (dtype_number(hidden.dtype, "hidden"), d_hidden.data_ptr(), m, k, k, 1,
                              0)
    if d_weight is not None:
        wanted["d_weight"] = _head(d_weight, "main_grad")
        wanted["accumulate"] = accumulate
    operands = (fields(rows, "hidden"), _head(weight), targets.data_ptr(), ignore_index,
                inverse_temperature, 0, maximum.data_ptr(), total.data_ptr())
    with engine.lock:
        if d_weight is not None and sample_lengths is not None:
            wanted["rows"] = row_map(engine, sample_lengths)
        gradient = pack_gradient(**wanted)
        kept, workspace, size = _workspace(hidden, engine, pack_logp(*operands), gradient)
        engine.call("sb_linear_logp_backward", stream, pack_logp(*operands, workspace, size),
                    gradient)
    return d_hidden


@_linear_logp_gradient.register_fake
def _(d_logp, hidden, weight, targets, maximum, total, inverse_temperature, ignore_index,
      wants_hidden, d_weight, accumulate, sample_lengths):
    return hidden.new_empty(hidden.shape if wants_hidden else (0,))


def _setup(ctx, inputs, output):
    (hidden, weight, targets, ctx.inverse_temperature, ctx.ignore_index, sample_lengths,
     main_grad) = inputs
    _, maximum, total = output
    ctx.mark_non_differentiable(maximum, total)
    ctx.save_for_backward(hidden, weight, targets, maximum, total, sample_lengths)
    # Not saved: every backward changes it, which saved tensors are checked for.
    ctx.main_grad = main_grad


def _backward(ctx, d_logp, d_maximum, d_total):
    hidden, weight, targets, maximum, total, sample_lengths = ctx.saved_tensors
    wants_hidden, wants_weight = ctx.needs_input_grad[:2]
    d_weight = None
    if wants_weight:
        d_weight = ctx.main_grad
        if d_weight is None:
            dtype = gradient_dtype(weight)
            d_weight = torch.empty_like(weight, dtype=dtype if dtype == weight.dtype else torch.float32)
    d_hidden = _linear_logp_gradient(
        d_logp, hidden, weight, targets, maximum, total, ctx.inverse_temperature, ctx.ignore_index,
        wants_hidden, d_weight, ctx.main_grad is not None, sample_lengths)
    if ctx.main_grad is not None or not wants_weight:
        d_weight = None
    else:
        d_weight = d_weight.to(dtype)
    return (d_hidden if wants_hidden else None), d_weight, None, None, None, None, None


_linear_logp.register_autograd(_backward, setup_context=_setup)


def linear_logp(hidden: Tensor, weight: Tensor, targets: Tensor, *, temperature: float = 1.0,
                ignore_index: int = -100, sample_lengths: Lengths = None,
                main_grad: Optional[Tensor] = None) -> Tensor:
    """log_softmax(hidden · weightᵀ / temperature) at the targets, without ever holding all logits.

    hidden          (…, K), bfloat16 or float16
    weight          (V, K), of hidden's dtype: the head of a language model
    targets         (…), integers: which of the V words each row chose; `ignore_index` gives 0 and
                    no gradient
    temperature     1/temperature, rounded to float32, multiplies the logits
    sample_lengths, main_grad
                    as for linear: how the rows of hidden belong to samples, and where weight's
                    gradient is added in float32

    The result is of float32, and of targets' shape. docs/numerics.md says its bits and those of the
    gradients.
    """
    if (weight.dim() != 2 or hidden.dim() < 1 or hidden.shape[:-1] != targets.shape
            or hidden.shape[-1] != weight.shape[1]):
        raise Error(f"linear_logp takes hidden of (…, K), weight of (V, K) and targets of (…), not "
                    f"{tuple(hidden.shape)}, {tuple(weight.shape)} and {tuple(targets.shape)}")
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        raise Error(f"targets are of {targets.dtype}; they are integers")
    if temperature == 0:
        raise Error("temperature is 0, which logits cannot be divided by")
    if main_grad is not None and (main_grad.shape != weight.shape or main_grad.requires_grad):
        raise Error("main_grad is a plain buffer of weight's shape, without a gradient of its own")
    return _linear_logp(hidden, weight, targets, 1.0 / temperature, ignore_index,
                        lengths_tensor(sample_lengths), main_grad)[0]
