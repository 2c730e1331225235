"""Runs on tensors of the library that lie on a device, whose results stay there: they cost little beside the run.

What the library is told of them is a pointer each, in structures that a session keeps. Values of other kinds go the way
of _values.py.
"""

import ctypes

from ._interrupts import interruptible
from ._library import KIND_NONE, KIND_TENSOR
from ._structures import ErrorReport, Value
from ._values import Tensor, release_all


class TensorRuns:
    """The structures of a session's inputs and outputs, and runs on them, for one thread at a time. They do not keep the
    session, which keeps them."""

    def __init__(self, session, names):
        """`names`: of the inputs that a run is given."""
        known = session._library
        self.run_values, self.is_on_device = known.sb_session_run, known.sb_tensor_is_on_device
        self.device = session._device
        given = (Value * max(len(session.inputs), 1))()
        self.made = (Value * max(len(session.outputs), 1))()
        self.inputs = {info.name: given[index] for index, info in enumerate(session.inputs) if info.name in names}
        self.outputs = [(info.name, self.made[index]) for index, info in enumerate(session.outputs)]
        self.report = ErrorReport()
        self.arguments = (given, self.made, ctypes.addressof(self.report))

    def run(self, session, feed):
        """{name: Tensor} of a run of the session on {name: Tensor}; None where something else is given, or not what the
        model takes. The tensors of `feed` are kept by the caller's dict, and by the list here whatever becomes of it."""
        given = list(feed.items())
        if len(given) != len(self.inputs):
            return None
        for name, tensor in given:
            place = self.inputs.get(name)
            if place is None or type(tensor) is not Tensor or tensor.device is None:
                return None
            place.kind, place.pointer = KIND_TENSOR, tensor.pointer
        status = interruptible(session, self.run_values, session.pointer, *self.arguments)
        if status:
            session._fail(status, self.report)
        return self._results(session)

    def _results(self, session):
        results = {}
        try:
            for name, value in self.outputs:
                pointer = value.pointer
                if value.kind == KIND_TENSOR and self.is_on_device(pointer):
                    tensor = Tensor.__new__(Tensor)
                    tensor._library, tensor.device = session._library, self.device
                    value.kind = KIND_NONE  # first: Ctrl-C between the two must not release it twice
                    tensor.pointer = pointer
                    results[name] = tensor
                else:
                    results[name] = session._result(value, ())
        finally:
            release_all(self.made)
            for _, value in self.outputs:
                value.kind = KIND_NONE
        return results


def tensor_runs(session, names):
    """The TensorRuns of a session; None where its results do not stay on a device."""
    return TensorRuns(session, names) if session._settings.device_outputs and session._device is not None else None
