"""onnx_save_test.py [--only REGEX] [--require N]: every model of the installed onnx's own tests, written by samebit.Model.save.

What is written must pass onnx.checker wherever the model itself does, and have the same inputs, outputs and bits when it is
loaded again: as the passes leave it, and as it was read. (The checker wants a rank of each output, and so refuses a file that
says of one, truly, that it is not known: its check of those is left out.) Where onnxruntime is installed, it has to read what
is written of every model that it reads. Exit status 1 where one does not, or fewer than N do.
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile
import warnings

try:
    import numpy
    import onnx
    from onnx.backend.test.loader import load_model_tests
except ImportError:
    print("SKIPPED: onnx is not installed")
    sys.exit(77)

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

import samebit


def cases(only):
    """(name, model's bytes, list of inputs, or None where they are files) of each case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, while the cases are made
        for kind in ("node", "simple", "pytorch-converted", "pytorch-operator"):
            for case in load_model_tests(kind=kind):
                if not re.search(only, case.name):
                    continue
                if case.model is not None:
                    inputs = [onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
                              for value in case.data_sets[0][0]]
                    yield case.name, case.model.SerializeToString(), inputs
                    continue
                folder = pathlib.Path(case.model_dir)
                model = onnx.load(folder / "model.onnx")
                yield case.name, (folder / "model.onnx").read_bytes(), recorded(folder / "test_data_set_0", model)


def recorded(folder, model):
    values = []
    for number, info in enumerate(model.graph.input[:len(list(folder.glob("input_*.pb")))]):
        contents = (folder / f"input_{number}.pb").read_bytes()
        if info.type.HasField("sequence_type"):
            values.append(onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(contents)))
        elif info.type.HasField("optional_type"):
            values.append(onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(contents)))
        else:
            values.append(onnx.numpy_helper.to_array(onnx.TensorProto.FromString(contents)))
    return values


def described(infos):
    return [(info.name, info.kind, info.dtype, info.optional,
             None if info.shape is None else [extent if isinstance(extent, int) else "?" for extent in info.shape])
            for info in infos]


def is_valid(model):
    try:
        onnx.checker.check_model(model, full_check=True)
        return True
    except Exception:  # of onnx's, which has a kind for each of its parts
        return False


def is_read_elsewhere(model):
    """Whether ONNX Runtime makes a session of a path or of bytes."""
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return True
    except Exception:  # of its own kinds
        return False


def check(contents, inputs, path, **options):
    """What is wrong with what is written; None when nothing is."""
    model = samebit.load(contents, threads=1, **options)
    model.save(path)
    if all(info.shape is not None for info in model.outputs) and is_valid(onnx.load_from_string(contents)):
        onnx.checker.check_model(onnx.load(path), full_check=True)
    if onnxruntime is not None and is_read_elsewhere(contents) and not is_read_elsewhere(path):
        return "ONNX Runtime reads the model, and not what is written of it"
    again = samebit.load(path, threads=1, **options)
    if described(model.inputs) != described(again.inputs):
        return f"inputs {model.inputs} became {again.inputs}"
    if [info.name for info in model.outputs] != [info.name for info in again.outputs]:
        return f"outputs {model.outputs} became {again.outputs}"
    values = inputs[:len(model.inputs)]
    digest = model.digest(*values)
    if digest == model.digest(*values) != again.digest(*values):
        return "the outputs have other bits"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name this matches")
    parser.add_argument("--require", type=int, default=1, metavar="N", help="exit status 1 when fewer pass")
    arguments = parser.parse_args()
    passed, wrong, left_out = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "written.onnx"
        for name, contents, inputs in cases(arguments.only):
            try:
                samebit.load(contents, threads=1)
            except samebit.Error as failure:
                left_out[type(failure).__name__] += 1
                continue
            for options in ({}, {"passes": False}):
                try:
                    found = check(contents, inputs, path, **options)
                except Exception as failure:  # of whatever kind: it is reported, and the next case goes on
                    found = f"{type(failure).__name__}: {failure}"
                if found is not None:
                    wrong += 1
                    print(f"FAILED {name} {options or ''}: {found[:300]}")
                    break
            else:
                passed += 1
    print(f"onnx {onnx.__version__}: {passed} models written and read again, {wrong} wrong, {sum(left_out.values())} that do "
          f"not load")
    return 1 if wrong or passed < arguments.require else 0


if __name__ == "__main__":
    sys.exit(main())
