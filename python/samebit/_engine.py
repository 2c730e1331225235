"""Engines: where products are computed. One per device and process, made when first needed."""

import collections
import ctypes
import os
import struct
import threading
import weakref

from ._errors import ArgumentError, Error
from ._library import (
    ACTIVATION_NUMBERS,
    GATE_NUMBERS,
    ISA_NUMBERS,
    library,
)
from ._structures import EngineOptions, ErrorReport

# sb_gemm as `struct` packs it, which takes a twentieth of the time of filling the ctypes structure
# field by field. In order: bytes; a, b, c; batches, scale; bias; activation, gate; residual;
# accumulate, rows, schedule. A matrix is aligned to 8 bytes, hence 4x behind the scale.
MATRIX = "iPqqqqq"
GEMM = struct.Struct(f"@N{MATRIX}{MATRIX}{MATRIX}qf4x{MATRIX}ii{MATRIX}?PP")
# Row maps that an engine keeps for when the same lengths come again: each takes a byte per row.
MOST_ROW_MAPS = 256
# What `Engine.pack` takes for a bias or a residual that is not there.
NO_MATRIX = (0, 0, 0, 0, 0, 0, 0)


def _number(numbers, what, name):
    try:
        return numbers[name]
    except (KeyError, TypeError):
        names = ", ".join(repr(known) for known in numbers if known is not None)
        raise ArgumentError(f"{what} {name!r} is not known; there are {names}") from None


def activation_number(name):
    return _number(ACTIVATION_NUMBERS, "the activation", name)


def gate_number(name):
    return _number(GATE_NUMBERS, "the gate", name)


def parse_device(device):
    """("cpu", 0) or ("cuda", index) of "cpu", "cuda", "cuda:1", such a pair, or anything whose text
    is one of them (a torch.device)."""
    if isinstance(device, tuple):
        return device
    kind, colon, index = str(device).partition(":")
    if kind == "cpu" and (not colon or index == "0"):
        return ("cpu", 0)
    if kind == "cuda" and (not colon or index.isdecimal()):
        return ("cuda", int(index or 0))
    raise ArgumentError(f"the device {device!r} is not one of Samebit's: 'cpu', 'cuda' or 'cuda:INDEX'")


def _destroy(loaded, pointer, row_maps, process):
    # A forked child has neither the threads of its parent's engine nor its device context.
    if os.getpid() == process:
        for entry in row_maps.values():
            loaded.sb_row_map_release(entry.address)
        loaded.sb_engine_destroy(pointer)


class Engine:
    """The CPU's threads, or a device with its kernels loaded. Any thread may use it: calls take
    turns. `threads` (0: one per processor) and `isa` ("best", "scalar", "avx2", "avx512") choose
    how the CPU computes; neither changes a bit."""

    def __init__(self, device="cpu", *, threads=0, isa="best"):
        self.device = kind, index = parse_device(device)
        self.library = loaded = library()
        # Of one call after another; held longer by those who use a row map that nobody else holds.
        self.lock = threading.RLock()
        self._report = ErrorReport()
        self._report_address = ctypes.addressof(self._report)
        self._schedules = {}
        self._row_maps = collections.OrderedDict()
        # What waits for the device, where somebody knows how (samebit.torch does); else its driver's
        # freeing of memory does.
        self.synchronize = None
        opened = ctypes.c_void_p()
        pointer = ctypes.c_void_p()
        options = EngineOptions(
            ctypes.sizeof(EngineOptions),
            None,
            threads,
            _number(ISA_NUMBERS, "the isa", isa),
        )
        if kind == "cuda":
            self._check(
                loaded.sb_device_open(None, index, ctypes.byref(opened), self._report_address)
            )
            options.device = opened.value
        try:
            self._check(
                loaded.sb_engine_create(
                    ctypes.byref(options), ctypes.byref(pointer), self._report_address
                )
            )
        finally:
            if opened:
                loaded.sb_device_release(opened)
        self.pointer = pointer.value
        # Not at exit: the driver may be gone by then, and the process gives everything back.
        finalizer = weakref.finalize(
            self, _destroy, loaded, self.pointer, self._row_maps, os.getpid()
        )
        finalizer.atexit = False
        self._run = loaded.sb_gemm_run

    def __repr__(self):
        kind, index = self.device
        return f"<samebit.Engine {kind if kind == 'cpu' else f'{kind}:{index}'}>"

    def _check(self, status):
        if status:
            self.library.check(status, self._report)

    @property
    def schedules(self):
        """The names of the schedules that a product can be forced to."""
        count = self.library.sb_gemm_schedule_count(self.pointer)
        name = self.library.sb_gemm_schedule_name
        return [name(self.pointer, index).decode() for index in range(count)]

    def _schedule(self, name):
        """The address of a schedule's name, which lives as long as the engine."""
        if name not in self._schedules:
            text = ctypes.create_string_buffer(str(name).encode())
            self._schedules[name] = (ctypes.addressof(text), text)
        return self._schedules[name][0]

    def pack(self, a, b, c, batches, scale=1.0, bias=NO_MATRIX, activation=0, gate=0,
             residual=NO_MATRIX, accumulate=False, rows=0, schedule=None):
        """An sb_gemm. Matrices are the seven fields of an sb_matrix; `activation` and `gate` are
        numbers, `rows` the address of a row map of this engine or 0."""
        try:
            return GEMM.pack(
                GEMM.size, *a, *b, *c, batches, scale, *bias, activation, gate, *residual,
                accumulate, rows, self._schedule(schedule) if schedule is not None else 0,
            )
        except (struct.error, OverflowError) as failure:
            raise Error(f"a number of the product cannot be passed on: {failure}") from None

    def run(self, packed, stream=0):
        """Computes a packed product, on a device in the stream of that handle."""
        with self.lock:
            status = self._run(self.pointer, stream, packed, self._report_address)
            if status:
                self.library.check(status, self._report)

    def call(self, name, *arguments):
        """Another fallible function of the library, with this engine as its first argument."""
        function = getattr(self.library, name)
        with self.lock:
            self._check(function(self.pointer, *arguments, self._report_address))

    def choose(self, packed):
        """The name of the schedule that a packed product would be computed by."""
        name = ctypes.c_char_p()
        self.call("sb_gemm_choose", packed, ctypes.byref(name))
        return name.value.decode()

    def row_map(self, lengths, holder=None, pin=False):
        """The address of the row map of a tuple of lengths, made by the first call. It lives at
        least as long as `holder`; for ever if `pin`, as for a graph that is being captured; else
        until many others have been asked for and the device has done its work."""
        with self.lock:
            entry = self._row_maps.get(lengths)
            if entry is None:
                if not pin and len(self._row_maps) >= MOST_ROW_MAPS:
                    self._evict_row_maps()
                entry = self._row_maps[lengths] = _RowMapEntry(self._create_row_map(lengths))
            elif not pin:
                self._row_maps.move_to_end(lengths)
            entry.pinned |= pin
            if holder is not None:
                entry.holders.add(holder)
            return entry.address

    def has_row_map(self, lengths):
        return lengths in self._row_maps

    def _create_row_map(self, lengths):
        pointer = ctypes.c_void_p()
        try:
            array = (ctypes.c_int64 * len(lengths))(*lengths)
        except TypeError as failure:
            raise Error(f"lengths of samples are integers: {failure}") from None
        self.call("sb_row_map_create", len(lengths), array, ctypes.byref(pointer))
        return pointer.value

    def _evict_row_maps(self):
        """Releases the half that has not been used for longest. Half at once, so that the device is
        waited for once in so many maps: what it was given may still read them."""
        idle = [lengths for lengths, entry in self._row_maps.items() if entry.is_idle()]
        idle = idle[: MOST_ROW_MAPS // 2]
        if idle and self.synchronize is not None:
            self.synchronize()
        for lengths in idle:
            self.library.sb_row_map_release(self._row_maps.pop(lengths).address)


class _RowMapEntry:
    def __init__(self, address):
        self.address = address
        self.pinned = False
        self.holders = weakref.WeakSet()

    def is_idle(self):
        return not self.pinned and not self.holders


_lock = threading.Lock()
_engines = {}


def engine(device="cpu"):
    """The process's engine of a device, made by the first call."""
    key = device if isinstance(device, tuple) else parse_device(device)
    found = _engines.get(key)
    if found is None:
        with _lock:
            found = _engines.get(key)
            if found is None:
                found = _engines[key] = Engine(key)
    return found


def made_engine(key):
    """The same if it has been made, else None."""
    return _engines.get(key)


def _forget():
    """In a forked child, where the parent's engines have no threads."""
    global _lock, _engines
    _lock = threading.Lock()
    _engines = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class RowMap:
    """Which rows belong to which sample, for gradients of weights: `lengths` are the row counts of
    the samples, in order. Groups of 16 rows, which a chain is made of, then never hold rows of two
    samples, so that a gradient does not depend on how samples are put together. Immutable; may be
    used on any device and by any thread."""

    def __init__(self, lengths):
        lengths = lengths.tolist() if hasattr(lengths, "tolist") else lengths
        try:
            self.lengths = tuple(int(length) for length in lengths)
        except (TypeError, ValueError):
            raise Error(f"lengths of samples are integers: {lengths!r}") from None
        if any(length < 0 for length in self.lengths):
            raise Error(f"lengths of samples are at least 0: {self.lengths}")
        self.rows = sum(self.lengths)

    def __repr__(self):
        return f"<samebit.RowMap of {len(self.lengths)} samples, {self.rows} rows>"

    def address(self, engine):
        """The address of the map on an engine, which lives as long as this object."""
        return engine.row_map(self.lengths, self)
