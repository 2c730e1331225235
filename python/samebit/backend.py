"""Samebit for the interface of onnx.backend, by which the standard's own runner tests implementations.

    import samebit.backend
    outputs = samebit.backend.run_model(model, [x])     # model: an onnx.ModelProto
"""

from onnx import ModelProto, NodeProto, defs, helper
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from ._devices import devices
from ._errors import Error
from ._model import load


class SamebitRep(BackendRep):
    """A model, ready to run."""

    def __init__(self, model):
        self.model = model

    def run(self, inputs, **options):
        """The outputs for a list of inputs in the model's order, or for {name: value}: a named tuple."""
        if not isinstance(inputs, (list, tuple, dict)):
            inputs = [inputs]
        feed = inputs if isinstance(inputs, dict) else {
            info.name: value for info, value in zip(self.model.inputs, inputs)
        }
        results = self.model.run(feed)
        return namedtupledict("Outputs", list(results))(*results.values())


def _device_name(device):
    given = Device(device)
    return "cpu" if given.type == DeviceType.CPU else f"cuda:{given.device_id}"


class SamebitBackend(Backend):
    """onnx.backend.base.Backend."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        """A SamebitRep of an onnx.ModelProto; options are those of samebit.load."""
        contents = model.SerializeToString() if isinstance(model, ModelProto) else model
        return SamebitRep(load(contents, _device_name(device), **options))

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **options):
        """The outputs of an onnx.ModelProto."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device="CPU", outputs_info=None, **options):
        """The outputs of a single onnx.NodeProto on a list of arrays. `opset_version` says what it means; by default it is
        the newest that both onnx and Samebit have."""
        if not isinstance(node, NodeProto):
            raise TypeError(f"a NodeProto is run, not {type(node).__name__}")
        given = [name for name in node.input if name]
        values = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(given, inputs)
        ]
        kinds = outputs_info or [None] * len(node.output)
        results = []
        for name, info in zip(node.output, kinds):
            if name:
                results.append(
                    helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(info[0]), info[1])
                    if info is not None else helper.make_empty_tensor_value_info(name)
                )
        opsets = [helper.make_opsetid(node.domain, options.pop("opset_version", cls._newest(node.domain)))]
        graph = helper.make_graph([node], "node", values, results)
        return cls.run_model(helper.make_model(graph, opset_imports=opsets), inputs, device, **options)

    @staticmethod
    def _newest(domain):
        return min(defs.onnx_opset_version(), 28) if domain in ("", "ai.onnx") else 1

    @classmethod
    def supports_device(cls, device):
        """Whether there is such a device, and kernels for it: "CPU", "CUDA", "CUDA:1"."""
        given = Device(device)
        if given.type == DeviceType.CPU:
            return True
        try:
            return any(found.index == given.device_id and found.kernels for found in devices())
        except Error:
            return False


prepare = SamebitBackend.prepare
run_model = SamebitBackend.run_model
run_node = SamebitBackend.run_node
supports_device = SamebitBackend.supports_device
