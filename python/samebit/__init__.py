"""Neural networks whose every output bit is specified, on CPUs and NVIDIA GPUs.

    model = samebit.load("model.onnx")     a model from an ONNX file; model(x) runs it
    samebit.InferenceSession(path)         the same with ONNX Runtime's interface
    samebit.compare(a, b), digest(a)       arrays bit for bit, and their fingerprint
    samebit.devices()                      the GPUs of this machine
    samebit.gemm(a, b)                     a product of arrays of numpy, torch, cupy, …
    samebit.llm                            language models, tokenizers, chat templates
    samebit.torch                          linear, matmul, … with gradients, for PyTorch
    samebit.backend                        for runners of onnx.backend

The package calls libsamebit through ctypes and opens it when it is first needed: from the environment variable
SAMEBIT_LIBRARY, next to the package, or as the system's loader finds it. Python's lock is free while the library works.
"""

from typing import TYPE_CHECKING

from ._engine import Engine, RowMap, engine
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    Error,
    FileError,
    FileFormatError,
    Interrupted,
    LimitError,
    ModelError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
)
from ._gemm import gemm
from ._library import isa, numerics_version, open_library, version

__version__ = "0.1.0"

# What needs numpy is imported when it is first asked for: samebit.gemm does without.
_LATER = {
    "Comparison": "_compare",
    "Device": "_devices",
    "DeviceDescription": "_devices",
    "Finding": "_compare",
    "Findings": "_compare",
    "InferenceSession": "_inference_session",
    "Inspection": "_inspect",
    "Metadata": "_model",
    "Model": "_model",
    "NodeEvent": "_session",
    "Pair": "_state",
    "PlacedNode": "_session",
    "Profile": "_profile",
    "RunOptions": "_inference_session",
    "Session": "_session",
    "SessionOptions": "_inference_session",
    "State": "_state",
    "Tensor": "_values",
    "ValueInfo": "_model",
    "compare": "_compare",
    "devices": "_devices",
    "digest": "_compare",
    "load": "_model",
    "open_device": "_devices",
    "tensor": "_values",
}

if TYPE_CHECKING:
    from ._compare import Comparison, Finding, Findings, compare, digest
    from ._devices import Device, DeviceDescription, devices, open_device
    from ._inference_session import InferenceSession, RunOptions, SessionOptions
    from ._inspect import Inspection
    from ._model import Metadata, Model, ValueInfo, load
    from ._profile import Profile
    from ._session import NodeEvent, PlacedNode, Session
    from ._state import Pair, State
    from ._values import Tensor, tensor

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "DeviceError",
    "Engine",
    "Error",
    "FileError",
    "FileFormatError",
    "Interrupted",
    "LimitError",
    "ModelError",
    "OutOfMemoryError",
    "RowMap",
    "ShapeError",
    "UnsupportedError",
    "engine",
    "gemm",
    "isa",
    "numerics_version",
    "open_library",
    "version",
    *_LATER,
]


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'samebit' has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted(set(globals()) | set(__all__))
