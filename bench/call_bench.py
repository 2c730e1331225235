#!/usr/bin/env python3
"""What a call from Python costs beside the run itself, on a model that computes next to nothing.

    SAMEBIT_LIBRARY=build/src/libsamebit.so PYTHONPATH=python python bench/call_bench.py

The model has the inputs and outputs of a detector of speech: 512 samples, a state and a rate go in, a probability and a
state come out. Times are the best of several, in microseconds:

    bare       sb_session_run through ctypes, on tensors that are made once; outputs are released unseen
    model      model.run({name: array}) of the package
    call       model(array, …)
    session    samebit.InferenceSession.run
    peer       onnxruntime.InferenceSession.run, where that is installed
"""

import argparse
import ctypes
import timeit

import numpy
from onnx import parser

import samebit
from samebit import _structures

MODEL = '''<ir_version: 8, opset_import: ["" : 17]>
detector (float[batch,512] input, float[2,batch,128] state, int64 sr) => (float[batch,1] output, float[2,batch,128] stateN)
<int64 usual = {16000}> {
    same = Equal(sr, usual)
    scale = Cast <to = 1> (same)
    sum = ReduceMean <axes = [1]> (input)
    scaled = Mul(sum, scale)
    output = Sigmoid(scaled)
    stateN = Tanh(state)
}'''


def bare(session, feed):
    """A function that runs the session as C would."""
    library, pointer = session._library, session.pointer
    given, results = session._values(feed), (_structures.Value * len(session.outputs))()
    report = _structures.ErrorReport()
    run, release = library.sb_session_run, library.sb_value_release
    places = [ctypes.byref(value) for value in results]

    def call():
        assert run(pointer, given, results, ctypes.addressof(report)) == 0
        for place in places:
            release(place)

    call.session = session  # which is destroyed when nobody has it
    return call


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--seconds", type=float, default=0.3, help="for each time of which the best is told")
    arguments.add_argument("--repeat", type=int, default=7)
    given = arguments.parse_args()
    contents = parser.parse_model(MODEL).SerializeToString()
    feed = {"input": numpy.zeros((1, 512), numpy.float32), "state": numpy.zeros((2, 1, 128), numpy.float32),
            "sr": numpy.array(16000)}
    arrays = tuple(feed.values())
    model = samebit.load(contents, threads=1)
    same = samebit.InferenceSession(contents, threads=1)
    kinds = {"bare": bare(model.session(), feed), "model": lambda: model.run(feed), "call": lambda: model(*arrays),
             "session": lambda: same.run(None, feed)}
    try:
        import onnxruntime
    except ImportError:
        pass
    else:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        peer = onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
        kinds["peer"] = lambda: peer.run(None, feed)
    for name, call in kinds.items():
        timer = timeit.Timer(call)
        count = max(1, int(given.seconds / max(timer.timeit(100) / 100, 1e-7)))
        best = min(timer.repeat(given.repeat, count)) / count
        print(f"bench call/{name} time={best * 1e6:.2f} unit=us")


if __name__ == "__main__":
    main()
