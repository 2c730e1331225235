"""libsamebit through ctypes: finding it, its functions, its errors.

Nothing is opened when the package is imported. The first call that needs the library opens it, and
says what is missing and what to do if it cannot.
"""

import ctypes
import os
import threading

# include/samebit/{dtype,error,isa,gemm}.h: the numbers are part of the binary interface.
DTYPE_NUMBERS = {"f16": 10, "bf16": 11, "f32": 12}
DTYPE_NAMES = {number: name for name, number in DTYPE_NUMBERS.items()}
ISA_NUMBERS = {"best": 0, "scalar": 1, "avx2": 2, "avx512": 3}
ACTIVATION_NUMBERS = {None: 0, "none": 0, "relu": 1, "silu": 2, "gelu": 3, "gelu_tanh": 4}
GATE_NUMBERS = {None: 0, "none": 0, "stacked": 1, "interleaved": 2}
MESSAGE_BYTES = 2048

VARIABLE = "SAMEBIT_LIBRARY"
# The name that the loader knows carries the version of the binary interface; the other is a
# development installation's.
LOADER_NAMES = ("libsamebit.so.0", "libsamebit.so")

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_TEXT = ctypes.c_char_p
_INT64 = ctypes.c_int64
_SIZE = ctypes.c_size_t
_OUT = ctypes.POINTER(ctypes.c_void_p)


class Error(Exception):
    """A call failed; the text says what is wrong and what to do. `status` is the library's name of
    the kind of failure, such as "shape", or None when the library was not reached."""

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class ErrorReport(ctypes.Structure):
    """sb_error."""

    _fields_ = [("status", _INT), ("message", ctypes.c_char * MESSAGE_BYTES)]


class EngineOptions(ctypes.Structure):
    """sb_engine_options."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("device", _POINTER),
        ("threads", _INT),
        ("isa", _INT),
    ]


class Matrix(ctypes.Structure):
    """sb_matrix."""

    _fields_ = [
        ("dtype", _INT),
        ("data", _POINTER),
        ("rows", _INT64),
        ("columns", _INT64),
        ("row_stride", _INT64),
        ("column_stride", _INT64),
        ("batch_stride", _INT64),
    ]


class Gemm(ctypes.Structure):
    """sb_gemm."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("a", Matrix),
        ("b", Matrix),
        ("c", Matrix),
        ("batches", _INT64),
        ("scale", ctypes.c_float),
        ("bias", Matrix),
        ("activation", _INT),
        ("gate", _INT),
        ("residual", Matrix),
        ("accumulate", ctypes.c_bool),
        ("rows", _POINTER),
        ("schedule", _TEXT),
    ]


class LinearLogp(ctypes.Structure):
    """sb_linear_logp."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("hidden", Matrix),
        ("weight", Matrix),
        ("targets", _POINTER),
        ("ignore_index", _INT64),
        ("inverse_temperature", ctypes.c_float),
        ("logp", _POINTER),
        ("maximum", _POINTER),
        ("sum", _POINTER),
        ("workspace", _POINTER),
        ("workspace_bytes", ctypes.c_size_t),
        ("schedule", _TEXT),
    ]


class LinearLogpGradient(ctypes.Structure):
    """sb_linear_logp_gradient."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("d_logp", _POINTER),
        ("d_hidden", Matrix),
        ("d_weight", Matrix),
        ("accumulate", ctypes.c_bool),
        ("rows", _POINTER),
    ]


# name: (result, arguments). With FALLIBLE the result is a status, and the last argument, which is
# not listed, is an error report.
FALLIBLE = object()
FUNCTIONS = {
    "sb_version": (_TEXT, []),
    "sb_numerics_version": (_INT, []),
    "sb_status_name": (_TEXT, [_INT]),
    "sb_device_open": (FALLIBLE, [_POINTER, _INT, _OUT]),
    "sb_device_release": (None, [_POINTER]),
    "sb_device_name": (_TEXT, [_POINTER]),
    "sb_engine_create": (FALLIBLE, [ctypes.POINTER(EngineOptions), _OUT]),
    "sb_engine_destroy": (None, [_POINTER]),
    # What is asked for is passed as packed bytes: see _engine.py and _torch_logp.py.
    "sb_gemm_run": (FALLIBLE, [_POINTER, _POINTER, _TEXT]),
    "sb_gemm_choose": (FALLIBLE, [_POINTER, _TEXT, ctypes.POINTER(_TEXT)]),
    "sb_gemm_schedule_count": (_INT, [_POINTER]),
    "sb_gemm_schedule_name": (_TEXT, [_POINTER, _INT]),
    "sb_linear_logp_workspace": (FALLIBLE, [_POINTER, _TEXT, _TEXT, ctypes.POINTER(_SIZE)]),
    "sb_linear_logp_forward": (FALLIBLE, [_POINTER, _POINTER, _TEXT]),
    "sb_linear_logp_backward": (FALLIBLE, [_POINTER, _POINTER, _TEXT, _TEXT]),
    "sb_row_map_create": (FALLIBLE, [_POINTER, _INT64, ctypes.POINTER(_INT64), _OUT]),
    "sb_row_map_release": (None, [_POINTER]),
    "sb_row_map_rows": (_INT64, [_POINTER]),
}


class Library:
    """The functions of an opened libsamebit, as attributes under their own names. Fallible ones
    return a status; `check` turns it into an exception."""

    def __init__(self, path):
        self.path = path
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(loaded, name)
            except AttributeError:
                raise Error(
                    f"{path} has no function {name}: it is not Samebit's library, or older than this "
                    "package; install the library and the package of one release"
                ) from None
            fallible = result is FALLIBLE
            function.restype = _INT if fallible else result
            function.argtypes = arguments + [_POINTER] if fallible else arguments
            setattr(self, name, function)

    def check(self, status, report):
        """Raises what a failed call reported."""
        if status:
            name = self.sb_status_name(status).decode()
            raise Error(report.message.decode("utf-8", "replace"), name)


_lock = threading.Lock()
_library = None


def _open(path):
    try:
        return Library(path)
    except OSError as failure:
        raise Error(f"Samebit's library cannot be opened: {failure}") from None


def _find():
    named = os.environ.get(VARIABLE)
    if named:
        return _open(named)
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libsamebit.so")
    if os.path.exists(beside):
        return _open(beside)
    for name in LOADER_NAMES:
        try:
            return Library(name)
        except OSError:
            continue
    raise Error(
        f"Samebit's library was not found: {VARIABLE} is not set, there is no {beside}, and the "
        f"system's loader knows neither {' nor '.join(LOADER_NAMES)}. Build it with CMake and "
        f"install it, or set {VARIABLE} to the path of libsamebit.so"
    )


def load(path=None):
    """Opens the library at `path`, else at SAMEBIT_LIBRARY, else next to the package, else where the
    system's loader finds it. Once it is open it stays: asking for another path is an error. Calls
    that need the library load it by themselves."""
    global _library
    with _lock:
        if _library is None:
            _library = _open(os.fspath(path)) if path is not None else _find()
        elif path is not None and os.fspath(path) != _library.path:
            raise Error(
                f"Samebit's library is already open from {_library.path}: load "
                f"{os.fspath(path)} before anything else uses Samebit"
            )
        return _library


def library():
    """The opened library."""
    return _library if _library is not None else load()


def version():
    """The library's version, such as "0.1.0"."""
    return library().sb_version().decode()


def numerics_version():
    """The version of the numerics contract: outputs of equal versions have equal bits."""
    return library().sb_numerics_version()
