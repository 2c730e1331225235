"""Linear layers and matrix products for PyTorch, forward and backward, with the bits of Samebit.

    from samebit.torch import linear, linear_logp, matmul
    y = linear(x, weight, bias)

A row of the result has the same bits in every batch, on the CPU and on GPUs, in eager mode, under
torch.compile and in a CUDA graph. Tensors are of bfloat16 or float16, on the CPU or on a CUDA
device, with any strides. Work is given to PyTorch's current stream.
"""

from typing import Optional

import torch
from torch import Tensor

from ._engine import NO_MATRIX, activation_number, gate_number
from ._library import Error
from ._torch_logp import linear_logp
from ._torch_tensors import (
    Lengths,
    check_place,
    dtype_number,
    engine_of,
    fields,
    gradient_dtype,
    lengths_tensor,
    multiply,
    rows_of,
)

__all__ = ["accumulate_", "linear", "linear_logp", "matmul"]


# ---- operators ----


@torch.library.custom_op("samebit::product", mutates_args=())
def _product(a: Tensor, b: Tensor, dtype: torch.dtype, sample_lengths: Optional[Tensor]) -> Tensor:
    """a · b of two matrices, or of two batches of as many."""
    out = a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)
    multiply(out, a, b, sample_lengths)
    return out


@_product.register_fake
def _(a, b, dtype, sample_lengths):
    torch._check(a.dim() == b.dim() and a.dim() in (2, 3), lambda: "a and b: 2 or 3 dimensions")
    torch._check(a.shape[-1] == b.shape[-2],
                 lambda: f"a of {tuple(a.shape)} and b of {tuple(b.shape)} do not fit")
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)


def _product_setup(ctx, inputs, output):
    a, b, _, _ = inputs
    ctx.save_for_backward(a, b)


def _product_backward(ctx, grad):
    a, b = ctx.saved_tensors
    grad_a = grad_b = None
    grad = grad.to(a.dtype)
    if ctx.needs_input_grad[0]:
        grad_a = _product(grad, b.mT, a.dtype, None)
    if ctx.needs_input_grad[1]:
        grad_b = _product(a.mT, grad, b.dtype, None)
    return grad_a, grad_b, None, None


_product.register_autograd(_product_backward, setup_context=_product_setup)


@torch.library.custom_op("samebit::accumulate_", mutates_args=("total",))
def _accumulate(total: Tensor, a: Tensor, b: Tensor, sample_lengths: Optional[Tensor]) -> None:
    if total.dtype != torch.float32:
        raise Error(f"total is of {total.dtype}; sums are kept in float32")
    multiply(total, a, b, sample_lengths, accumulate=True)


@_accumulate.register_fake
def _(total, a, b, sample_lengths):
    return None


@torch.library.custom_op("samebit::linear", mutates_args=())
def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor], activation: str, gate: str,
            dtype: torch.dtype, sample_lengths: Optional[Tensor],
            main_grad: Optional[Tensor]) -> Tensor:
    """activation(x · weightᵀ + bias). The last two are the backward's."""
    check_place(x, weight=weight, bias=bias)
    gate_code = gate_number(gate)
    columns, depth = weight.shape
    n = columns // 2 if gate_code else columns
    y = x.new_empty((*x.shape[:-1], n), dtype=dtype)
    x = rows_of(x)
    where, stream = engine_of(x)
    row_stride, column_stride = weight.stride()
    b = (dtype_number(weight.dtype, "weight"), weight.data_ptr(), depth, columns, column_stride,
         row_stride, 0)
    c = (dtype_number(dtype, "the output"), y.data_ptr(), x.shape[0], n, n, 1, 0)
    addend = NO_MATRIX
    if bias is not None:
        addend = (dtype_number(bias.dtype, "bias"), bias.data_ptr(), 1, bias.shape[0], 0,
                  bias.stride(0), 0)
    where.run(where.pack(fields(x, "x"), b, c, 1, 1.0, addend, activation_number(activation),
                         gate_code), stream)
    return y


@_linear.register_fake
def _(x, weight, bias, activation, gate, dtype, sample_lengths, main_grad):
    columns = weight.shape[0]
    n = columns if gate == "none" else columns // 2
    return x.new_empty((*x.shape[:-1], n), dtype=dtype)


@torch.library.custom_op("samebit::activation_gradient", mutates_args=())
def _activation_gradient(grad: Tensor, z: Tensor, activation: str, gate: str,
                         dtype: torch.dtype) -> Tensor:
    """The gradient of what the activation was applied to, from that of its result, in PyTorch's
    arithmetic. An operator of its own, so that no compiler fuses it into other bits."""
    # On the CPU PyTorch evaluates the ends of loops by other functions than their bulk, so that an
    # element's last bit would depend on where it lies. In double precision the difference is
    # far below the rounding to 16 bits.
    precise = torch.float64 if z.device.type == "cpu" else torch.float32
    grad, z = grad.to(precise), z.to(precise)
    if gate == "none":
        return _ACTIVATION_GRADIENTS[activation](grad, z).to(dtype)
    if gate == "stacked":
        gates, values = z.chunk(2, dim=-1)
    else:
        gates, values = z[..., 0::2], z[..., 1::2]
    out = torch.empty_like(z, dtype=dtype, memory_format=torch.contiguous_format)
    if gate == "stacked":
        out_gates, out_values = out.chunk(2, dim=-1)
    else:
        out_gates, out_values = out[..., 0::2], out[..., 1::2]
    out_values.copy_(grad * _ACTIVATIONS[activation](gates))
    out_gates.copy_(_ACTIVATION_GRADIENTS[activation](grad * values, gates))
    return out


@_activation_gradient.register_fake
def _(grad, z, activation, gate, dtype):
    return z.new_empty(z.shape, dtype=dtype)


_aten = torch.ops.aten
_ACTIVATIONS = {
    "none": lambda z: z,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
}
_ACTIVATION_GRADIENTS = {
    "none": lambda grad, z: grad,
    "relu": lambda grad, z: _aten.threshold_backward(grad, z, 0),
    "silu": _aten.silu_backward,
    "gelu": _aten.gelu_backward,
    "gelu_tanh": lambda grad, z: _aten.gelu_backward(grad, z, approximate="tanh"),
}


def _linear_setup(ctx, inputs, output):
    x, weight, bias, ctx.activation, ctx.gate, _, sample_lengths, main_grad = inputs
    # A rectified result tells where its gradient passes; other gradients need what the activation
    # was applied to, which is computed again rather than kept in f32.
    y = output if ctx.activation == "relu" and ctx.gate == "none" else None
    ctx.save_for_backward(x, weight, bias, y, sample_lengths)
    # Not saved: every backward changes it, which saved tensors are checked for.
    ctx.main_grad = main_grad


def _linear_backward(ctx, grad):
    x, weight, bias, y, sample_lengths = ctx.saved_tensors
    needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
    grad_x = grad_weight = grad_bias = None
    rows, grad = rows_of(x), rows_of(grad)
    if ctx.activation != "none" or ctx.gate != "none":
        if y is not None:
            z = rows_of(y)
        else:
            z = _linear(rows, weight, bias, "none", "none", torch.float32, None, None)
        grad = _activation_gradient(grad, z, ctx.activation, ctx.gate, x.dtype)
    else:
        grad = grad.to(x.dtype)
    if needs_x:
        grad_x = _product(grad, weight, x.dtype, None).reshape(x.shape)
    if needs_weight and ctx.main_grad is not None:
        _accumulate(ctx.main_grad, grad.mT, rows, sample_lengths)
    elif needs_weight:
        grad_weight = _product(grad.mT, rows, gradient_dtype(weight), sample_lengths)
    if needs_bias:
        ones = grad.new_ones((1, grad.shape[0]))
        grad_bias = _product(ones, grad, gradient_dtype(bias), sample_lengths).flatten()
    return grad_x, grad_weight, grad_bias, None, None, None, None, None


_linear.register_autograd(_linear_backward, setup_context=_linear_setup)


# ---- for users ----


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None,
           activation: Optional[str] = None, *, gate: Optional[str] = None,
           dtype: Optional[torch.dtype] = None, sample_lengths: Lengths = None,
           main_grad: Optional[Tensor] = None) -> Tensor:
    """activation(x · weightᵀ + bias): torch.nn.functional.linear with specified bits.

    x               (…, K), bfloat16 or float16
    weight          (N, K), of x's dtype
    bias            (N), of x's dtype or float32
    activation      "relu", "silu", "gelu", "gelu_tanh": applied in float32, before the one rounding
    gate            "stacked" or "interleaved": weight and bias have 2N rows, gates and values, and
                    the result is activation(gate) · value
    dtype           of the result: x's, if None, or float32
    sample_lengths  how many of the rows of x belong to each sample, in order: a RowMap, integers,
                    or an int64 tensor on the CPU. The gradients of weight and bias are then sums
                    over samples that do not depend on how these were put together into batches.
    main_grad       a float32 tensor of weight's shape, to which the backward adds weight's
                    gradient, going on with its chains; weight.grad is then left alone. With
                    sample_lengths, micro-batches one after another give the bits of one batch.

    The gradients of x, weight and bias are products by the same contract, from the gradient of the
    result rounded to x's dtype. Between an activation's result and its argument the derivative is
    PyTorch's, in float32 (on the CPU float64), of an argument that is computed again.
    """
    if weight.dim() != 2 or (bias is not None and bias.dim() != 1) or x.dim() < 1:
        raise Error(f"linear takes x of (…, K), weight of (N, K) and bias of (N), not "
                    f"{tuple(x.shape)}, {tuple(weight.shape)} and "
                    f"{None if bias is None else tuple(bias.shape)}")
    if main_grad is not None and main_grad.requires_grad:
        raise Error("main_grad requires a gradient itself: it is a plain buffer")
    return _linear(x, weight, bias, activation or "none", gate or "none", dtype or x.dtype,
                   lengths_tensor(sample_lengths), main_grad)


def matmul(a: Tensor, b: Tensor, *, dtype: Optional[torch.dtype] = None) -> Tensor:
    """torch.matmul with specified bits: a (…, M, K) times b (…, K, N), bfloat16 or float16, of
    which either may be transposed or a view. The result is of `dtype`: a's, if None, or float32.

    Batches are broadcast. The gradient of an operand that was broadcast is summed by PyTorch,
    except for a b of two dimensions, whose gradient is one chain over all rows of a.
    """
    dtype = dtype or a.dtype
    if a.dim() < 1 or b.dim() < 1:
        raise Error("matmul takes no tensors without dimensions")
    if b.dim() == 1:
        return matmul(a, b.unsqueeze(-1), dtype=dtype).squeeze(-1)
    if a.dim() == 1:
        return matmul(a.unsqueeze(0), b, dtype=dtype).squeeze(-2)
    if b.dim() == 2:
        out = _product(a.flatten(0, -2), b, dtype, None)
        return out.reshape(*a.shape[:-1], b.shape[-1])
    batches = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    left = a.expand(*batches, *a.shape[-2:]).flatten(0, -3)
    right = b.expand(*batches, *b.shape[-2:]).flatten(0, -3)
    return _product(left, right, dtype, None).reshape(*batches, a.shape[-2], b.shape[-1])


def accumulate_(total: Tensor, a: Tensor, b: Tensor, *, sample_lengths: Lengths = None) -> Tensor:
    """total += a · b, in place and without a rounding between: the chains go on from total, which
    is of float32. For gradients of weights, a = grad.mT and b = x, in functions of one's own.
    `sample_lengths` as for `linear`. Not differentiable."""
    with torch.no_grad():
        _accumulate(total, a, b, lengths_tensor(sample_lengths))
    return total
