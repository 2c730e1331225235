"""16-bit products of PyTorch's tensors for benchmarks and checks.

    engine = samebit.Engine("cuda:0")
    product(engine, x, weight.t(), out, activation="silu").run(torch.cuda.current_stream().cuda_stream)

Here a product is described once and run many times, into a given output, by a given schedule; samebit.gemm offers more
comfort and less control.
"""

import torch

from ._engine import NO_MATRIX, activation_number, gate_number
from ._errors import Error
from ._library import DTYPE_NUMBERS

DTYPES = {torch.float16: DTYPE_NUMBERS["f16"], torch.bfloat16: DTYPE_NUMBERS["bf16"],
          torch.float32: DTYPE_NUMBERS["f32"]}


def describe(tensor):
    """The fields of an sb_matrix of a tensor with two dimensions, or three for a batch."""
    rows, columns = tensor.shape[-2:]
    return (DTYPES[tensor.dtype], tensor.data_ptr(), rows, columns, *tensor.stride()[-2:],
            tensor.stride(0) if tensor.dim() == 3 else 0)


class Product:
    """C = round(epilogue(A · B)), of described matrices. Who calls keeps their memory."""

    def __init__(self, engine, a, b, c, batches=1, bias=None, activation="none", gate="none",
                 residual=None, lengths=None, **options):
        """`lengths`: of the samples of a row map. Further options are scale, accumulate, schedule."""
        rows = engine.row_map(tuple(lengths), holder=self) if lengths is not None else 0
        self.engine = engine
        self.packed = engine.pack(
            a, b, c, batches, bias=bias or NO_MATRIX, activation=activation_number(activation),
            gate=gate_number(gate), residual=residual or NO_MATRIX, rows=rows, **options)

    def run(self, stream=0):
        """`stream`: a CUstream as a number."""
        self.engine.run(self.packed, stream)

    def chosen(self):
        """The schedule that would be chosen."""
        return self.engine.choose(self.packed)


def product(engine, a, b, c, **options):
    """A Product of tensors, which it keeps."""
    kept = [a, b, c] + [options.get(name) for name in ("bias", "residual")]
    for name in ("bias", "residual"):
        if options.get(name) is not None:
            tensor = options[name]
            options[name] = describe(tensor if tensor.dim() > 1 else tensor[None])
    if c.dim() == 3:
        options.setdefault("batches", c.shape[0])
    made = Product(engine, describe(a), describe(b), describe(c), **options)
    made.kept = kept
    return made


def refused(run, *arguments):
    """Runs, and gives why a forced schedule cannot run this, or None when it did. Other failures raise."""
    try:
        run(*arguments)
    except Error as error:
        if error.status != "unsupported":
            raise
        return str(error)
    return None
