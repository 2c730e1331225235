"""The structures of libsamebit's public headers, for ctypes. The numbers are part of the binary interface, and
tests/python/test_layouts.py compares every field's place with the C compiler's."""

import ctypes

MESSAGE_BYTES = 2048
DIGEST_BYTES = 65
MAX_RANK = 12

_POINTER = ctypes.c_void_p
_INT = ctypes.c_int
_TEXT = ctypes.c_char_p
_INT64 = ctypes.c_int64
_SIZE = ctypes.c_size_t
_BOOL = ctypes.c_bool


class ErrorReport(ctypes.Structure):
    """sb_error."""

    _fields_ = [("status", _INT), ("message", ctypes.c_char * MESSAGE_BYTES)]


# ---- products ----


class EngineOptions(ctypes.Structure):
    """sb_engine_options."""

    _fields_ = [("struct_bytes", _SIZE), ("device", _POINTER), ("threads", _INT), ("isa", _INT)]


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
        ("struct_bytes", _SIZE),
        ("a", Matrix),
        ("b", Matrix),
        ("c", Matrix),
        ("batches", _INT64),
        ("scale", ctypes.c_float),
        ("bias", Matrix),
        ("activation", _INT),
        ("gate", _INT),
        ("residual", Matrix),
        ("accumulate", _BOOL),
        ("rows", _POINTER),
        ("schedule", _TEXT),
    ]


class LinearLogp(ctypes.Structure):
    """sb_linear_logp."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("hidden", Matrix),
        ("weight", Matrix),
        ("targets", _POINTER),
        ("ignore_index", _INT64),
        ("inverse_temperature", ctypes.c_float),
        ("logp", _POINTER),
        ("maximum", _POINTER),
        ("sum", _POINTER),
        ("workspace", _POINTER),
        ("workspace_bytes", _SIZE),
        ("schedule", _TEXT),
    ]


class LinearLogpGradient(ctypes.Structure):
    """sb_linear_logp_gradient."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("d_logp", _POINTER),
        ("d_hidden", Matrix),
        ("d_weight", Matrix),
        ("accumulate", _BOOL),
        ("rows", _POINTER),
    ]


# ---- values and models ----


class Value(ctypes.Structure):
    """sb_value, whose union is one pointer."""

    _fields_ = [("kind", _INT), ("pointer", _POINTER)]


class Array(ctypes.Structure):
    """sb_array."""

    _fields_ = [
        ("dtype", _INT),
        ("rank", _INT),
        ("contiguous", _BOOL),
        ("data", _POINTER),
        ("tensor", _POINTER),
        ("dims", _INT64 * MAX_RANK),
        ("strides", _INT64 * MAX_RANK),
    ]


class String(ctypes.Structure):
    """sb_string."""

    _fields_ = [("data", _TEXT), ("bytes", _SIZE)]


class ModelOptions(ctypes.Structure):
    """sb_model_options."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("isa", _INT),
        ("passes", _BOOL),
        ("reference_only", _BOOL),
        ("memory_limit", _INT64),
        ("unrelated_symbols", _TEXT),
    ]


class ValueDescription(ctypes.Structure):
    """sb_value_description."""

    _fields_ = [
        ("name", _TEXT),
        ("kind", _INT),
        ("optional", _BOOL),
        ("dtype", _INT),
        ("rank", _INT),
        ("dims", ctypes.POINTER(_INT64)),
        ("dim_texts", ctypes.POINTER(_TEXT)),
    ]


class ModelOpset(ctypes.Structure):
    """sb_model_opset."""

    _fields_ = [("domain", _TEXT), ("version", _INT64)]


class ModelProperty(ctypes.Structure):
    """sb_model_property."""

    _fields_ = [("key", _TEXT), ("value", _TEXT)]


class ModelMetadata(ctypes.Structure):
    """sb_model_metadata."""

    _fields_ = [
        ("format_version", _INT64),
        ("model_version", _INT64),
        ("producer_name", _TEXT),
        ("producer_version", _TEXT),
        ("domain", _TEXT),
        ("graph_name", _TEXT),
        ("description", _TEXT),
        ("opset_count", _SIZE),
        ("opsets", ctypes.POINTER(ModelOpset)),
        ("property_count", _SIZE),
        ("properties", ctypes.POINTER(ModelProperty)),
    ]


# ---- sessions ----


class Capacity(ctypes.Structure):
    """sb_capacity."""

    _fields_ = [("symbol", _TEXT), ("capacity", _INT64), ("least", _INT64)]


class SessionOptions(ctypes.Structure):
    """sb_session_options."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("threads", _INT),
        ("observer", _POINTER),
        ("observer_context", _POINTER),
        ("iteration_limit", _INT64),
        ("memory_limit", _INT64),
        ("device", _POINTER),
        ("stream", _POINTER),
        ("force_cpu", _TEXT),
        ("require_device", _BOOL),
        ("device_outputs", _BOOL),
        ("graphs", _INT),
        ("dependent_launch", _BOOL),
        ("observer_times_only", _BOOL),
        ("task_observer", _POINTER),
        ("task_observer_context", _POINTER),
        ("queue_depth", _INT),
        ("state", _POINTER),
        ("entry", _TEXT),
        ("capacity_count", _INT),
        ("capacities", ctypes.POINTER(Capacity)),
        ("device_if_quicker", _BOOL),
    ]


class NodeEvent(ctypes.Structure):
    """sb_node_event."""

    _fields_ = [
        ("name", _TEXT),
        ("op", _TEXT),
        ("kernel", _TEXT),
        ("depth", _INT),
        ("start_ns", _INT64),
        ("end_ns", _INT64),
        ("output_count", _INT),
        ("output_names", ctypes.POINTER(_TEXT)),
        ("outputs", ctypes.POINTER(Value)),
        ("output_bytes", _INT64),
        ("on_device", _BOOL),
    ]


OBSERVER = ctypes.CFUNCTYPE(_INT, _POINTER, ctypes.POINTER(NodeEvent), ctypes.POINTER(ErrorReport))


class PlacedNode(ctypes.Structure):
    """sb_placed_node."""

    _fields_ = [
        ("name", _TEXT),
        ("op", _TEXT),
        ("depth", _INT),
        ("on_device", _BOOL),
        ("by_data", _BOOL),
        ("kernel", _TEXT),
        ("why", _TEXT),
        ("way", _TEXT),
        ("slow", _TEXT),
    ]


PLACEMENT_VISITOR = ctypes.CFUNCTYPE(None, _POINTER, ctypes.POINTER(PlacedNode))


class GraphReport(ctypes.Structure):
    """sb_graph_report."""

    _fields_ = [
        ("segments", _INT),
        ("recorded", _INT),
        ("failed", _INT),
        ("tasks", _INT64),
        ("edges", _INT64),
        ("reason", _TEXT),
    ]


class RunReport(ctypes.Structure):
    """sb_run_report."""

    _fields_ = [
        ("run", ctypes.c_uint64),
        ("synchronous", _BOOL),
        ("reason", _TEXT),
        ("node", _TEXT),
        ("op", _TEXT),
    ]


# ---- states ----


class StatePair(ctypes.Structure):
    """sb_state_pair."""

    _fields_ = [
        ("input", _TEXT),
        ("output", _TEXT),
        ("slot_axis", _INT),
        ("initial", _POINTER),
    ]


class StateOptions(ctypes.Structure):
    """sb_state_options."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("device", _POINTER),
        ("entry", _TEXT),
        ("pair_count", _INT),
        ("pairs", ctypes.POINTER(StatePair)),
        ("symbol_count", _INT),
        ("symbols", ctypes.POINTER(_TEXT)),
        ("symbol_values", ctypes.POINTER(_INT64)),
        ("memory_limit", _INT64),
        ("capacity_count", _INT),
        ("capacities", ctypes.POINTER(Capacity)),
    ]


class StateVariable(ctypes.Structure):
    """sb_state_variable."""

    _fields_ = [
        ("name", _TEXT),
        ("dtype", _INT),
        ("rank", _INT),
        ("dims", ctypes.POINTER(_INT64)),
        ("slot_axis", _INT),
        ("slots", _INT64),
        ("on_device", _BOOL),
        ("version", _INT64),
    ]


class StateCounters(ctypes.Structure):
    """sb_state_counters."""

    _fields_ = [
        (name, _INT64)
        for name in (
            "runs",
            "updates",
            "updates_in_place",
            "copies",
            "bytes_copied",
            "derivations",
            "derived_bytes",
        )
    ]


# ---- looking ----


class Comparison(ctypes.Structure):
    """sb_comparison."""

    _fields_ = [
        ("elements", _INT64),
        ("different", _INT64),
        ("outside", _INT64),
        ("worst", _INT64),
        ("worst_left", ctypes.c_double),
        ("worst_right", ctypes.c_double),
        ("worst_error", ctypes.c_double),
        ("worst_ulps", ctypes.c_uint64),
        ("max_relative", ctypes.c_double),
    ]


class InspectOptions(ctypes.Structure):
    """sb_inspect_options."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("symbol_count", _INT),
        ("symbols", ctypes.POINTER(_TEXT)),
        ("symbol_values", ctypes.POINTER(_INT64)),
    ]


class InspectedValue(ctypes.Structure):
    """sb_inspected_value."""

    _fields_ = [
        ("name", _TEXT),
        ("fact", _TEXT),
        ("kind", _INT),
        ("dtype", _INT),
        ("elements", _INT64),
        ("constant", _POINTER),
        ("producer", _INT),
        ("initialiser", _BOOL),
    ]


class InspectedNode(ctypes.Structure):
    """sb_inspected_node."""

    _fields_ = [
        ("name", _TEXT),
        ("op", _TEXT),
        ("domain", _TEXT),
        ("version", _INT),
        ("attributes", _TEXT),
        ("input_count", _INT),
        ("inputs", ctypes.POINTER(_INT)),
        ("capture_count", _INT),
        ("output_count", _INT),
        ("outputs", ctypes.POINTER(_INT)),
        ("parameters", _INT64),
        ("flops", _TEXT),
        ("flop_count", _INT64),
        ("bytes", _TEXT),
        ("byte_count", _INT64),
        ("kernel", _TEXT),
        ("why", _TEXT),
        ("body_count", _INT),
        ("body_names", ctypes.POINTER(_TEXT)),
        ("bodies", ctypes.POINTER(_POINTER)),
    ]


class InspectedTotals(ctypes.Structure):
    """sb_inspected_totals."""

    _fields_ = [
        ("parameters", _INT64),
        ("parameter_bytes", _INT64),
        ("flops", _TEXT),
        ("flop_count", _INT64),
        ("nodes_without_flops", _INT),
    ]


# ---- devices ----


class DriverDescription(ctypes.Structure):
    """sb_driver_description."""

    _fields_ = [("state", _INT), ("library", _TEXT), ("version", _INT), ("why", _TEXT)]


class DeviceDescription(ctypes.Structure):
    """sb_device_description."""

    _fields_ = [
        ("index", _INT),
        ("name", _TEXT),
        ("compute_major", _INT),
        ("compute_minor", _INT),
        ("multiprocessors", _INT),
        ("memory_bytes", _INT64),
        ("memory_free_bytes", _INT64),
        ("kernels", _TEXT),
        ("why", _TEXT),
    ]


# ---- language models ----


class LlmOptions(ctypes.Structure):
    """sb_llm_options."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("dtype", _INT),
        ("context", _INT64),
        ("model", ctypes.POINTER(ModelOptions)),
        ("receipts", _BOOL),
        ("hidden_states", _BOOL),
    ]


class LlmDescription(ctypes.Structure):
    """sb_llm_description."""

    _fields_ = [
        ("family", _TEXT),
        ("format", _TEXT),
        ("dtype", _INT),
        ("layers", _INT64),
        ("hidden", _INT64),
        ("heads", _INT64),
        ("key_heads", _INT64),
        ("head_width", _INT64),
        ("intermediate", _INT64),
        ("vocabulary", _INT64),
        ("window", _INT64),
        ("windowed_layers", _INT64),
        ("declared_positions", _INT64),
        ("context", _INT64),
        ("parameters", _INT64),
        ("weight_bytes", _INT64),
        ("cache_bytes", _INT64),
        ("begin", _INT64),
        ("stop_count", _INT),
        ("stops", ctypes.POINTER(_INT64)),
    ]


class LlmLogitBias(ctypes.Structure):
    """sb_llm_logit_bias."""

    _fields_ = [("token", _INT64), ("bias", ctypes.c_float)]


class LlmSampling(ctypes.Structure):
    """sb_llm_sampling."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("temperature", ctypes.c_float),
        ("top_k", _INT64),
        ("top_p", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("seed", ctypes.c_uint64),
        ("request", ctypes.c_uint32),
        ("repetition_penalty", ctypes.c_float),
        ("presence_penalty", ctypes.c_float),
        ("frequency_penalty", ctypes.c_float),
        ("bias_count", _INT64),
        ("biases", ctypes.POINTER(LlmLogitBias)),
    ]


class LlmToken(ctypes.Structure):
    """sb_llm_token."""

    _fields_ = [
        ("position", _INT64),
        ("token", _INT64),
        ("given", _BOOL),
        ("stops", _BOOL),
        ("has_logp", _BOOL),
        ("logp", ctypes.c_float),
        ("logits", _POINTER),
    ]


ON_TOKEN = ctypes.CFUNCTYPE(
    _INT, _POINTER, ctypes.POINTER(LlmToken), ctypes.POINTER(_BOOL), ctypes.POINTER(ErrorReport)
)


class LlmGeneration(ctypes.Structure):
    """sb_llm_generation."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("limit", _INT64),
        ("chunk", _INT64),
        ("sampling", LlmSampling),
        ("ignore_stops", _BOOL),
        ("score_prompt", _BOOL),
        ("on_token", _POINTER),
        ("context", _POINTER),
        ("receipt", _POINTER),
        ("constraint", _POINTER),
        ("present", _INT64),
        ("no_logps", _BOOL),
        ("no_digest", _BOOL),
        ("no_logits", _BOOL),
    ]


class LlmResult(ctypes.Structure):
    """sb_llm_result."""

    _fields_ = [
        ("prompt_tokens", _INT64),
        ("new_tokens", _INT64),
        ("end", _INT),
        ("prompt_ns", ctypes.c_double),
        ("first_token_ns", ctypes.c_double),
        ("decode_ns", ctypes.c_double),
        ("digest", ctypes.c_char * DIGEST_BYTES),
    ]


ON_END = ctypes.CFUNCTYPE(None, _POINTER, _INT, ctypes.POINTER(ErrorReport), ctypes.POINTER(LlmResult))


class LlmRequest(ctypes.Structure):
    """sb_llm_request."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("count", _INT64),
        ("tokens", _POINTER),
        ("generation", LlmGeneration),
        ("on_end", ON_END),
    ]


class LlmQueueOptions(ctypes.Structure):
    """sb_llm_queue_options."""

    _fields_ = [("struct_bytes", _SIZE), ("parallel", _INT64), ("rows", _INT64), ("no_sharing", _BOOL)]


class LlmBatchOptions(ctypes.Structure):
    """sb_llm_batch_options."""

    _fields_ = [("struct_bytes", _SIZE), ("pages", _INT64), ("session", ctypes.POINTER(SessionOptions))]


class LlmWeight(ctypes.Structure):
    """sb_llm_weight."""

    _fields_ = [("name", _TEXT), ("tensor", _POINTER)]


class LlmEmbedding(ctypes.Structure):
    """sb_llm_embedding."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("pooling", _INT),
        ("wanted_count", _INT64),
        ("wanted", _POINTER),
        ("chunk", _INT64),
    ]


class LlmScoring(ctypes.Structure):
    """sb_llm_scoring."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("chunk", _INT64),
        ("first", _INT64),
        ("logps", _POINTER),
        ("top", _INT64),
        ("top_tokens", _POINTER),
        ("top_logps", _POINTER),
    ]


class LlmPerplexityResult(ctypes.Structure):
    """sb_llm_perplexity_result."""

    _fields_ = [
        ("windows", _INT64),
        ("of_windows", _INT64),
        ("tokens", _INT64),
        ("scored", _INT64),
        ("mean", ctypes.c_double),
        ("perplexity", ctypes.c_double),
        ("error", ctypes.c_double),
        ("digest", ctypes.c_char * DIGEST_BYTES),
    ]


class LlmPerplexity(ctypes.Structure):
    """sb_llm_perplexity."""

    _fields_ = [
        ("struct_bytes", _SIZE),
        ("windows", _INT),
        ("window", _INT64),
        ("stride", _INT64),
        ("begin", _INT64),
        ("limit", _INT64),
        ("chunk", _INT64),
        ("on_window", _POINTER),
        ("context", _POINTER),
    ]


class EncodeOptions(ctypes.Structure):
    """sb_encode_options."""

    _fields_ = [("struct_bytes", _SIZE), ("bare", _BOOL), ("plain", _BOOL)]


class LlmDate(ctypes.Structure):
    """sb_llm_date."""

    _fields_ = [(name, _INT) for name in ("year", "month", "day", "hour", "minute", "second")]
