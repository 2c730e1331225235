"""Ctrl-C while the library computes.

Python runs its handlers of signals between two instructions of the main thread, which sits in the library for as
long as a run takes. But it writes the signal's number at once into a file that `signal.set_wakeup_fd` names. A thread
of ours waits at the other end and interrupts the run, which ends before its next node; then Python's handler raises
KeyboardInterrupt.
"""

import os
import signal
import threading

_SIGINT = int(signal.SIGINT)


class _Watcher:
    """The thread, the pipe, and the session that the main thread runs."""

    def __init__(self):
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        self.lock = threading.Lock()
        self.interrupt = None
        self.interrupted = False
        self.previous = -1
        threading.Thread(target=self._watch, name="samebit interrupts", daemon=True).start()

    def _watch(self):
        while True:
            signals = os.read(self.reading, 64)
            with self.lock:
                if self.previous >= 0:  # asyncio's, say, which waits for these bytes
                    try:
                        os.write(self.previous, signals)
                    except OSError:
                        pass
                if _SIGINT in signals and self.interrupt is not None:
                    self.interrupted = True
                    self.interrupt()


_watcher = None


def _forget():
    global _watcher
    _watcher = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def interruptible(call, interrupt, clear):
    """call(), which `interrupt()` ends early, such that Ctrl-C does. `clear()` takes back an interrupt that came too
    late for it. In threads other than the main one it is just the call: signals are handled in that one alone."""
    global _watcher
    if (
        threading.current_thread() is not threading.main_thread()
        or not callable(signal.getsignal(signal.SIGINT))
    ):
        return call()
    if _watcher is None:
        _watcher = _Watcher()
    watcher = _watcher
    if watcher.interrupt is not None:  # a run inside of a run: an observer's
        return call()
    try:
        previous = signal.set_wakeup_fd(watcher.writing, warn_on_full_buffer=False)
    except ValueError:  # not the main interpreter
        return call()
    with watcher.lock:
        watcher.previous = previous
        watcher.interrupt = interrupt
        watcher.interrupted = False
    try:
        return call()
    finally:
        with watcher.lock:
            watcher.interrupt = None
            late = watcher.interrupted
        signal.set_wakeup_fd(previous)
        if late:
            clear()
