"""GPUs: which there are, and those in use."""

import ctypes
import dataclasses
import threading
from typing import Optional

from ._engine import parse_device
from ._errors import ArgumentError, Error
from ._handles import Handle, text
from ._library import library



class Device(Handle):
    """A GPU in use: sessions run on it and tensors lie on it. Any thread may use it."""

    def __init__(self, index):
        known = library()
        pointer = ctypes.c_void_p()
        known.call("sb_device_open", None, index, ctypes.byref(pointer))
        self._own(pointer.value, known.sb_device_release)
        self._library = known
        self.index = index

    @property
    def name(self):
        """What it is called: "NVIDIA H200"."""
        return text(self._library.sb_device_name(self.pointer))

    def __str__(self):
        return f"cuda:{self.index}"

    def __repr__(self):
        return f"<samebit.Device {self} {self.name}>"

    def wait(self, stream=0):
        """Waits until the device has done what a stream has been given: the handle of a CUstream as a number, 0 for
        the legacy stream."""
        self._library.call("sb_device_wait", self.pointer, stream or None)


_lock = threading.Lock()
_devices = {}


def is_automatic(device):
    """Whether runs are to be on the device only where that is estimated to be quicker."""
    return not isinstance(device, Device) and str(device) == "auto"


def open_device(device):
    """The Device of "cuda", "cuda:1", a torch.device, "auto", …; None for the CPU. The process has one for each
    GPU, which is opened by the first call."""
    if device is None or isinstance(device, Device):
        return device
    if is_automatic(device):
        try:
            return open_device("cuda")
        except Error:
            return None
    try:
        kind, index = parse_device(device)
    except Error as failure:
        raise ArgumentError(f"{failure}, or 'auto'") from None
    if kind == "cpu":
        return None
    with _lock:
        if index not in _devices:
            _devices[index] = Device(index)
        return _devices[index]


@dataclasses.dataclass(frozen=True)
class DeviceDescription:
    """A GPU of this machine."""

    index: int
    name: str
    compute_capability: tuple
    multiprocessors: int
    memory_bytes: int
    memory_free_bytes: int
    kernels: Optional[str]
    """The kernels that would run, such as "sm_90a"; None when there are none for it."""
    why: str
    """Why there are no kernels, or why the device did not answer; "" when nothing is wrong."""


def devices():
    """The GPUs of this machine, as their driver reports them: a list of DeviceDescription, empty where there is no
    driver or no GPU."""
    known = library()
    pointer = ctypes.c_void_p()
    known.call("sb_device_list_create", None, ctypes.byref(pointer))
    try:
        found = []
        for index in range(known.sb_device_list_count(pointer)):
            given = known.sb_device_list_at(pointer, index).contents
            found.append(DeviceDescription(
                given.index, text(given.name), (given.compute_major, given.compute_minor), given.multiprocessors,
                given.memory_bytes, given.memory_free_bytes, text(given.kernels), text(given.why),
            ))
        return found
    finally:
        known.sb_device_list_release(pointer)
