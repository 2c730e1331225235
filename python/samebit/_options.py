"""Options of models and sessions as structures of the library."""

import ctypes
import dataclasses
from typing import Mapping, Optional

from ._devices import Device, is_automatic, open_device
from ._engine import _number
from ._errors import ArgumentError, ArgumentTypeError
from ._handles import encoded
from ._library import GRAPH_MODE_NUMBERS, ISA_NUMBERS
from ._structures import Capacity, ModelOptions, SessionOptions

QUEUE_DEPTH = 4


def capacities(given):
    """An array of Capacity of {symbol: capacity} or {symbol: (least, capacity)}."""
    entries = []
    for symbol, bounds in (given or {}).items():
        try:
            least, capacity = bounds if isinstance(bounds, (tuple, list)) else (0, bounds)
            entries.append((encoded(symbol), int(capacity), int(least)))
        except (TypeError, ValueError):
            raise ArgumentError(
                f"the capacity of {symbol} is {bounds!r}: give a number, or (least, capacity)"
            ) from None
    return (Capacity * len(entries))(*entries)


def names(given):
    """A str, or several, as the library's names with commas between; None for None."""
    return given if given is None or isinstance(given, str) else ",".join(given)


def model_options(isa, passes, reference, memory_limit, unrelated):
    """A ModelOptions structure."""
    return ModelOptions(
        ctypes.sizeof(ModelOptions), _number(ISA_NUMBERS, "the isa", isa), passes, reference, memory_limit or 0,
        encoded(names(unrelated)),
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """How sessions run: see `samebit.load`."""

    device: Optional[Device] = None
    threads: int = 0
    iteration_limit: int = 0
    memory_limit: int = 0
    stream: int = 0
    force_cpu: Optional[str] = None
    require_device: bool = False
    device_outputs: bool = False
    graphs: str = "auto"
    dependent_launch: bool = True
    queue_depth: int = QUEUE_DEPTH
    entry: Optional[str] = None
    capacity: Optional[Mapping] = None
    device_if_quicker: bool = False

    def replaced(self, **changes):
        """The same with changes; a device may be a name."""
        if "device" in changes:
            changes["device_if_quicker"] = is_automatic(changes["device"])
            changes["device"] = open_device(changes["device"])
        try:
            return dataclasses.replace(self, **changes)
        except TypeError:
            known = {field.name for field in dataclasses.fields(self)}
            unknown = ", ".join(sorted(set(changes) - known))
            raise ArgumentTypeError(f"there is no option {unknown}; there are {', '.join(sorted(known))}") from None

    def structure(self, state=None, observer=None):
        """A SessionOptions structure, which keeps what it points to."""
        bounds = capacities(None if state is not None else self.capacity)
        try:
            options = SessionOptions(
                struct_bytes=ctypes.sizeof(SessionOptions),
                threads=self.threads,
                observer=ctypes.cast(observer.callback, ctypes.c_void_p) if observer is not None else None,
                iteration_limit=self.iteration_limit or 0,
                memory_limit=self.memory_limit or 0,
                device=self.device.pointer if self.device is not None else None,
                stream=self.stream or None,
                force_cpu=encoded(names(self.force_cpu)),
                require_device=self.require_device,
                device_outputs=self.device_outputs,
                graphs=_number(GRAPH_MODE_NUMBERS, "the graph mode", self.graphs),
                dependent_launch=self.dependent_launch,
                observer_times_only=observer is not None and observer.times_only,
                queue_depth=self.queue_depth,
                state=state.pointer if state is not None else None,
                entry=encoded(self.entry),
                capacity_count=len(bounds),
                capacities=bounds,
                device_if_quicker=self.device_if_quicker,
            )
        except (TypeError, OverflowError) as failure:
            raise ArgumentTypeError(f"an option of the session cannot be passed on: {failure}") from None
        options.kept = bounds
        return options
