"""What goes wrong, as exceptions."""


class Error(Exception):
    """A call failed; the text says what is wrong and what to do.

    Attributes
    ----------
    status : str or None
        The library's name of the kind of failure, such as "shape mismatch"; None when the library was not reached. Where
        Python has a kind of exception for it, what is raised is of that kind too: see the subclasses.
    """

    def __init__(self, message, status=None):
        super().__init__(message)
        self.status = status


class ArgumentError(Error, ValueError):
    """Something was passed that the call's contract excludes ("invalid argument"), or a name is not known."""


class ArgumentTypeError(Error, TypeError):
    """An argument is of a kind that cannot be used there."""


class ShapeError(Error, ValueError):
    """Shapes or dtypes do not fit each other or the model ("shape mismatch")."""


class ModelError(Error, ValueError):
    """A model breaks the rules of its own standard ("invalid model")."""


class FileError(Error, OSError):
    """The operating system refused a file operation ("input/output error")."""


class FileFormatError(Error, ValueError):
    """A file is damaged, truncated or not of the format that it claims ("invalid file")."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but outside what Samebit does; the message names the way out ("unsupported")."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed or would exceed a limit ("out of memory")."""


class DeviceError(Error, RuntimeError):
    """A device or its driver failed ("device error")."""


class LimitError(Error, RuntimeError):
    """A run needs more iterations than `iteration_limit` allows ("limit reached")."""


class Interrupted(Error):
    """A run was ended by `Session.interrupt` ("interrupted"). Ctrl-C raises KeyboardInterrupt instead."""


# include/samebit/error.h: the numbers are part of the binary interface. Others are an Error.
CLASSES = {
    1: ArgumentError,
    2: OutOfMemoryError,
    3: FileError,
    4: FileFormatError,
    5: ModelError,
    6: UnsupportedError,
    7: ShapeError,
    9: DeviceError,
    11: Interrupted,
    12: LimitError,
}
