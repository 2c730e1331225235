"""include/invar/gemm.h for benchmarks and checks: 16-bit products of PyTorch's tensors, on the CPU or a GPU.

    library = Library("libinvar.so")
    engine = Engine(library, library.open_device(0))
    engine.product(x, weight.t(), out, activation="silu").run(torch.cuda.current_stream().cuda_stream)

Tensors have two dimensions, or three, of which the first is the batch, and any strides. Nothing is
copied. A product is described once and may be run many times.
"""

import ctypes

import torch

import invar_ctypes
from invar_ctypes import FALLIBLE, INT, OUT, TEXT, VOID, Handle, InvarError

UNSUPPORTED = 6  # include/invar/error.h
DTYPES = {torch.float16: 10, torch.bfloat16: 11, torch.float32: 12}
ACTIVATIONS = ("none", "relu", "silu", "gelu", "gelu_tanh")
GATES = ("none", "stacked", "interleaved")
ISAS = ("best", "scalar", "avx2", "avx512")


class EngineOptions(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("device", VOID),
        ("threads", INT),
        ("isa", INT),
    ]


class Matrix(ctypes.Structure):
    _fields_ = [
        ("dtype", INT),
        ("data", VOID),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("batch_stride", ctypes.c_int64),
    ]


class Gemm(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("a", Matrix),
        ("b", Matrix),
        ("c", Matrix),
        ("batches", ctypes.c_int64),
        ("scale", ctypes.c_float),
        ("bias", Matrix),
        ("activation", INT),
        ("gate", INT),
        ("residual", Matrix),
        ("accumulate", ctypes.c_bool),
        ("rows", VOID),
        ("schedule", TEXT),
    ]


FUNCTIONS = {
    "iv_engine_create": (FALLIBLE, [ctypes.POINTER(EngineOptions), OUT]),
    "iv_engine_destroy": (None, [VOID]),
    "iv_gemm_run": (FALLIBLE, [VOID, VOID, ctypes.POINTER(Gemm)]),
    "iv_gemm_schedule_count": (INT, [VOID]),
    "iv_gemm_schedule_name": (TEXT, [VOID, INT]),
    "iv_gemm_choose": (FALLIBLE, [VOID, ctypes.POINTER(Gemm), ctypes.POINTER(TEXT)]),
    "iv_row_map_create": (
        FALLIBLE, [VOID, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), OUT]),
    "iv_row_map_release": (None, [VOID]),
}


class Library(invar_ctypes.Library):
    def __init__(self, path):
        super().__init__(path)
        self.bind(FUNCTIONS)


def describe(tensor):
    """The Matrix of a tensor, or of one that was described already; None is no matrix."""
    if tensor is None or isinstance(tensor, Matrix):
        return tensor or Matrix()
    rows, columns = tensor.shape[-2:]
    batch_stride = tensor.stride(0) if tensor.dim() == 3 else 0
    return Matrix(DTYPES[tensor.dtype], tensor.data_ptr(), rows, columns, *tensor.stride()[-2:],
                  batch_stride)


class Engine(Handle):
    """On a device, or without one on the CPU."""

    def __init__(self, library, device=None, threads=0, isa="best"):
        super().__init__(library, library.iv_engine_destroy)
        options = EngineOptions(ctypes.sizeof(EngineOptions), device and device.pointer, threads,
                                ISAS.index(isa))
        library.iv_engine_create(ctypes.byref(options), ctypes.byref(self.pointer))
        self.schedules = [library.iv_gemm_schedule_name(self.pointer, i).decode()
                          for i in range(library.iv_gemm_schedule_count(self.pointer))]

    def product(self, a, b, c, **options):
        return Product(self, a, b, c, **options)

    def row_map(self, lengths):
        return RowMap(self, lengths)


class RowMap(Handle):
    """Row counts of samples, for one engine."""

    def __init__(self, engine, lengths):
        super().__init__(engine.library, engine.library.iv_row_map_release)
        self.engine = engine
        engine.library.iv_row_map_create(engine.pointer, len(lengths),
                                         (ctypes.c_int64 * len(lengths))(*lengths),
                                         ctypes.byref(self.pointer))


class Product:
    """C = round(epilogue(A · B)). Keeps what it was made of alive."""

    def __init__(self, engine, a, b, c, batches=None, scale=1.0, bias=None, activation="none",
                 gate="none", residual=None, accumulate=False, rows=None, schedule=None):
        self.kept = (engine, a, b, c, bias, residual, rows)
        if batches is None:
            batches = c.shape[0] if c.dim() == 3 else 1
        if isinstance(bias, torch.Tensor) and bias.dim() == 1:
            bias = bias[None]
        self.gemm = Gemm(ctypes.sizeof(Gemm), describe(a), describe(b), describe(c), batches, scale,
                         describe(bias), ACTIVATIONS.index(activation), GATES.index(gate),
                         describe(residual), accumulate, rows and rows.pointer,
                         schedule and schedule.encode())
        self.engine = engine

    def run(self, stream=None):
        """`stream`: a CUstream as a number. InvarError with status UNSUPPORTED when the schedule cannot run this."""
        self.engine.library.iv_gemm_run(self.engine.pointer, stream, self.gemm)

    def schedule(self):
        """The schedule that run() would choose."""
        name = TEXT()
        self.engine.library.iv_gemm_choose(self.engine.pointer, self.gemm, ctypes.byref(name))
        return name.value.decode()


def refused(run, *arguments):
    """Runs, and gives why the schedule cannot run this, or None when it did. Other failures raise."""
    try:
        run(*arguments)
    except InvarError as error:
        if error.status != UNSUPPORTED:
            raise
        return str(error)
    return None
