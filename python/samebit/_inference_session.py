"""ONNX Runtime's InferenceSession, for programs that are written for it."""

import os
from typing import Any, Dict, List, Optional, Sequence

from ._errors import ArgumentError, ArgumentTypeError, UnsupportedError
from ._model import load

CPU_PROVIDER = "CPUExecutionProvider"
CUDA_PROVIDER = "CUDAExecutionProvider"


class SessionOptions:
    """As many of ONNX Runtime's options as mean something here; all others may be set and do nothing, since they choose
    between ways that here have the same bits."""

    def __init__(self):
        self.intra_op_num_threads = 0
        """Worker threads, the caller's included; 0: one per processor."""
        self.graph_optimization_level = 99
        """0 runs the graph as it stands in the file; anything else simplifies and fuses it. The bits are the same."""


class RunOptions:
    """Taken by `run`, where none of ONNX Runtime's options means anything."""


class NodeArg:
    """An input or output: `name`, `type` such as "tensor(float)", and `shape`, in which an extent that is not known is a
    text, or None where it has no name."""

    def __init__(self, info):
        self.name: str = info.name
        self.type: str = info.onnx_type
        self.shape: List[Any] = list(info.shape) if info.shape is not None else []

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What a model's file says of itself."""

    def __init__(self, metadata):
        self.producer_name: str = metadata.producer_name
        self.graph_name: str = metadata.graph_name
        self.domain: str = metadata.domain
        self.description: str = metadata.description
        self.graph_description: str = ""
        self.version: int = metadata.model_version
        self.custom_metadata_map: Dict[str, str] = dict(metadata.properties)


def _device_of(providers, provider_options):
    """("cpu" or "cuda:INDEX", names of providers) of a list in order of preference: the first one that there is."""
    if providers is None:
        return "cpu", [CPU_PROVIDER]
    found = []
    for index, provider in enumerate(providers):
        options = provider_options[index] if provider_options else {}
        if isinstance(provider, (tuple, list)):
            provider, options = provider
        if provider == CPU_PROVIDER:
            found.append(("cpu", provider))
        elif provider == CUDA_PROVIDER:
            found.append((f"cuda:{int((options or {}).get('device_id', 0))}", provider))
        else:
            raise ArgumentError(
                f"{provider} is none of Samebit's providers, which are {CUDA_PROVIDER} and {CPU_PROVIDER}"
            )
    if not found:
        return "cpu", [CPU_PROVIDER]
    names = [name for _, name in found]
    return found[0][0], names if CPU_PROVIDER in names else names + [CPU_PROVIDER]


def get_available_providers():
    """The providers that can be asked for on this machine, the quickest first."""
    from ._devices import devices

    usable = any(device.kernels for device in devices())
    return [CUDA_PROVIDER, CPU_PROVIDER] if usable else [CPU_PROVIDER]


class InferenceSession:
    """A model behind the interface of onnxruntime.InferenceSession. Any number of threads may run it at once.

    Parameters
    ----------
    path_or_bytes : path or bytes
    sess_options : SessionOptions, optional
        ONNX Runtime's own object will do: `intra_op_num_threads` and `graph_optimization_level` are read.
    providers : list, optional
        "CUDAExecutionProvider" (or (name, {"device_id": 1})) and "CPUExecutionProvider". The first one decides. A GPU that
        is asked for and is not there is an error, unlike in ONNX Runtime; nodes without a kernel run on the CPU.
    provider_options : list of dict, optional
    **options
        Further ones of `samebit.load`.

    Outputs are arrays of numpy as `samebit.Session.run` gives them: read-only views of the library's memory.
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options: Optional[Sequence] = None,
                 **options):
        device, self._providers = _device_of(providers, provider_options)
        settings = {"device": device}
        if sess_options is not None:
            settings["threads"] = int(getattr(sess_options, "intra_op_num_threads", 0))
            level = getattr(sess_options, "graph_optimization_level", 99)
            settings["passes"] = int(getattr(level, "value", level)) != 0
        settings.update(options)
        if isinstance(path_or_bytes, str):
            path_or_bytes = os.path.expanduser(path_or_bytes)
        self._sess_options = sess_options if sess_options is not None else SessionOptions()
        self.model = load(path_or_bytes, **settings)

    def run(self, output_names, input_feed, run_options=None):
        """Runs once on {name: value}: a list of the outputs that are named, or of all when `output_names` is None or
        empty."""
        if not isinstance(input_feed, dict):
            raise ArgumentTypeError(f"the inputs are a dict of name and value, not {type(input_feed).__name__}")
        return list(self.model.run(input_feed, list(output_names) if output_names else None).values())

    def get_inputs(self):
        """A list of NodeArg."""
        return [NodeArg(info) for info in self.model.inputs]

    def get_outputs(self):
        """A list of NodeArg."""
        return [NodeArg(info) for info in self.model.outputs]

    def get_overridable_initializers(self):
        """Empty: initialisers are constants, also where the file lists them as inputs."""
        return []

    def get_modelmeta(self):
        """What the model's file says of itself."""
        return ModelMetadata(self.model.metadata)

    def get_providers(self):
        """The names of the providers, in order of preference."""
        return list(self._providers)

    def get_session_options(self):
        """The options that the session was made with."""
        return self._sess_options

    def io_binding(self):
        """Refused: see `run_with_iobinding`."""
        return self.run_with_iobinding()

    def run_with_iobinding(self, iobinding=None, run_options=None):
        """Refused: inputs are read where they lie without it."""
        raise UnsupportedError(
            "there are no I/O bindings: pass tensors of a device to samebit.load(path, device='cuda', "
            "device_outputs=True), which reads them and leaves outputs there without a copy"
        )
