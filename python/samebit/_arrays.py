"""Runs on arrays of numpy alone, which cost little beside the run.

What the library is told of arrays lies in structures that a session keeps: as long as shapes stay as they are, a call
writes the arrays' addresses there and nothing else. Values of other kinds go the way of _values.py.
"""

import ctypes
import struct
import sys
from time import perf_counter_ns as _now

import numpy

from ._capsules import pointer_of
from ._dtypes import tables
from ._interrupts import interruptible
from ._library import KIND_TENSOR
from ._structures import MAX_RANK, Array, ErrorReport

# ---- into the library ----

_address_at = ctypes.c_void_p.from_address
# The capsule `array.__array_struct__` holds a C structure, from which the address comes in a third of the time that
# `array.ctypes.data` takes. It lies behind two, nd (int), typekind (char), itemsize, flags (int), shape and strides.
_ADDRESS_PLACE = struct.calcsize("@iiciiPP")


def _address_in_capsule(array):
    interface = array.__array_struct__  # the structure goes with it
    return _address_at(pointer_of(interface, None) + _ADDRESS_PLACE).value or 0


# In numpy's own structure of an array, the address is the first thing behind the head that all objects of CPython have:
# what every extension that was compiled with numpy's headers relies on. Read there, it comes in a third of the time again.
_HEAD = object.__basicsize__


def _address_in_object(array):
    return _address_at(id(array) + _HEAD).value or 0


def _is_in_object():
    """Whether it is so here, for arrays of which one lies inside of another."""
    if sys.implementation.name != "cpython":
        return False
    outer = numpy.zeros((3, 5), numpy.float32)
    return all(_address_in_object(array) == _address_in_capsule(array) for array in (outer, outer[1:, 2:], outer.T))


address_of = _address_in_object if _is_in_object() else _address_in_capsule
"""Where the element of an array of numpy lies whose indices are all 0."""


class _Input:
    """An input's structure, and the array that it describes but for the address."""

    __slots__ = ("array", "expected", "dtype", "shape", "strides", "between")

    def __init__(self, array, expected):
        self.array = array
        self.expected = expected
        self.dtype = self.shape = self.strides = None
        self.between = 0  # the bits of an address that are not 0 between two elements

    def describe(self, given):
        """Whether the library can look at an array where it is: of a type that it has, with strides of whole elements.
        If so, the structure says so but for the address."""
        known, size, rank = tables(), given.itemsize, given.ndim
        number = known.numbers.get(given.dtype)
        if self.expected in known.raw and given.dtype == known.raw[self.expected]:
            number = self.expected
        if number is None or rank > MAX_RANK or any(stride % size for stride in given.strides):
            return False
        array = self.array
        array.dtype, array.rank = number, rank
        array.dims[:rank] = given.shape
        array.strides[:rank] = [stride // size for stride in given.strides]
        self.dtype, self.shape, self.strides, self.between = given.dtype, given.shape, given.strides, size - 1
        return True


# ---- out of it ----


class _Memory:
    """A tensor's memory for numpy.asarray, whose array keeps this object, and so the tensor."""

    __slots__ = ("tensor", "__array_interface__")
    release = None  # sb_tensor_release of the library, which cannot be looked up any more when Python ends

    def __del__(self):
        try:
            self.release(self.tensor)
        except AttributeError:  # interrupted before it had one
            pass


class _Output:
    """How an output's structure is read: its place among the others', and the dtype and rank that it has had so far."""

    __slots__ = ("name", "place", "number", "rank", "fields", "dtype", "bits", "typestr")

    def __init__(self, info, place):
        self.name = info.name
        self.place = place
        self.expect(info._dtype, len(info.shape) if info.shape is not None else 0)

    def expect(self, number, rank):
        """From now on, `fields` of the structures reads dtype, rank, contiguous, data, tensor, and `rank` extents."""
        known = tables()
        self.number = number
        self.rank = rank
        self.fields = struct.Struct(f"@ii?PP{rank}q").unpack_from
        self.dtype = known.numpy[number]
        self.bits = known.raw.get(number, self.dtype)
        self.typestr = self.bits.str


# A run that is over so soon need not be interrupted: Python's handler has its turn right behind it. What would watch for
# Ctrl-C meanwhile is two system calls, 1.25 us, which a run of 10 us feels.
_BRIEF_NS = 100_000
_BRIEF_RUNS = 3  # which shapes that come and go do not reach: asking costs more than it brings them
_CHOOSING = {"If", "Loop", "Scan", "SequenceMap"}


def _takes_the_same_again(session):
    """Whether shapes alone decide what the last run's nodes did: nobody's observer, no loop, and no extents from data."""
    return session._observer is None and not any(node.by_data or node.op in _CHOOSING for node in session.placement())


class ArrayRuns:
    """The structures of a session's inputs and outputs, and runs on them, for one thread at a time. They do not keep the
    session, which keeps them."""

    def __init__(self, session, names):
        """`names`: of the inputs that a run is given."""
        self.run_arrays = session._library.sb_session_run_arrays
        given = (Array * len(session.inputs))()
        self.made = (Array * len(session.outputs))()
        self.inputs = {info.name: _Input(given[index], info._dtype) for index, info in enumerate(session.inputs)
                       if info.name in names}
        self.outputs = [_Output(info, index * ctypes.sizeof(Array)) for index, info in enumerate(session.outputs)]
        self.report = ErrorReport()
        self.addresses = (ctypes.addressof(given), ctypes.addressof(self.made), ctypes.addressof(self.report))
        self._given = given
        self.brief = False  # whether arrays of these shapes are known to take less than _BRIEF_NS
        self.until_asked = _BRIEF_RUNS  # brief runs with these shapes until _takes_the_same_again is asked
        _Memory.release = session._library.sb_tensor_release

    def run(self, session, feed):
        """{name: array} of a run of the session on {name: array}; None where something else is given, or not what the
        model takes."""
        given = list(feed.items())  # which keeps the arrays, whatever becomes of the caller's
        if len(given) != len(self.inputs):
            return None
        for name, array in given:
            place = self.inputs.get(name)
            if place is None or type(array) is not numpy.ndarray:
                return None
            if array.dtype is not place.dtype or array.shape != place.shape or array.strides != place.strides:
                self.brief, self.until_asked = False, _BRIEF_RUNS
                if not place.describe(array):
                    return None
            address = address_of(array)
            if address & place.between:
                return None
            place.array.data = address
        if self.brief:
            status = self.run_arrays(session.pointer, *self.addresses)
        else:
            start = _now()
            status = interruptible(session, self.run_arrays, session.pointer, *self.addresses)
            if self.until_asked and _now() - start < _BRIEF_NS and not status:
                self.until_asked -= 1
                self.brief = not self.until_asked and _takes_the_same_again(session)
        if status:
            session._fail(status, self.report)
        return self._results()

    def _results(self):
        results, made, taken = {}, self.made, 0
        try:
            for output in self.outputs:
                fields = output.fields(made, output.place)
                tensor = fields[4]
                if not tensor:
                    results[output.name] = None
                    taken += 1
                    continue
                if fields[0] != output.number or fields[1] != output.rank:
                    output.expect(fields[0], fields[1])
                    fields = output.fields(made, output.place)
                memory = _Memory()
                memory.tensor = tensor
                taken += 1
                results[output.name] = self._array(output, memory, fields)
        except BaseException:  # Ctrl-C, or no memory
            for array in made[taken:]:
                _Memory.release(array.tensor)
            raise
        return results

    def _array(self, output, memory, fields):
        shape = fields[5:]
        if 0 in shape:
            return numpy.empty(shape, output.dtype)
        interface = {"version": 3, "typestr": output.typestr, "shape": shape, "data": (fields[3], True)}
        if not fields[2]:
            strides = Array.from_buffer(self.made, output.place).strides[: output.rank]
            interface["strides"] = tuple(stride * output.bits.itemsize for stride in strides)
        memory.__array_interface__ = interface
        array = numpy.asarray(memory)
        return array if output.bits is output.dtype else array.view(output.dtype)


def array_runs(session, names):
    """The ArrayRuns of a session; None where some of what goes in or out is no array of numpy."""
    values = (*session.inputs, *session.outputs)
    if session._settings.device_outputs or any(
        info._kind != KIND_TENSOR or info._dtype == tables().string for info in values
    ):
        return None
    return ArrayRuns(session, names)
