"""What linear_logp asks the library for, packed."""

import ctypes
import struct

from ._engine import MATRIX, NO_MATRIX
from ._library import Error

# sb_linear_logp: bytes; hidden, weight; targets; ignore index, inverse temperature; logp, maximum,
# sum; workspace, its bytes; schedule.
_LOGP = struct.Struct(f"@N{MATRIX}{MATRIX}PqfPPPPNP")
# sb_linear_logp_gradient: bytes; d_logp; d_hidden, d_weight; accumulate, rows.
_GRADIENT = struct.Struct(f"@NP{MATRIX}{MATRIX}?P")
WORKSPACE_ALIGNMENT = 256


def pack_logp(hidden, weight, targets, ignore_index, inverse_temperature, logp=0, maximum=0,
              total=0, workspace=0, workspace_bytes=0):
    """An sb_linear_logp. Matrices are the seven fields of an sb_matrix, the rest addresses."""
    try:
        return _LOGP.pack(_LOGP.size, *hidden, *weight, targets, ignore_index, inverse_temperature,
                          logp, maximum, total, workspace, workspace_bytes, 0)
    except (struct.error, OverflowError) as failure:
        raise Error(f"a number of linear_logp cannot be passed on: {failure}") from None


def pack_gradient(d_logp=0, d_hidden=NO_MATRIX, d_weight=NO_MATRIX, accumulate=False, rows=0):
    """An sb_linear_logp_gradient."""
    return _GRADIENT.pack(_GRADIENT.size, d_logp, *d_hidden, *d_weight, accumulate, rows)


def workspace_bytes(engine, packed, packed_gradient=None):
    """How many bytes a call needs, which must begin at a multiple of WORKSPACE_ALIGNMENT."""
    size = ctypes.c_size_t()
    engine.call("sb_linear_logp_workspace", packed, packed_gradient, ctypes.byref(size))
    return size.value
