"""As much of Samebit's public C interface as the benchmark needs, through ctypes.

Load a library, a model from a file, make a session, wrap numpy arrays without a copy, run, and read
the outputs. Every failure raises SamebitError with the library's own message. Objects release what
they hold when they are closed or collected.
"""

import ctypes

import numpy

# include/samebit/dtype.h: the numbers are part of the binary interface.
DTYPES = {
    1: numpy.dtype(numpy.bool_),
    2: numpy.dtype(numpy.uint8),
    3: numpy.dtype(numpy.uint16),
    4: numpy.dtype(numpy.uint32),
    5: numpy.dtype(numpy.uint64),
    6: numpy.dtype(numpy.int8),
    7: numpy.dtype(numpy.int16),
    8: numpy.dtype(numpy.int32),
    9: numpy.dtype(numpy.int64),
    10: numpy.dtype(numpy.float16),
    12: numpy.dtype(numpy.float32),
    13: numpy.dtype(numpy.float64),
}
try:  # numpy's own has no bf16
    import ml_dtypes

    BF16 = DTYPES[11] = numpy.dtype(ml_dtypes.bfloat16)
except ImportError:
    BF16 = None
DTYPE_NUMBERS = {dtype: number for number, dtype in DTYPES.items()}

KIND_TENSOR = 1

VOID = ctypes.c_void_p
INT = ctypes.c_int
TEXT = ctypes.c_char_p
DIMS = ctypes.POINTER(ctypes.c_int64)
OUT = ctypes.POINTER(ctypes.c_void_p)


class Error(ctypes.Structure):
    _fields_ = [("status", INT), ("message", ctypes.c_char * 2048)]


class ModelOptions(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("isa", INT),
        ("passes", ctypes.c_bool),
        ("reference_only", ctypes.c_bool),
    ]


class SessionOptions(ctypes.Structure):
    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        ("threads", INT),
        ("observer", VOID),
        ("observer_context", VOID),
        ("iteration_limit", ctypes.c_int64),
        ("memory_limit", ctypes.c_int64),
        ("device", VOID),
        ("stream", VOID),
        ("force_cpu", TEXT),
        ("require_device", ctypes.c_bool),
        ("device_outputs", ctypes.c_bool),
        ("graphs", INT),
        ("dependent_launch", ctypes.c_bool),
    ]


# include/samebit/session.h: how a device gets the steps of a run.
ISAS = {"best": 0, "scalar": 1, "avx2": 2, "avx512": 3}
GRAPHS = {"auto": 0, "off": 1, "capture": 2, "build": 3}


class GraphReport(ctypes.Structure):
    _fields_ = [
        ("segments", INT),
        ("recorded", INT),
        ("failed", INT),
        ("tasks", ctypes.c_int64),
        ("edges", ctypes.c_int64),
        ("reason", TEXT),
    ]


class ValueDescription(ctypes.Structure):
    _fields_ = [
        ("name", TEXT),
        ("kind", INT),
        ("optional", ctypes.c_bool),
        ("dtype", INT),
        ("rank", INT),
        ("dims", DIMS),
        ("dim_texts", ctypes.POINTER(TEXT)),
    ]


class Value(ctypes.Structure):
    _fields_ = [("kind", INT), ("tensor", VOID)]


ERROR = ctypes.POINTER(Error)
DESCRIPTION = ctypes.POINTER(ValueDescription)

# name: (type of the result, types of the arguments). With FALLIBLE the result is a status, the last
# argument is an error report, and a failure raises.
FALLIBLE = object()
FUNCTIONS = {
    "sb_version": (TEXT, []),
    "sb_numerics_version": (INT, []),
    "sb_isa_detect": (INT, []),
    "sb_isa_name": (TEXT, [INT]),
    "sb_model_load": (FALLIBLE, [TEXT, ctypes.POINTER(ModelOptions), OUT]),
    "sb_model_release": (None, [VOID]),
    "sb_model_input_count": (INT, [VOID]),
    "sb_model_output_count": (INT, [VOID]),
    "sb_model_input": (DESCRIPTION, [VOID, INT]),
    "sb_model_output": (DESCRIPTION, [VOID, INT]),
    "sb_session_create": (FALLIBLE, [VOID, ctypes.POINTER(SessionOptions), OUT]),
    "sb_session_destroy": (None, [VOID]),
    "sb_session_run_tensors": (FALLIBLE, [VOID, OUT, OUT]),
    "sb_tensor_wrap": (FALLIBLE, [INT, INT, DIMS, DIMS, VOID, VOID, VOID, OUT]),
    "sb_tensor_contiguous": (FALLIBLE, [VOID, OUT]),
    "sb_tensor_release": (None, [VOID]),
    "sb_tensor_dtype": (INT, [VOID]),
    "sb_tensor_rank": (INT, [VOID]),
    "sb_tensor_dims": (DIMS, [VOID]),
    "sb_tensor_elements": (ctypes.c_int64, [VOID]),
    "sb_tensor_data": (VOID, [VOID]),
    "sb_device_open": (FALLIBLE, [VOID, INT, OUT]),
    "sb_device_release": (None, [VOID]),
    "sb_device_name": (TEXT, [VOID]),
    "sb_tensor_to_device": (FALLIBLE, [VOID, VOID, OUT]),
    "sb_tensor_to_host": (FALLIBLE, [VOID, VOID, OUT]),
    "sb_session_graphs": (None, [VOID, ctypes.POINTER(GraphReport)]),
    "sb_digest_values": (FALLIBLE, [INT, ctypes.POINTER(Value), ctypes.c_char * 65]),
}


class SamebitError(Exception):
    """A call of the library failed; the text is the library's."""


def checked(function):
    """A function that passes an error report as the last argument and raises on failure."""

    def call(*arguments):
        error = Error()
        if function(*arguments, ctypes.byref(error)) != 0:
            raise SamebitError(error.message.decode("utf-8", "replace"))

    return call


class Library:
    def __init__(self, path):
        loaded = ctypes.CDLL(str(path))
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype = INT if result is FALLIBLE else result
            function.argtypes = arguments + [ERROR] if result is FALLIBLE else arguments
            setattr(self, name, checked(function) if result is FALLIBLE else function)

    def version(self):
        isa = self.sb_isa_name(self.sb_isa_detect()).decode()
        return f"{self.sb_version().decode()}, numerics {self.sb_numerics_version()}, {isa}"

    def load_model(self, path, passes=True, isa="best"):
        return Model(self, path, passes, isa)

    def open_device(self, index=0):
        return Device(self, index)


class Handle:
    """One owned pointer of the library, given back by `destroy`."""

    def __init__(self, library, destroy):
        self.library = library
        self.destroy = destroy
        self.pointer = ctypes.c_void_p()

    def close(self):
        self.destroy(self.pointer)
        self.pointer = ctypes.c_void_p()

    def __del__(self):
        self.close()


class Device(Handle):
    def __init__(self, library, index):
        super().__init__(library, library.sb_device_release)
        library.sb_device_open(None, index, ctypes.byref(self.pointer))

    def name(self):
        return self.library.sb_device_name(self.pointer).decode()

    def upload(self, array):
        """A tensor on the device with the array's elements."""
        tensor = Tensor(self.library)
        host = Tensor(self.library, array)
        self.library.sb_tensor_to_device(self.pointer, host.pointer, ctypes.byref(tensor.pointer))
        return tensor

    def download(self, tensor):
        """A tensor's elements as a numpy array."""
        host = Tensor(self.library)
        self.library.sb_tensor_to_host(self.pointer, tensor.pointer, ctypes.byref(host.pointer))
        return host.numpy()


class Model(Handle):
    def __init__(self, library, path, passes, isa):
        super().__init__(library, library.sb_model_release)
        options = ModelOptions(ctypes.sizeof(ModelOptions), ISAS[isa], passes, False)
        library.sb_model_load(str(path).encode(), ctypes.byref(options), ctypes.byref(self.pointer))
        self.inputs = [
            library.sb_model_input(self.pointer, i).contents.name.decode()
            for i in range(library.sb_model_input_count(self.pointer))
        ]
        self.outputs = [
            library.sb_model_output(self.pointer, i).contents.name.decode()
            for i in range(library.sb_model_output_count(self.pointer))
        ]

    def create_session(self, threads, device=None, graphs="auto", dependent_launch=False,
                       force_cpu=None):
        return Session(self, threads, device, graphs, dependent_launch, force_cpu)


class Tensor(Handle):
    """A tensor of the library. `array` keeps wrapped memory alive."""

    def __init__(self, library, array=None):
        super().__init__(library, library.sb_tensor_release)
        self.array = array
        if array is not None:
            strides = [stride // array.itemsize for stride in array.strides]
            library.sb_tensor_wrap(
                DTYPE_NUMBERS[array.dtype], array.ndim, (ctypes.c_int64 * array.ndim)(*array.shape),
                (ctypes.c_int64 * array.ndim)(*strides), array.ctypes.data, None, None,
                ctypes.byref(self.pointer),
            )

    def numpy(self):
        """A copy of the elements."""
        library = self.library
        plain = Tensor(library)
        library.sb_tensor_contiguous(self.pointer, ctypes.byref(plain.pointer))
        dims = library.sb_tensor_dims(plain.pointer)[: library.sb_tensor_rank(plain.pointer)]
        dtype = DTYPES[library.sb_tensor_dtype(plain.pointer)]
        size = library.sb_tensor_elements(plain.pointer) * dtype.itemsize
        data = ctypes.string_at(library.sb_tensor_data(plain.pointer), size) if size else b""
        return numpy.frombuffer(bytearray(data), dtype).reshape(dims)


class Session(Handle):
    def __init__(self, model, threads, device, graphs, dependent_launch, force_cpu):
        super().__init__(model.library, model.library.sb_session_destroy)
        options = SessionOptions(ctypes.sizeof(SessionOptions), threads)
        if device is not None:
            options.device = device.pointer
            options.device_outputs = True
            options.graphs = GRAPHS[graphs]
            options.dependent_launch = dependent_launch
            options.force_cpu = force_cpu.encode() if force_cpu else None
        self.library.sb_session_create(
            model.pointer, ctypes.byref(options), ctypes.byref(self.pointer)
        )
        self.input_names = model.inputs
        self.output_names = model.outputs

    def tensor(self, array):
        """A tensor over the array's own memory."""
        return Tensor(self.library, array)

    def run(self, inputs):
        """Run on {name: Tensor}; gives {name: Tensor}."""
        given = (VOID * len(self.input_names))(
            *(inputs[name].pointer.value for name in self.input_names)
        )
        results = (VOID * len(self.output_names))()
        self.library.sb_session_run_tensors(self.pointer, given, results)
        outputs = {}
        for name, pointer in zip(self.output_names, results):
            outputs[name] = tensor = Tensor(self.library)
            tensor.pointer.value = pointer
        return outputs

    def graphs(self):
        """What has become of graphs: a GraphReport."""
        report = GraphReport()
        self.library.sb_session_graphs(self.pointer, ctypes.byref(report))
        return report

    def digest(self, outputs):
        """The digest of a run's outputs, as `samebit run --digest` prints it."""
        values = (Value * len(outputs))(
            *((KIND_TENSOR, outputs[name].pointer.value) for name in self.output_names)
        )
        text = (ctypes.c_char * 65)()
        self.library.sb_digest_values(len(outputs), values, text)
        return text.value.decode()
