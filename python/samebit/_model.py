"""Models: a graph with its weights, loaded once and shared by any number of threads and sessions."""

import ctypes
import dataclasses
import os
import threading
from typing import Dict, Optional, Tuple

from ._compare import Comparing, Findings
from ._devices import is_automatic, open_device
from ._dtypes import dtype_name, tables
from ._errors import ArgumentError, ArgumentTypeError
from ._handles import Handle, text
from ._inspect import inspect
from ._library import KIND_SEQUENCE, library
from ._options import Settings, model_options
from ._profile import Profile, measure
from ._session import Session, public_observer
from ._state import State


@dataclasses.dataclass(frozen=True)
class ValueInfo:
    """What is known of an input or output of a model before it runs."""

    name: str
    kind: str
    """ "tensor" or "sequence" (of tensors)."""
    dtype: str
    """Samebit's name of the element type: "f32", "bf16", "s64", "string", …"""
    shape: Optional[tuple]
    """A number, or a text such as "batch" or "2*time+1", for each extent; None when even the rank is open."""
    optional: bool
    """Whether the value may be None."""
    _kind: int = dataclasses.field(repr=False)
    _dtype: int = dataclasses.field(repr=False)

    @property
    def numpy_dtype(self):
        """What its arrays of numpy are of. bf16 and the 8-bit floats are types of ml_dtypes where that is installed,
        else integers that hold the bits."""
        return tables().numpy[self._dtype]

    @property
    def onnx_type(self):
        """As ONNX Runtime writes it: "tensor(float)", "seq(tensor(int64))"."""
        inner = f"tensor({tables().onnx[self._dtype]})"
        inner = f"seq({inner})" if self.kind == "sequence" else inner
        return f"optional({inner})" if self.optional else inner

    def __str__(self):
        extents = "…" if self.shape is None else ",".join(map(str, self.shape))
        inner = f"{self.dtype}[{extents}]"
        return f"{self.name}: " + (f"sequence({inner})" if self.kind == "sequence" else inner)


@dataclasses.dataclass(frozen=True)
class Metadata:
    """What a model's file says of itself; "" where it says nothing."""

    format_version: int = 0
    model_version: int = 0
    producer_name: str = ""
    producer_version: str = ""
    domain: str = ""
    graph_name: str = ""
    description: str = ""
    opsets: Dict[str, int] = dataclasses.field(default_factory=dict)
    """{domain: version} of the sets of operators that it uses; "" is the ONNX standard's."""
    properties: Dict[str, str] = dataclasses.field(default_factory=dict)


def _describe(given):
    shape = None
    if given.rank >= 0:
        shape = tuple(given.dims[axis] if given.dims[axis] >= 0 else text(given.dim_texts[axis])
                      for axis in range(given.rank))
    kind = "sequence" if given.kind == KIND_SEQUENCE else "tensor"
    return ValueInfo(text(given.name), kind, dtype_name(given.dtype), shape, given.optional, given.kind, given.dtype)


def _metadata(known, pointer):
    found = known.sb_model_describe(pointer)
    if not found:
        return Metadata()
    given = found.contents
    return Metadata(
        given.format_version, given.model_version, text(given.producer_name), text(given.producer_version),
        text(given.domain), text(given.graph_name), text(given.description),
        {text(given.opsets[i].domain): given.opsets[i].version for i in range(given.opset_count)},
        {text(given.properties[i].key): text(given.properties[i].value) for i in range(given.property_count)},
    )


_forks = 0  # that this process is behind


def _count_fork():
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class _Pool:
    """Sessions that nobody uses just now. A session is for one thread at a time, so there come to be as many as
    threads run the model at once."""

    def __init__(self):
        self.idle = []  # whose own methods are atomic
        self.forks = _forks

    def take(self):
        if self.forks != _forks:  # a forked child has none of its parent's worker threads
            self.idle, self.forks = [], _forks
        try:
            return self.idle.pop()  # the last one, whose plans and caches are fresh
        except IndexError:
            return None

    def give(self, session):
        if self.forks == _forks:
            self.idle.append(session)


class Model(Handle):
    """A model, ready to run: `samebit.load` makes it. Immutable; any number of threads may use it at the same time.

        y = model(x)                      one output: its value; several: a tuple in the model's order
        y = model(image=x, mask=m)        inputs by name
        results = model.run({"image": x}) {name: value}

    Each call takes a session that no other thread uses, or makes one, which keeps its memory and plans for the next
    call. For state, queued runs and other options see `session`.
    """

    def __init__(self, source, settings, options):
        known = library()
        self._library = known
        pointer = ctypes.c_void_p()
        self.path = None
        if isinstance(source, (bytes, bytearray, memoryview)):
            source = bytes(source)
            known.call("sb_model_load_memory", source, len(source), ctypes.byref(options), ctypes.byref(pointer))
        else:
            try:
                self.path = os.fspath(source)
            except TypeError:
                raise ArgumentTypeError(
                    f"a model is loaded from a path or from bytes, not from {type(source).__name__}; of an onnx "
                    "ModelProto pass model.SerializeToString()"
                ) from None
            known.call("sb_model_load", os.fsencode(self.path), ctypes.byref(options), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_model_release)
        self._settings = settings
        self._pool = _Pool()
        self._descriptions = {}
        self._names = [text(known.sb_model_entry_name(pointer, index))
                       for index in range(known.sb_model_entry_count(pointer))]
        self.metadata = _metadata(known, pointer)
        """What the file says of itself: a Metadata."""
        self.warnings = tuple(text(known.sb_model_warning(pointer, index))
                              for index in range(known.sb_model_warning_count(pointer)))
        """What breaks the rules of the file's format, or is newer than what Samebit knows, and how it was taken: a
        sentence each, what `samebit dump --warnings` prints."""
        self._entry(settings.entry)

    def __repr__(self):
        return f"<samebit.Model {self.path or self.metadata.graph_name}>"

    # ---- descriptions ----

    def _entry(self, name):
        """The descriptions of an entry graph's inputs and outputs; of the first, where there is no name."""
        if name is not None and name not in self._names:
            raise ArgumentError(f"the model has no entry graph {name}; it has {', '.join(self._names)}")
        index = self._names.index(name) if name is not None else 0
        if index not in self._descriptions:
            known, pointer = self._library, self.pointer
            self._descriptions[index] = (
                tuple(_describe(known.sb_model_entry_input(pointer, index, i).contents)
                      for i in range(known.sb_model_entry_input_count(pointer, index))),
                tuple(_describe(known.sb_model_entry_output(pointer, index, i).contents)
                      for i in range(known.sb_model_entry_output_count(pointer, index))),
            )
        return self._descriptions[index]

    @property
    def inputs(self) -> Tuple[ValueInfo, ...]:
        """What goes in: a tuple of ValueInfo, in the model's order."""
        return self._entry(self._settings.entry)[0]

    @property
    def outputs(self) -> Tuple[ValueInfo, ...]:
        """What comes out: a tuple of ValueInfo, in the model's order."""
        return self._entry(self._settings.entry)[1]

    @property
    def entries(self):
        """The names of the entry graphs; the first runs when nobody says which."""
        return tuple(self._names)

    @property
    def device(self):
        """The samebit.Device on which the model runs; None: the CPU."""
        return self._settings.device

    # ---- running ----

    def _take(self):
        """A session that nobody uses, to give back to the pool."""
        session = self._pool.take() if self._address is not None else None
        return session if session is not None else Session(self, self._settings)

    def __call__(self, *inputs, **named):
        """Runs once on inputs by position or by name; see `Session.run` for what they may be.

        Returns
        -------
        The output of a model that has one; a tuple of all, in the model's order, of others.
        """
        session = self._take()
        try:
            return session(*inputs, **named)
        finally:
            self._pool.give(session)

    def run(self, inputs, outputs=None):
        """Runs once on {name: value}, and gives {name: value} of all outputs or of those that are named. See
        `Session.run` for what values may be and what is raised."""
        session = self._take()
        try:
            return session.run(inputs, outputs)
        finally:
            self._pool.give(session)

    def digest(self, *inputs, **named):
        """Runs once, with arguments as a call, and gives the SHA-256 digest of the outputs, 64 hexadecimal digits: what
        `samebit run --digest` prints, and the same on every machine and device."""
        session = self._take()
        try:
            return session.digest(*inputs, **named)
        finally:
            self._pool.give(session)

    def session(self, *, state=None, symbols=None, observer=None, **changes):
        """A session of its own.

        Parameters
        ----------
        state : samebit.State, dict or list, optional
            What outlives runs. {input: output} or a list of samebit.Pair makes a State on the session's device, with
            `symbols` for its extents and `capacity` for those that grow; it is the session's attribute `state`.
        symbols : dict, optional
            {symbol: number} for the extents of such a state.
        observer : callable, optional
            Called after each node with its samebit.NodeEvent, in the thread that runs the session. What it raises ends the
            run and is raised from there.
        **changes
            Options as in samebit.load that differ from the model's: threads, device, capacity, …
        """
        settings = self._settings.replaced(**changes)
        if state is not None and not isinstance(state, State):
            state = State(self, state, symbols=symbols, capacity=settings.capacity, device=settings.device,
                          entry=settings.entry, memory_limit=settings.memory_limit)
        elif symbols:
            raise ArgumentError("symbols are for a state that is made here: pass state={input: output} too")
        return Session(self, settings, state, public_observer(observer))

    # ---- writing ----

    def save(self, path):
        """Writes the model as an ONNX file, for any runtime that reads the standard's operators: the graph as it is
        simplified (constants folded, what nobody needs gone), with fused nodes one by one again; as it was read where
        it was loaded with passes=False. Loaded again, outputs have the same bits.

        A file beyond 2 GB has its larger weights beside it, in `path` with ".data" behind. Each file is written whole
        or not at all. Raises samebit.UnsupportedError for what has no ONNX form, and FileError.
        """
        self._library.call("sb_model_save", self.pointer, os.fsencode(path))

    # ---- looking ----

    def placement(self, inputs):
        """Runs once on {name: value} in a session of its own, and says where each node was computed: a list of
        samebit.PlacedNode."""
        with Session(self, self._settings) as session:
            session.run(inputs)
            return session.placement()

    def inspect(self, **symbols):
        """The graph as it runs, with values for symbolic extents if some are given: an Inspection with nodes, values,
        parameters, operations and kernels."""
        return inspect(self, symbols)

    def profile(self, inputs, runs=10, warmup=2) -> Profile:
        """Where the time of a run on {name: value} goes: a samebit.Profile, which prints as a table. Nodes are measured
        one by one, so that on a device each is waited for."""
        return measure(self, self._settings, inputs, runs, warmup)

    def record(self, inputs):
        """Runs once on {name: value}, and gives the values of all nodes as {name: array}. Load the model with
        passes=False for those that fusing hides."""
        return Comparing(self, self._settings).record(inputs)

    def compare(self, inputs, reference=None, *, absolute=0.0, relative=0.0, cumulative=False) -> Findings:
        """Compares a run, node by node, with recorded values.

        Parameters
        ----------
        inputs : dict
            {name: value}.
        reference : dict, optional
            {name of a value: array}, such as `record` gives on another machine; by default the same model on the CPU.
        absolute, relative : float
            How far an element may be off: |ours - reference| ≤ absolute + relative · |reference|. By default every bit
            counts.
        cumulative : bool
            Whether errors flow on; else each node gets the recorded inputs, so that the culprit stands alone.

        Returns
        -------
        samebit.Findings
            `first` is the first node that differs, or None.
        """
        if reference is None:
            reference = Comparing(self, self._settings.replaced(device=None, stream=0)).record(inputs)
        settings = dataclasses.replace(self._settings, device_if_quicker=False)  # the device is what is compared
        return Comparing(self, settings).compare(inputs, reference, absolute, relative, cumulative)


def load(source, device=None, *, threads=0, isa="best", passes=True, reference=False, memory_limit=0,
         iteration_limit=0, stream=0, force_cpu=None, require_device=False, device_outputs=False, graphs="auto",
         dependent_launch=True, queue_depth=4, entry=None, capacity=None, unrelated=None) -> Model:
    """Loads an ONNX model.

    Parameters
    ----------
    source : path or bytes
        A file, whose external data are read from its own folder, or a file's contents.
    device : str, optional
        "cpu" (also None), "cuda", "cuda:1", a torch.device, or "auto" for a GPU where there is one, for runs that are
        estimated to end sooner there: small networks stay on the CPU. Nodes without a kernel there run on the CPU; the
        bits are the same.
    threads : int
        Worker threads of each session, the caller's included; 0: one per processor. With many threads that run the model
        at the same time, 1 is best.
    isa : str
        "best", "scalar", "avx2" or "avx512".
    passes : bool
        Whether the graph is simplified and fused.
    reference : bool
        Whether every node runs its definition in plain C: slow.
    memory_limit : int
        The most bytes that the model may hold, and each session; 0: what the machine has.
    iteration_limit : int
        The most iterations that all loops of a run may do together; 0: any number.
    stream : int
        On a device, the handle of the stream to work in; 0: one of each session's own. Inputs that lie on the device are
        waited for.
    force_cpu : str or list of str, optional
        Parts of names of nodes or operators that stay on the CPU.
    require_device : bool
        Whether a node that cannot run on the device is an error, which lists all such nodes.
    device_outputs : bool
        Whether outputs that are made on the device stay there, as samebit.Tensor, for torch.from_dlpack and for later
        runs.
    graphs : str
        How a device is given its work: "auto", "off", "capture" or "build".
    dependent_launch : bool
        Whether kernels may be launched while those before are at work (compute capability 9.0 and later).
    queue_depth : int
        The most runs that `Session.enqueue` queues: 1 to 16.
    entry : str, optional
        The entry graph to run; the model's first by default.
    capacity : dict, optional
        {symbol: capacity} or {symbol: (least, capacity)} for symbolic extents that change from run to run: runs then
        share plans.
    unrelated : str or list of str, optional
        Symbols of the file, such as "batch", that stand for extents which need not be equal, although it calls them the
        same.

    None of the options changes a bit of a result.

    Raises
    ------
    samebit.Error
        FileError (an OSError), FileFormatError and ModelError (ValueErrors), UnsupportedError (a NotImplementedError, which
        lists every operator that is missing), ShapeError, OutOfMemoryError (a MemoryError), DeviceError.
    """
    settings = Settings(open_device(device), threads, iteration_limit, memory_limit, stream, force_cpu, require_device,
                        device_outputs, graphs, dependent_launch, queue_depth, entry, capacity, is_automatic(device))
    return Model(source, settings, model_options(isa, passes, reference, memory_limit, unrelated))
