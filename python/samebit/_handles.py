"""What the library owns, as Python objects: released when nobody holds them any more."""

import os
import weakref

from ._errors import Error


def _destroy(destroy, pointer, process):
    # A forked child has neither its parent's threads nor its device context.
    if os.getpid() == process:
        destroy(pointer)


class Handle:
    """One owned pointer, given back by `destroy`. Not at exit: the driver may be gone by then, and the process gives
    everything back."""

    _address = None

    def _own(self, pointer, destroy):
        self._address = pointer
        self._finalizer = weakref.finalize(self, _destroy, destroy, pointer, os.getpid())
        self._finalizer.atexit = False

    def close(self):
        """Gives back what this holds now, rather than when nobody refers to it any more."""
        self._address = None
        self._finalizer()

    @property
    def closed(self):
        """Whether `close` has been called."""
        return self._address is None

    @property
    def pointer(self):
        """The library's own, as a number."""
        if self._address is None:
            raise Error(f"the {type(self).__name__.lower()} has been closed")
        return self._address


def text(value):
    """A text of the library as str; None for NULL. Names come from files and may be no UTF-8."""
    return None if value is None else value.decode("utf-8", "surrogateescape")


def encoded(value):
    """A str as the library's text; None for None."""
    return None if value is None else str(value).encode("utf-8", "surrogateescape")
