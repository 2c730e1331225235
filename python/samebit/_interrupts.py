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
_set_wakeup = signal.set_wakeup_fd
_this_thread = threading.get_ident
_main_thread = threading.main_thread().ident


class _Watcher:
    """The thread, the pipe, and the session that the main thread runs."""

    def __init__(self):
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.writing, False)
        self.lock = threading.Lock()
        self.session = None
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
                if _SIGINT in signals and self.session is not None:
                    self.interrupted = True
                    self.session.interrupt()


_watcher = None


def _forget():
    global _watcher, _main_thread
    _watcher, _main_thread = None, _this_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def interruptible(session, run, *arguments):
    """run(*arguments), which works on a session, such that Ctrl-C interrupts the session. In threads other than the main
    one it is just the call: signals are handled in that one alone. (Where SIGINT is ignored, or ends the process, Python
    writes nothing.)"""
    global _watcher
    if _this_thread() != _main_thread:
        return run(*arguments)
    watcher = _watcher
    if watcher is None:
        watcher = _watcher = _Watcher()
    if watcher.session is not None:  # a run inside of a run: an observer's
        return run(*arguments)
    try:
        previous = _set_wakeup(watcher.writing, warn_on_full_buffer=False)
    except ValueError:  # not the main interpreter
        return run(*arguments)
    watcher.previous = previous
    watcher.interrupted = False
    watcher.session = session  # last: from here on the thread looks at it
    try:
        return run(*arguments)
    finally:
        with watcher.lock:
            watcher.session = None
            late = watcher.interrupted
        _set_wakeup(previous)
        if late:
            session.clear_interrupt()
