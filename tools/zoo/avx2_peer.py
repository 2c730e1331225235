#!/usr/bin/env python3
"""avx2_peer.py FOLDER: copies the installed ONNX Runtime into FOLDER, and makes the copy take the processor for one without AVX-512.

It has no option for this. Where its library of matrix products chooses kernels at run time, it asks the operating system for the
registers of AVX-512 in one place; the branch behind that question never goes to them in the copy. With FOLDER in PYTHONPATH
both engines can be timed with AVX2 on one machine: `zoo.py time --isa avx2`. `--isa` alone limits Samebit only.
"""

import importlib.util
import pathlib
import shutil
import sys

# not %rax; test $0xe0, %al; je …: "does the system save opmasks and the upper halves of all 512-bit registers?"
QUESTION = bytes.fromhex("48f7d0a8e00f84")
BRANCH = 5  # bytes in front of the conditional branch, which has six
NO_OPERATION = b"\x90"


def limited(code):
    """The library without that branch; raises ValueError where it is not written as in 1.32."""
    if code.count(QUESTION) != 1:
        raise ValueError(f"the question for AVX-512 occurs {code.count(QUESTION)} times instead of once: this version is another")
    at = code.index(QUESTION) + BRANCH
    return code[:at] + NO_OPERATION * 6 + code[at + 6:]


def main(folder):
    installed = pathlib.Path(importlib.util.find_spec("onnxruntime").origin).parent
    copy = folder / "onnxruntime"
    shutil.copytree(installed, copy)
    (library,) = copy.glob("capi/onnxruntime_pybind11_state*.so")
    library.write_bytes(limited(library.read_bytes()))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: avx2_peer.py FOLDER")
    main(pathlib.Path(sys.argv[1]))
