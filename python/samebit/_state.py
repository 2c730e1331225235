"""States: variables that outlive runs."""

import ctypes
import dataclasses
import os

from ._devices import open_device
from ._dtypes import dtype_name
from ._errors import ArgumentError, ArgumentTypeError
from ._handles import Handle, encoded, text
from ._library import library
from ._options import capacities
from ._structures import StateCounters, StateOptions, StatePair, StateVariable
from ._values import Tensor, tensor_pointer


@dataclasses.dataclass(frozen=True)
class Pair:
    """An input and an output that are one variable, which goes by the input's name: what the output is, the input is
    in the next run."""

    input: str
    output: str
    slot_axis: int = -1
    """The axis of slots, which are sequences or streams that begin and end apart from each other; -1: none."""
    initial: object = None
    """What it begins with, repeated by numpy's rule; None: zeros."""


@dataclasses.dataclass(frozen=True)
class Variable:
    """A variable of a state, as it is now."""

    name: str
    dtype: str
    shape: tuple
    slot_axis: int
    slots: int
    on_device: bool
    version: int
    """How often it has been changed since it was created or reset."""


@dataclasses.dataclass(frozen=True)
class Counters:
    """What runs have done with a state since it was created."""

    runs: int
    updates: int
    updates_in_place: int
    copies: int
    bytes_copied: int
    derivations: int
    derived_bytes: int


def _pairs(given):
    if hasattr(given, "items"):
        given = given.items()
    return [pair if isinstance(pair, Pair) else Pair(*pair) for pair in given or ()]


class State(Handle):
    """What outlives runs of a model, with its storage; sessions bind it.

    Parameters
    ----------
    model : samebit.Model
    pairs : dict or list
        {input: output}, or a list of samebit.Pair, for models from ONNX files. Nothing for a model that has variables of
        its own.
    symbols : dict
        {symbol: number} for each symbolic extent of a variable.
    capacity : dict
        {symbol: capacity} or {symbol: (least, capacity)} for extents that runs may change, such as the length of a
        cache: variables have room for the capacity.
    device : str, optional
        Where the variables live: as in samebit.load.
    entry : str, optional
        The entry graph whose inputs and outputs are paired; the model's first by default.
    memory_limit : int
        The most bytes of the host that the variables may take; 0: what the machine has.

    All functions may be called from any thread: they wait for a run that works on the state. A run that fails after it
    has changed a variable leaves the state torn: runs then fail until `reset`, `restore` or `copy_from`.
    """

    def __init__(self, model, pairs=None, *, symbols=None, capacity=None, device=None, entry=None, memory_limit=0):
        known = library()
        self._library = known
        self.model = model
        self.device = open_device(device)
        described = {info.name: info for info in model._entry(entry)[0]}
        tensors = []
        try:
            given = []
            for pair in _pairs(pairs):
                initial = None
                if pair.initial is not None:
                    expected = described[pair.input]._dtype if pair.input in described else 0
                    initial = tensor_pointer(pair.initial, expected, f"{pair.input} (initial)")
                    tensors.append(initial)
                given.append(StatePair(encoded(pair.input), encoded(pair.output), pair.slot_axis, initial))
            names = [encoded(name) for name in symbols or {}]
            bounds = capacities(capacity)
            options = StateOptions(
                struct_bytes=ctypes.sizeof(StateOptions),
                device=self.device.pointer if self.device is not None else None,
                entry=encoded(entry),
                pair_count=len(given),
                pairs=(StatePair * len(given))(*given),
                symbol_count=len(names),
                symbols=(ctypes.c_char_p * len(names))(*names),
                symbol_values=(ctypes.c_int64 * len(names))(*(symbols or {}).values()),
                memory_limit=memory_limit or 0,
                capacity_count=len(bounds),
                capacities=bounds,
            )
            pointer = ctypes.c_void_p()
            known.call("sb_state_create", model.pointer, ctypes.byref(options), ctypes.byref(pointer))
        except TypeError as failure:
            if isinstance(failure, ArgumentTypeError):
                raise
            raise ArgumentTypeError(f"an option of the state cannot be passed on: {failure}") from None
        finally:
            for tensor in tensors:
                known.sb_tensor_release(tensor)
        self._own(pointer.value, known.sb_state_release)
        self._names = [text(self._describe(index).name) for index in range(known.sb_state_variable_count(self.pointer))]

    def _describe(self, index):
        variable = StateVariable()
        self._library.sb_state_describe(self.pointer, index, ctypes.byref(variable))
        return variable

    def _index(self, name):
        try:
            return self._names.index(name)
        except ValueError:
            raise ArgumentError(
                f"the state has no variable {name}; it has {', '.join(self._names)}"
            ) from None

    @property
    def variables(self):
        """{name: Variable}, as they are now. Waits for nobody."""
        found = {}
        for index, name in enumerate(self._names):
            given = self._describe(index)
            found[name] = Variable(name, dtype_name(given.dtype), tuple(given.dims[: given.rank]), given.slot_axis,
                                   given.slots, given.on_device, given.version)
        return found

    def __contains__(self, name):
        return name in self._names

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __getitem__(self, name):
        """A copy of a variable as an array of numpy."""
        pointer = ctypes.c_void_p()
        self._library.call("sb_state_get", self.pointer, self._index(name), ctypes.byref(pointer))
        return Tensor(pointer.value).numpy()

    def __setitem__(self, name, given):
        """Gives a variable the elements of an array of the same dtype and extents."""
        index = self._index(name)
        tensor = tensor_pointer(given, self._describe(index).dtype, name)
        try:
            self._library.call("sb_state_set", self.pointer, index, tensor)
        finally:
            self._library.sb_tensor_release(tensor)

    def reset(self, slot=None):
        """Gives all variables their initial contents, extents and version 0; or one slot of those that have slots its
        initial contents."""
        if slot is None:
            self._library.call("sb_state_reset", self.pointer)
        else:
            self._library.call("sb_state_reset_slot", self.pointer, slot)

    def copy_from(self, other):
        """Gives all variables the contents and versions of another state of the same model, of whichever home."""
        self._library.call("sb_state_copy", self.pointer, other.pointer)

    def copy_slot(self, source, target):
        """Copies slot `source` over slot `target`, in all variables that have slots."""
        self._library.call("sb_state_copy_slot", self.pointer, source, target)

    def save(self, path, slot=None):
        """Writes all variables, or one slot, to a file: whole or not at all."""
        name = os.fsencode(path)
        if slot is None:
            self._library.call("sb_state_save", self.pointer, name)
        else:
            self._library.call("sb_state_save_slot", self.pointer, slot, name)

    def restore(self, path, slot=None):
        """Reads what `save` wrote, for a state of the same model, in whichever process and on whichever side. A slot
        may be restored as any slot."""
        name = os.fsencode(path)
        if slot is None:
            self._library.call("sb_state_restore", self.pointer, name)
        else:
            self._library.call("sb_state_restore_slot", self.pointer, slot, name)

    def extent(self, symbol):
        """What an extent with a capacity is now, or will be behind the runs that are queued."""
        extent = ctypes.c_int64()
        self._library.call("sb_state_extent", self.pointer, encoded(symbol), ctypes.byref(extent))
        return extent.value

    def trim(self, symbol, extent):
        """Makes an extent with a capacity smaller: rows behind are forgotten, without a copy."""
        self._library.call("sb_state_trim", self.pointer, encoded(symbol), extent)

    def counters(self):
        """What runs have done with the state: Counters. Waits for runs that are queued."""
        counters = StateCounters()
        self._library.sb_state_count(self.pointer, ctypes.byref(counters))
        return Counters(*(getattr(counters, field.name) for field in dataclasses.fields(Counters)))

    def __repr__(self):
        return f"<samebit.State of {', '.join(self._names)}>"
