"""Sessions: timelines of runs of a model."""

import ctypes
import dataclasses
import threading
from typing import Optional

from ._arrays import array_runs
from ._errors import ArgumentError, ArgumentTypeError, Error
from ._handles import Handle, text
from ._interrupts import interruptible
from ._library import KIND_NONE, KIND_SEQUENCE, KIND_TENSOR, library
from ._structures import OBSERVER, PLACEMENT_VISITOR, GraphReport, RunReport, Value
from ._tensor_runs import tensor_runs
from ._values import Tensor, fill_value, input_memory, release_all

# sb_status: "internal error", which a caller of the observer's run never sees.
_OBSERVER_FAILED = 10


@dataclasses.dataclass(frozen=True)
class PlacedNode:
    """Where a node was computed, or a copy between the host and a device (`op` is "Transfer")."""

    name: str
    op: str
    depth: int
    on_device: bool
    by_data: bool
    kernel: str
    """What computes it; "reference" for its definition."""
    why: Optional[str]
    """Why it does not run on the device; None where it does, or where there is none."""
    way: Optional[str]
    slow: Optional[str]


@dataclasses.dataclass(frozen=True)
class GraphsReport:
    """What has become of the graphs by which a device is given its work."""

    segments: int
    recorded: int
    failed: int
    tasks: int
    edges: int
    reason: str


@dataclasses.dataclass(frozen=True)
class LastRun:
    """How the last run was done: whether it was complete when it had been enqueued, and why."""

    run: int
    synchronous: bool
    reason: str
    node: Optional[str]
    op: Optional[str]


@dataclasses.dataclass(frozen=True)
class NodeEvent:
    """What a node did, for an observer; or a copy between the host and a device (`op` is "Transfer")."""

    name: str
    op: str
    kernel: str
    """What computed it: "reference", "constant" (known before the run), or the name of the kernel."""
    depth: int
    """0 in the model's own graph, more inside If, Loop and Scan."""
    start_ns: int
    end_ns: int
    output_bytes: int
    on_device: bool


class Observer:
    """A function of Python that the library calls after each node, with the event's structure. What it raises ends the run
    and is raised from there."""

    def __init__(self, visit, times_only=False):
        self.visit = visit
        self.times_only = times_only
        self.failure = None
        self.callback = OBSERVER(self._call)

    def _call(self, _, event, report):
        try:
            self.visit(event.contents)
            return 0
        except BaseException as failure:  # nothing of Python may pass through the library
            self.failure = failure
            if report:
                report.contents.status = _OBSERVER_FAILED
                report.contents.message = b"the observer failed"
            return _OBSERVER_FAILED

    def raise_failure(self):
        """Raises what the function has raised, if it has."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def public_observer(visit):
    """The Observer of a function that takes a NodeEvent; None for None."""
    if visit is None:
        return None
    return Observer(lambda event: visit(NodeEvent(
        text(event.name), text(event.op), text(event.kernel), event.depth, event.start_ns, event.end_ns,
        event.output_bytes, event.on_device,
    )), times_only=True)


class Session(Handle):
    """One timeline of runs of a model: `model.session()` makes it.

    A session has worker threads, memory and plans of its own, and may have a state. Threads that use one session at
    the same time wait for each other; different sessions of one model run at the same time.
    """

    def __init__(self, model, settings, state=None, observer=None):
        known = library()
        self._library = known
        self.model = model
        self.state = state
        self._settings = settings
        self._device = settings.device
        self._inputs, self._outputs = model._entry(settings.entry)
        self._lock = threading.RLock()
        self._observer = observer  # which the library calls
        self._given = {}  # of queued runs: the host's memory that their inputs look at
        self._options = settings.structure(state, observer)
        kept = [info.name for info in self._inputs if state is not None and info.name in state]
        self._free = [info.name for info in self._inputs if info.name not in kept]  # what a run is given
        pointer = ctypes.c_void_p()
        known.call("sb_session_create", model.pointer, ctypes.byref(self._options), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_session_destroy)
        self._fast_runs = array_runs(self, self._free) or tensor_runs(self, self._free)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    def __repr__(self):
        return f"<samebit.Session of {self.model!r}>"

    @property
    def inputs(self):
        """The ValueInfo of each input of the entry graph."""
        return self._inputs

    @property
    def outputs(self):
        """The ValueInfo of each output of the entry graph."""
        return self._outputs

    # ---- what goes in and out ----

    def _named(self, positional, named):
        """Positional and named arguments as {name: value}."""
        free = self._free
        if len(positional) > len(free):
            raise ArgumentTypeError(
                f"the model takes {len(free)} inputs ({', '.join(free) or 'none'}), and {len(positional)} are given"
            )
        feed = dict(zip(free, positional))
        for name, given in named.items():
            if name in feed:
                raise ArgumentTypeError(f"input {name} is given twice")
            feed[name] = given
        return feed

    def _values(self, feed):
        """An array of Values of {name: value}, to release."""
        values = (Value * len(self._inputs))()
        places = {info.name: index for index, info in enumerate(self._inputs)}
        for name in feed:
            if name not in places:
                raise ArgumentError(f"the model has no input {name}; it has {', '.join(places) or 'none'}")
        try:
            for name, given in feed.items():
                index = places[name]
                info = self._inputs[index]
                fill_value(values[index], given, info._kind, info._dtype, name, self._device, self._settings.stream)
            for index, info in enumerate(self._inputs):
                if values[index].kind == KIND_NONE and not info.optional and info.name in self._free:
                    raise ArgumentError(f"input {info.name} is missing: the model takes {info}")
        except BaseException:
            release_all(values)
            raise
        return values

    def _results(self, values, memory):
        """{name: value of Python} of a run's Values, which are used up."""
        results = {}
        try:
            for index, info in enumerate(self._outputs):
                results[info.name] = self._result(values[index], memory)
        finally:
            release_all(values)
        return results

    def _result(self, value, memory):
        known = self._library
        if value.kind == KIND_SEQUENCE:
            count = known.sb_sequence_count(value.pointer)
            return [self._result(known.sb_sequence_item(value.pointer, index), memory) for index in range(count)]
        if value.kind != KIND_TENSOR:
            return None
        tensor = Tensor(known.sb_tensor_retain(value.pointer), self._device)
        if tensor.device is not None and self._settings.device_outputs:
            return tensor
        array = tensor.numpy()
        address = tensor.address
        if tensor.device is None and any(first <= address < last for first, last in memory):
            array = array.copy()
        return array

    # ---- running ----

    def _interruptible(self, name, *arguments):
        """A function of the library on this session, which Ctrl-C ends early."""
        try:
            interruptible(self, self._library.call, name, self.pointer, *arguments)
        except Error:
            if self._observer is not None:
                self._observer.raise_failure()
            raise

    def _fail(self, status, report):
        """Raises what a run has reported, or what its observer has raised."""
        if self._observer is not None:
            self._observer.raise_failure()
        self._library.check(status, report)

    def __call__(self, *inputs, **named):
        """Runs once on inputs by position or by name.

        Returns
        -------
        The output of a model that has one; a tuple of all, in the model's order, of others.
        """
        results = tuple(self.run(self._named(inputs, named)).values())
        return results[0] if len(results) == 1 else results

    def run(self, inputs, outputs=None):
        """Runs once.

        Parameters
        ----------
        inputs : dict
            {name: value}. A value is an array of numpy, of torch or of another library that speaks DLPack, which is
            read where it lies; numbers or nested lists of them; text; a list for a sequence; None where an optional
            one is left out. Variables of the session's state are left out.
        outputs : list of str, optional
            The outputs that are wanted, in that order; all by default.

        Returns
        -------
        dict
            {name: value}. Tensors are arrays of numpy over the library's memory, which they keep alive, and are
            read-only; with `device_outputs` those made on the device are samebit.Tensor. Text is an array of str, a
            sequence a list, nothing (an empty optional, a variable of the state) None.

        Raises
        ------
        samebit.Error
            With the library's sentence: ValueError for a name, dtype, rank or extent that does not fit, TypeError for
            what is no array, MemoryError beyond a limit, KeyboardInterrupt after Ctrl-C. The session may be used
            further.
        """
        if outputs is not None:
            names = [info.name for info in self._outputs]
            for name in outputs:
                if name not in names:
                    raise ArgumentError(f"the model has no output {name}; it has {', '.join(names)}")
        with self._lock:
            results = self._fast_runs.run(self, inputs) if self._fast_runs is not None else None
            if results is None:
                values, memory = self._run(inputs)
                results = self._results(values, memory)
        return results if outputs is None else {name: results[name] for name in outputs}

    def _run(self, feed):
        """The Values of a run's outputs, to release, and where the memory of its inputs lies."""
        given = self._values(feed)
        try:
            memory = input_memory(given)
            values = (Value * max(len(self._outputs), 1))()
            self._interruptible("sb_session_run", given, values)
        finally:
            release_all(given)
        return values, memory

    def digest(self, *inputs, **named):
        """Runs once, with arguments as a call, and gives the SHA-256 digest of the outputs that `samebit run --digest`
        prints: 64 hexadecimal digits."""
        from ._compare import digest_values

        with self._lock:
            values, _ = self._run(self._named(inputs, named))
            try:
                return digest_values(values, len(self._outputs), self._device)
            finally:
                release_all(values)

    def enqueue(self, inputs):
        """Gives a run to the device without waiting for it; see `run` for the inputs. At most `queue_depth` runs may
        be queued. Returns the run's number, for `wait`."""
        with self._lock:
            given = self._values(inputs)
            try:
                memory = input_memory(given)
                number = ctypes.c_uint64()
                self._interruptible("sb_session_enqueue", given, ctypes.byref(number))
                self._given[number.value] = memory
            finally:
                release_all(given)
            return number.value

    def poll(self, run):
        """Whether `wait` for this run would return at once."""
        done = ctypes.c_bool()
        with self._lock:
            self._library.call("sb_session_poll", self.pointer, run, ctypes.byref(done))
        return done.value

    def wait(self, run):
        """Waits for a queued run, once for each: its outputs as `run` gives them."""
        with self._lock:
            values = (Value * max(len(self._outputs), 1))()
            memory = self._given.pop(run, ())
            self._interruptible("sb_session_wait", run, values)
            return self._results(values, memory)

    def interrupt(self):
        """Ends the run in progress, or else the next one, with samebit.Interrupted. Any thread may call this at any
        time; a node that has begun is finished first."""
        pointer = self._address
        if pointer is not None:
            self._library.sb_session_interrupt(pointer)

    def clear_interrupt(self):
        """Takes back an interrupt that no run has reported yet."""
        pointer = self._address
        if pointer is not None:
            self._library.sb_session_clear_interrupt(pointer)

    # ---- looking at the last run ----

    def placement(self):
        """Where the nodes of the most recent run were computed, with the copies between the host and a device: a list
        of PlacedNode, empty when there was no run."""
        found = []

        def visit(_, node):
            given = node.contents
            found.append(PlacedNode(
                text(given.name), text(given.op), given.depth, given.on_device, given.by_data, text(given.kernel),
                text(given.why), text(given.way), text(given.slow),
            ))

        with self._lock:
            visitor = PLACEMENT_VISITOR(visit)
            self._library.sb_session_visit_placement(self.pointer, ctypes.cast(visitor, ctypes.c_void_p), None)
        return found

    def graphs(self):
        """What has become of graphs in the most recent run's plan: a GraphsReport."""
        report = GraphReport()
        with self._lock:
            self._library.sb_session_graphs(self.pointer, ctypes.byref(report))
        return GraphsReport(report.segments, report.recorded, report.failed, report.tasks, report.edges,
                            text(report.reason))

    def last_run(self):
        """How the run that was enqueued last was done: a LastRun; None when there was none."""
        report = RunReport()
        with self._lock:
            self._library.sb_session_last_run(self.pointer, ctypes.byref(report))
        if report.run == 0:
            return None
        return LastRun(report.run, report.synchronous, text(report.reason), text(report.node), text(report.op))

    def exact_plans(self):
        """Why the most recent run was planned for exact extents although some symbols have capacities; "" when it
        was not."""
        with self._lock:
            return text(self._library.sb_session_exact_plans(self.pointer))
