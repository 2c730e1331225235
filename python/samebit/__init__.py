"""Products of f16 and bf16 matrices whose every bit is specified, on CPUs and NVIDIA GPUs.

    samebit.gemm(a, b)        arrays of numpy, torch, cupy, … without a copy
    samebit.torch             linear, matmul, … with gradients, for PyTorch
    samebit.RowMap(lengths)   gradients of weights that do not depend on how samples are batched
    samebit.Engine(device)    where to compute, when the process's own engines are not it

The package calls libsamebit through ctypes and opens it when it is first needed: from the environment
variable SAMEBIT_LIBRARY, next to the package, or as the system's loader finds it.
"""

from ._engine import Engine, RowMap, engine
from ._gemm import gemm
from ._library import Error, load, numerics_version, version

__version__ = "0.1.0"

__all__ = ["Engine", "Error", "RowMap", "engine", "gemm", "load", "numerics_version", "version"]
