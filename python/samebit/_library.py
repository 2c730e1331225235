"""libsamebit through ctypes: finding it, its functions, its errors.

Nothing is opened when the package is imported. The first call that needs the library opens it, and
says what is missing and what to do if it cannot.
"""

import ctypes
import os
import threading

from ._errors import CLASSES, ArgumentTypeError, Error
from ._structures import (
    Comparison,
    DeviceDescription,
    DriverDescription,
    EncodeOptions,
    EngineOptions,
    ErrorReport,
    GraphReport,
    InspectedNode,
    InspectedTotals,
    InspectedValue,
    InspectOptions,
    LlmDate,
    LlmBatchOptions,
    LlmDescription,
    LlmEmbedding,
    LlmGeneration,
    LlmOptions,
    LlmPerplexity,
    LlmPerplexityResult,
    LlmQueueOptions,
    LlmRequest,
    LlmResult,
    LlmSampling,
    LlmScoring,
    ModelMetadata,
    ModelOptions,
    RunReport,
    SessionOptions,
    StateCounters,
    StateOptions,
    StateVariable,
    String,
    Value,
    ValueDescription,
)

# include/samebit/{dtype,isa,gemm,session,value}.h: the numbers are part of the binary interface.
DTYPE_NUMBERS = {"f16": 10, "bf16": 11, "f32": 12}
DTYPE_NAMES = {number: name for name, number in DTYPE_NUMBERS.items()}
ISA_NUMBERS = {"best": 0, "scalar": 1, "avx2": 2, "avx512": 3}
ACTIVATION_NUMBERS = {None: 0, "none": 0, "relu": 1, "silu": 2, "gelu": 3, "gelu_tanh": 4}
GATE_NUMBERS = {None: 0, "none": 0, "stacked": 1, "interleaved": 2}
GRAPH_MODE_NUMBERS = {"auto": 0, "off": 1, "capture": 2, "build": 3}
KIND_NONE, KIND_TENSOR, KIND_SEQUENCE = 0, 1, 2

VARIABLE = "SAMEBIT_LIBRARY"
# The name that the loader knows carries the version of the binary interface; the other is a
# development installation's.
LOADER_NAMES = ("libsamebit.so.0", "libsamebit.so")

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_TEXT = ctypes.c_char_p
_INT64 = ctypes.c_int64
_SIZE = ctypes.c_size_t
_BOOL = ctypes.c_bool
_OUT = ctypes.POINTER(ctypes.c_void_p)
_TO = ctypes.POINTER
_DIMS = ctypes.POINTER(_INT64)


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
    "sb_dtype_size": (_SIZE, [_INT]),
    "sb_dtype_name": (_TEXT, [_INT]),
    "sb_dtype_from_name": (_INT, [_TEXT]),
    "sb_tensor_from_strings": (FALLIBLE, [_INT, _DIMS, _TO(String), _OUT]),
    "sb_tensor_wrap": (FALLIBLE, [_INT, _INT, _DIMS, _DIMS, _POINTER, _POINTER, _POINTER, _OUT]),
    "sb_tensor_retain": (_POINTER, [_POINTER]),
    "sb_tensor_release": (None, [_POINTER]),
    "sb_tensor_dtype": (_INT, [_POINTER]),
    "sb_tensor_rank": (_INT, [_POINTER]),
    "sb_tensor_dims": (_DIMS, [_POINTER]),
    "sb_tensor_strides": (_DIMS, [_POINTER]),
    "sb_tensor_elements": (_INT64, [_POINTER]),
    "sb_tensor_data": (_POINTER, [_POINTER]),
    "sb_tensor_contiguous": (FALLIBLE, [_POINTER, _OUT]),
    "sb_tensor_compare": (
        FALLIBLE,
        [_POINTER, _POINTER, ctypes.c_double, ctypes.c_double, _TO(Comparison)],
    ),
    "sb_tensor_is_on_device": (_BOOL, [_POINTER]),
    "sb_tensor_to_device": (FALLIBLE, [_POINTER, _POINTER, _OUT]),
    "sb_tensor_to_host": (FALLIBLE, [_POINTER, _POINTER, _OUT]),
    "sb_tensor_to_dlpack": (FALLIBLE, [_POINTER, _OUT]),
    "sb_tensor_from_dlpack": (FALLIBLE, [_POINTER, _OUT]),
    "sb_tensor_from_dlpack_legacy": (FALLIBLE, [_POINTER, _OUT]),
    "sb_tensor_from_dlpack_on": (FALLIBLE, [_POINTER, _POINTER, _OUT]),
    "sb_tensor_from_dlpack_legacy_on": (FALLIBLE, [_POINTER, _POINTER, _OUT]),
    "sb_value_retain": (Value, [Value]),
    "sb_value_release": (None, [_TO(Value)]),
    "sb_value_of_sequence": (FALLIBLE, [_INT, _INT64, _TO(Value), _TO(Value)]),
    "sb_sequence_count": (_INT64, [_POINTER]),
    "sb_sequence_item": (Value, [_POINTER, _INT64]),
    "sb_digest_values": (FALLIBLE, [_INT, _TO(Value), _POINTER]),
    "sb_isa_detect": (_INT, []),
    "sb_isa_name": (_TEXT, [_INT]),
    "sb_model_load": (FALLIBLE, [_TEXT, _TO(ModelOptions), _OUT]),
    "sb_model_load_memory": (FALLIBLE, [_POINTER, _SIZE, _TO(ModelOptions), _OUT]),
    "sb_model_release": (None, [_POINTER]),
    "sb_model_save": (FALLIBLE, [_POINTER, _TEXT]),
    "sb_model_describe": (_TO(ModelMetadata), [_POINTER]),
    "sb_model_warning_count": (_INT, [_POINTER]),
    "sb_model_warning": (_TEXT, [_POINTER, _INT]),
    "sb_model_entry_count": (_INT, [_POINTER]),
    "sb_model_entry_name": (_TEXT, [_POINTER, _INT]),
    "sb_model_entry_input_count": (_INT, [_POINTER, _INT]),
    "sb_model_entry_output_count": (_INT, [_POINTER, _INT]),
    "sb_model_entry_input": (_TO(ValueDescription), [_POINTER, _INT, _INT]),
    "sb_model_entry_output": (_TO(ValueDescription), [_POINTER, _INT, _INT]),
    "sb_session_create": (FALLIBLE, [_POINTER, _TO(SessionOptions), _OUT]),
    "sb_session_destroy": (None, [_POINTER]),
    "sb_session_run": (FALLIBLE, [_POINTER, _TO(Value), _TO(Value)]),
    "sb_session_run_arrays": (FALLIBLE, [_POINTER, _POINTER, _POINTER]),
    "sb_session_enqueue": (FALLIBLE, [_POINTER, _TO(Value), _TO(ctypes.c_uint64)]),
    "sb_session_poll": (FALLIBLE, [_POINTER, ctypes.c_uint64, _TO(_BOOL)]),
    "sb_session_wait": (FALLIBLE, [_POINTER, ctypes.c_uint64, _TO(Value)]),
    "sb_session_last_run": (None, [_POINTER, _TO(RunReport)]),
    "sb_session_exact_plans": (_TEXT, [_POINTER]),
    "sb_session_visit_placement": (_INT, [_POINTER, _POINTER, _POINTER]),
    "sb_session_graphs": (None, [_POINTER, _TO(GraphReport)]),
    "sb_session_interrupt": (None, [_POINTER]),
    "sb_session_clear_interrupt": (None, [_POINTER]),
    "sb_state_create": (FALLIBLE, [_POINTER, _TO(StateOptions), _OUT]),
    "sb_state_release": (None, [_POINTER]),
    "sb_state_variable_count": (_INT, [_POINTER]),
    "sb_state_variable_index": (_INT, [_POINTER, _TEXT]),
    "sb_state_describe": (None, [_POINTER, _INT, _TO(StateVariable)]),
    "sb_state_get": (FALLIBLE, [_POINTER, _INT, _OUT]),
    "sb_state_set": (FALLIBLE, [_POINTER, _INT, _POINTER]),
    "sb_state_reset": (FALLIBLE, [_POINTER]),
    "sb_state_copy": (FALLIBLE, [_POINTER, _POINTER]),
    "sb_state_extent": (FALLIBLE, [_POINTER, _TEXT, _DIMS]),
    "sb_state_trim": (FALLIBLE, [_POINTER, _TEXT, _INT64]),
    "sb_state_reset_slot": (FALLIBLE, [_POINTER, _INT64]),
    "sb_state_copy_slot": (FALLIBLE, [_POINTER, _INT64, _INT64]),
    "sb_state_save": (FALLIBLE, [_POINTER, _TEXT]),
    "sb_state_restore": (FALLIBLE, [_POINTER, _TEXT]),
    "sb_state_save_slot": (FALLIBLE, [_POINTER, _INT64, _TEXT]),
    "sb_state_restore_slot": (FALLIBLE, [_POINTER, _INT64, _TEXT]),
    "sb_state_count": (None, [_POINTER, _TO(StateCounters)]),
    "sb_model_inspect": (FALLIBLE, [_POINTER, _TO(InspectOptions), _OUT]),
    "sb_inspection_release": (None, [_POINTER]),
    "sb_inspection_name": (_TEXT, [_POINTER]),
    "sb_inspection_node_count": (_INT, [_POINTER]),
    "sb_inspection_node": (_TO(InspectedNode), [_POINTER, _INT]),
    "sb_inspection_value_count": (_INT, [_POINTER]),
    "sb_inspection_value": (_TO(InspectedValue), [_POINTER, _INT]),
    "sb_inspection_totals": (_TO(InspectedTotals), [_POINTER]),
    "sb_device_list_create": (FALLIBLE, [_POINTER, _OUT]),
    "sb_device_list_release": (None, [_POINTER]),
    "sb_device_list_driver": (_TO(DriverDescription), [_POINTER]),
    "sb_device_list_count": (_INT, [_POINTER]),
    "sb_device_list_at": (_TO(DeviceDescription), [_POINTER, _INT]),
    "sb_device_wait": (FALLIBLE, [_POINTER, _POINTER]),
    "sb_llm_load": (FALLIBLE, [_TEXT, _TO(LlmOptions), _OUT]),
    "sb_llm_release": (None, [_POINTER]),
    "sb_llm_describe": (_TO(LlmDescription), [_POINTER]),
    "sb_llm_session_create": (FALLIBLE, [_POINTER, _TO(SessionOptions), _OUT]),
    "sb_llm_session_destroy": (None, [_POINTER]),
    "sb_llm_session_interrupt": (None, [_POINTER]),
    "sb_llm_session_clear_interrupt": (None, [_POINTER]),
    "sb_llm_session_length": (_INT64, [_POINTER]),
    "sb_llm_session_trim": (FALLIBLE, [_POINTER, _INT64]),
    "sb_llm_step": (FALLIBLE, [_POINTER, _INT64, _POINTER, _INT64, _POINTER, _OUT]),
    "sb_llm_suggest_sampling": (FALLIBLE, [_TEXT, _TO(LlmSampling)]),
    "sb_llm_sample": (FALLIBLE, [_POINTER, _INT64, _TO(LlmSampling), _INT64, _DIMS]),
    "sb_llm_logp": (ctypes.c_float, [_POINTER, _INT64, _INT64]),
    "sb_llm_generate": (FALLIBLE, [_POINTER, _INT64, _POINTER, _TO(LlmGeneration), _TO(LlmResult)]),
    "sb_llm_embed": (FALLIBLE, [_POINTER, _INT64, _POINTER, _TO(LlmEmbedding), _OUT]),
    "sb_llm_replace_weights": (FALLIBLE, [_POINTER, _INT64, _POINTER]),
    "sb_llm_batch_create": (FALLIBLE, [_POINTER, _TO(LlmBatchOptions), _OUT]),
    "sb_llm_batch_release": (None, [_POINTER]),
    "sb_llm_batch_interrupt": (None, [_POINTER]),
    "sb_llm_queue_create": (FALLIBLE, [_POINTER, _TO(LlmQueueOptions), _OUT]),
    "sb_llm_queue_destroy": (None, [_POINTER]),
    "sb_llm_queue_add": (FALLIBLE, [_POINTER, _TO(LlmRequest)]),
    "sb_llm_queue_run": (FALLIBLE, [_POINTER]),
    "sb_llm_score": (FALLIBLE, [_POINTER, _INT64, _POINTER, _TO(LlmScoring)]),
    "sb_llm_measure_perplexity": (
        FALLIBLE,
        [_POINTER, _INT64, _POINTER, _TO(LlmPerplexity), _TO(LlmPerplexityResult)],
    ),
    "sb_llm_free": (None, [_POINTER]),
    "sb_tokenizer_open": (FALLIBLE, [_TEXT, _OUT]),
    "sb_tokenizer_open_memory": (FALLIBLE, [_TEXT, _SIZE, _TEXT, _OUT]),
    "sb_tokenizer_release": (None, [_POINTER]),
    "sb_tokenizer_encode": (FALLIBLE, [_POINTER, _TEXT, _SIZE, _TO(EncodeOptions), _OUT, _TO(_SIZE)]),
    "sb_tokenizer_decode": (FALLIBLE, [_POINTER, _POINTER, _SIZE, _BOOL, _OUT, _TO(_SIZE)]),
    "sb_tokenizer_vocabulary": (_INT64, [_POINTER]),
    "sb_tokenizer_token": (_POINTER, [_POINTER, _INT64, _TO(_SIZE)]),
    "sb_tokenizer_find": (_INT64, [_POINTER, _TEXT, _SIZE]),
    "sb_tokenizer_is_special": (_BOOL, [_POINTER, _INT64]),
    "sb_decode_stream_create": (FALLIBLE, [_POINTER, _BOOL, _OUT]),
    "sb_decode_stream_push": (FALLIBLE, [_POINTER, _INT64, _OUT, _TO(_SIZE)]),
    "sb_decode_stream_finish": (FALLIBLE, [_POINTER, _OUT, _TO(_SIZE)]),
    "sb_decode_stream_destroy": (None, [_POINTER]),
    "sb_chat_template_create": (FALLIBLE, [_TEXT, _SIZE, _OUT]),
    "sb_chat_template_load": (FALLIBLE, [_TEXT, _OUT]),
    "sb_chat_template_free": (None, [_POINTER]),
    "sb_chat_template_render": (FALLIBLE, [_POINTER, _TEXT, _SIZE, _TO(LlmDate), _OUT, _TO(_SIZE)]),
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
            raise CLASSES.get(status, Error)(report.message.decode("utf-8", "replace"), name)

    def call(self, name, *arguments):
        """A fallible function of the library, which raises what it reports."""
        report = getattr(_reports, "report", None)
        if report is None:
            report = _reports.report = ErrorReport()
        try:
            status = getattr(self, name)(*arguments, ctypes.addressof(report))
        except ctypes.ArgumentError as failure:
            raise ArgumentTypeError(f"an argument of {name} cannot be passed on: {failure}") from None
        if status:
            self.check(status, report)


# A report for each thread: it has two kilobytes, which need not be cleared for every call.
_reports = threading.local()
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


def open_library(path=None):
    """Opens libsamebit at `path`, else at SAMEBIT_LIBRARY, else next to the package, else where the
    system's loader finds it.

    Once it is open it stays: asking for another path is an error. Calls that need the library open it
    by themselves.
    """
    global _library
    with _lock:
        if _library is None:
            _library = _open(os.fspath(path)) if path is not None else _find()
        elif path is not None and os.fspath(path) != _library.path:
            raise Error(
                f"Samebit's library is already open from {_library.path}: open "
                f"{os.fspath(path)} before anything else uses Samebit"
            )
        return _library


def library():
    """The opened library."""
    return _library if _library is not None else open_library()


def version():
    """The library's version, such as "0.1.0"."""
    return library().sb_version().decode()


def isa():
    """The best instruction set of this processor: "scalar", "avx2" or "avx512"."""
    return library().sb_isa_name(library().sb_isa_detect()).decode()


def numerics_version():
    """The version of the numerics contract: outputs of equal versions have equal bits."""
    return library().sb_numerics_version()
