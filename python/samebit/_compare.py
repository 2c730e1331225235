"""Comparing: tensors with tensors, and runs with recorded values, node by node."""

import ctypes
import dataclasses
from typing import Dict, List, Optional

from ._errors import ArgumentError
from ._handles import text
from ._library import KIND_TENSOR, library
from ._session import Observer, Session
from ._structures import DIGEST_BYTES, Value
from ._structures import Comparison as _Comparison
from ._values import Tensor, fill_value, release_all, tensor_pointer

TRANSFER = b"Transfer"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How two tensors of one dtype and shape differ."""

    elements: int
    different: int
    """Elements whose bits differ (any NaN equals any NaN; +0 and -0 differ)."""
    outside: int
    """Elements with |left - right| > absolute + relative · |right|, or only one NaN."""
    worst: int
    """Row-major index of the element that is farthest off; -1 when none differs."""
    worst_left: float
    worst_right: float
    worst_error: float
    worst_ulps: int
    """Representable numbers from one to the other."""
    max_relative: float

    def __bool__(self):
        """Whether any bit differs."""
        return self.different > 0


def _compare(left, right, absolute, relative):
    report = _Comparison()
    library().call("sb_tensor_compare", left, right, absolute, relative, ctypes.byref(report))
    return Comparison(*(getattr(report, field.name) for field in dataclasses.fields(Comparison)))


def compare(left, right, *, absolute=0.0, relative=0.0):
    """Compares two arrays of one dtype and shape, bit for bit and by a tolerance: a samebit.Comparison, which is true
    when any bit differs. `right` is the reference."""
    pointers = []
    try:
        for given, name in ((left, "left"), (right, "right")):
            pointers.append(tensor_pointer(given, 0, name))
        return _compare(*pointers, absolute, relative)
    finally:
        for pointer in pointers:
            library().sb_tensor_release(pointer)


# ---- digests ----


def digest_values(values, count, device=None):
    """The digest of an array of Values; those on a device are copied to the host."""
    known = library()
    room = ctypes.create_string_buffer(DIGEST_BYTES)
    copies = []
    plain = (Value * max(count, 1))()
    try:
        for index in range(count):
            plain[index] = values[index]
            if values[index].kind == KIND_TENSOR and known.sb_tensor_is_on_device(values[index].pointer):
                pointer = ctypes.c_void_p()
                known.call("sb_tensor_to_host", device.pointer, values[index].pointer, ctypes.byref(pointer))
                copies.append(pointer)
                plain[index].pointer = pointer.value
        known.call("sb_digest_values", count, plain, ctypes.addressof(room))
    finally:
        for pointer in copies:
            known.sb_tensor_release(pointer)
    return room.value.decode()


def digest(*values):
    """The SHA-256 digest of values in their order, 64 hexadecimal digits: of dtype, extents and elements, the same on
    every machine; every NaN counts as the same. A value is an array, or a list of arrays for a sequence."""
    room = (Value * max(len(values), 1))()
    try:
        for index, given in enumerate(values):
            kind, dtype = KIND_TENSOR, 0
            if isinstance(given, list) and given and hasattr(given[0], "dtype"):
                kind = 2
                first = tensor_pointer(given[0])
                dtype = library().sb_tensor_dtype(first)
                library().sb_tensor_release(first)
            fill_value(room[index], given, kind, dtype, f"value {index}")
        devices = [given.device for given in values if isinstance(given, Tensor) and given.device is not None]
        return digest_values(room, len(values), devices[0] if devices else None)
    finally:
        release_all(room)


# ---- node by node ----


@dataclasses.dataclass(frozen=True)
class Finding:
    """A value of a run beside the recorded one."""

    node: str
    op: str
    kernel: str
    value: str
    on_device: bool
    comparison: Optional[Comparison]
    """None where they cannot be compared; `why` says so."""
    why: str
    wrong: bool
    """Whether an element is outside of the tolerance, or dtype, shape or kind is another."""

    def __str__(self):
        if self.comparison is None:
            return f"{self.node} ({self.op}) {self.value}: {self.why}"
        found = self.comparison
        if not found.different:
            return f"{self.node} ({self.op}) {self.value}: equal"
        return (f"{self.node} ({self.op}) {self.value}: {found.different} of {found.elements} elements differ, the worst "
                f"is {found.worst_left!r} for {found.worst_right!r} at {found.worst} ({found.worst_ulps} ulps)")


@dataclasses.dataclass(frozen=True)
class Findings:
    """What a comparison found, in the order of the run."""

    found: List[Finding]
    missing: List[str]
    """Names of recorded values that no node of the run showed: passes hide some."""

    @property
    def wrong(self):
        """Those that differ by more than the tolerance."""
        return [finding for finding in self.found if finding.wrong]

    @property
    def first(self):
        """The first that does; None when none does."""
        return next((finding for finding in self.found if finding.wrong), None)

    def __bool__(self):
        """Whether any differs by more than the tolerance."""
        return self.first is not None

    def __str__(self):
        equal = sum(finding.comparison is not None and not finding.comparison.different for finding in self.found)
        lines = [f"{len(self.found)} values compared: {equal} equal, {len(self.wrong)} different; "
                 f"{len(self.missing)} not compared"]
        return "\n".join(lines + [str(finding) for finding in self.wrong])


class Comparing:
    """Runs of a model that are looked at."""

    def __init__(self, model, settings):
        self.model, self.settings = model, settings.replaced(device_outputs=False)

    def record(self, inputs) -> Dict[str, object]:
        """{name: array} of every value that a node of the model's own graph makes, and the outputs."""
        values = {}

        def visit(event):
            if event.op == TRANSFER or event.depth:
                return
            for index in range(event.output_count):
                name = event.output_names[index]
                if name is not None and event.outputs[index].kind == KIND_TENSOR:
                    tensor = Tensor(library().sb_tensor_retain(event.outputs[index].pointer))
                    values[text(name)] = tensor.numpy().copy()  # its memory is used again

        with Session(self.model, self.settings, observer=Observer(visit)) as session:
            results = session.run(inputs)
        for name, value in results.items():
            if value is not None and not isinstance(value, list):
                values.setdefault(name, value)
        return values

    def compare(self, inputs, reference, absolute, relative, cumulative):
        if not hasattr(reference, "items"):
            raise ArgumentError("the reference is {name of a value: array}, such as Model.record gives")
        recorded, found, seen = {}, [], set()
        known = library()

        def judge(event, index, name):
            value = event.outputs[index]
            right, why, comparison = recorded[name], "", None
            if value.kind != KIND_TENSOR:
                why = "it is no tensor here"
            else:
                try:
                    comparison = _compare(value.pointer, right, absolute, relative)
                except ValueError as failure:
                    why = str(failure)
            wrong = comparison is None or comparison.outside > 0 or (
                absolute == 0 and relative == 0 and comparison.different > 0)
            found.append(Finding(text(event.name), text(event.op), text(event.kernel), name, event.on_device, comparison,
                                 why, wrong))
            if comparison is not None and comparison.different and not cumulative:
                known.sb_tensor_release(value.pointer)
                event.outputs[index].pointer = known.sb_tensor_retain(right)

        def visit(event):
            if event.op == TRANSFER or event.depth:
                return
            for index in range(event.output_count):
                name = text(event.output_names[index])
                if name in recorded:
                    seen.add(name)
                    judge(event, index, name)

        try:
            for name, given in reference.items():
                recorded[name] = tensor_pointer(given, 0, name)
            with Session(self.model, self.settings, observer=Observer(visit)) as session:
                session.run(inputs)
        finally:
            for pointer in recorded.values():
                known.sb_tensor_release(pointer)
        inputs_seen = {info.name for info in self.model.inputs}
        return Findings(found, [name for name in recorded if name not in seen and name not in inputs_seen])
