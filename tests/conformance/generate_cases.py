#!/usr/bin/env python3
"""generate_cases.py FOLDER: writes the backend tests of the installed onnx package, in the layout that `samebit conformance` reads:
FOLDER/SET/NAME/model.onnx with inputs and recorded outputs in folders test_data_set_N beside it, and the case's tolerance in
tolerance.txt where it is not the standard's usual one.

The cases of operators (node) are made by the package's own functions; models of several nodes (simple, pytorch-converted,
pytorch-operator) and large networks with plain weights (light) lie in the package as files. Nothing is downloaded. Where FOLDER
was finished by this script and this version of onnx before, nothing is done. Exit status 77, which CTest counts as skipped, when
onnx is not installed."""
import hashlib
import pathlib
import shutil
import sys
import warnings

try:
    import numpy
    import onnx
    from onnx import TensorProto, numpy_helper
    from onnx.backend.test.loader import load_model_tests
except ImportError as reason:
    print(f"SKIPPED: {reason}: tools/python-environment makes an interpreter that has it")
    sys.exit(77)

USUAL_TOLERANCE = (1e-3, 1e-7)
SETS_OF_FILES = ("simple", "pytorch-converted", "pytorch-operator")


def encoded(value, kind):
    """The bytes of the message that records a value of a type."""
    if kind.HasField("map_type"):
        value = numpy_helper.from_dict(value)
    elif kind.HasField("sequence_type"):
        value = numpy_helper.from_list(value)
    elif kind.HasField("optional_type"):
        value = numpy_helper.from_optional(value)
    elif not isinstance(value, TensorProto):
        value = numpy_helper.from_array(value)
    return value.SerializeToString()


def write_values(folder, stem, values, described):
    folder.mkdir(parents=True, exist_ok=True)
    for number, (value, about) in enumerate(zip(values, described, strict=True)):
        (folder / f"{stem}_{number}.pb").write_bytes(encoded(value, about.type))


def write_tolerance(folder, case):
    """The case's own; where it gives bf16, two units in its last place, as in the package's runner."""
    model = case.model if case.model is not None else onnx.load(folder / "model.onnx", load_external_data=False)
    kinds = [value.type.tensor_type.elem_type for value in model.graph.output]
    tolerance = (max(case.rtol, 2**-6) if TensorProto.BFLOAT16 in kinds else case.rtol, case.atol)
    if tolerance != USUAL_TOLERANCE:
        (folder / "tolerance.txt").write_text(f"{tolerance[0]!r} {tolerance[1]!r}\n")


def write_node(folder, case):
    graph = case.model.graph
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for number, (inputs, outputs) in enumerate(case.data_sets):
        # A trailing optional input may be left out.
        write_values(folder / f"test_data_set_{number}", "input", inputs, graph.input[:len(inputs)])
        write_values(folder / f"test_data_set_{number}", "output", outputs, graph.output)


def write_light(folder, case, model_file):
    """A large network: the package has the model and its outputs, for inputs that its runner computes as here."""
    model = onnx.load(model_file)
    weights = {tensor.name for tensor in model.graph.initializer}
    fed = [value for value in model.graph.input if value.name not in weights]
    shapes = [tuple(max(dimension.dim_value, 1) for dimension in value.type.tensor_type.shape.dim) for value in fed]
    inputs = [(numpy.arange(numpy.prod(shape)).reshape(shape) / numpy.prod(shape)).astype(numpy.float32) for shape in shapes]
    write_values(folder / "test_data_set_0", "input", inputs, fed)
    shutil.copyfile(model_file, folder / "model.onnx")
    for number in range(len(model.graph.output)):
        shutil.copyfile(model_file.with_name(f"{model_file.stem}_output_{number}.pb"),
                        folder / "test_data_set_0" / f"output_{number}.pb")


def write_all(folder):
    package = pathlib.Path(onnx.__file__).parent
    counts = {}
    for kind in ("node", *SETS_OF_FILES, "real"):
        target = folder / ("light" if kind == "real" else kind)
        cases = load_model_tests(kind=kind)
        for case in cases:
            if kind == "node":
                write_node(target / case.name, case)
            elif kind == "real":
                write_light(target / case.name, case, package.parent / case.url)
            else:
                shutil.copytree(case.model_dir, target / case.name)
            write_tolerance(target / case.name, case)
        counts[target.name] = len(cases)
    return counts


def main(folder):
    identity = f"onnx {onnx.__version__} {hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()}\n"
    finished = folder / "finished.txt"
    if finished.exists() and finished.read_text() == identity:
        return
    shutil.rmtree(folder, ignore_errors=True)
    # Some expected overflows are on purpose.
    warnings.filterwarnings("ignore")
    counts = write_all(folder)
    finished.write_text(identity)
    print(f"onnx {onnx.__version__}:", ", ".join(f"{count} {name}" for name, count in counts.items()))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: generate_cases.py FOLDER")
    main(pathlib.Path(sys.argv[1]))
