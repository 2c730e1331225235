#!/usr/bin/env python3
"""Loads a model of one node for each operator of the standard, version of it and type that it takes.

usage: check_types.py SAMEBIT EXCEPTIONS [--only TEXT] [--newest VERSION]

SAMEBIT is the command. The operators, their versions, inputs, attributes and types come from the package onnx: every
operator of the default domain up to operator set VERSION (28), in each version from operator set 7 on. Complex numbers, which
Samebit does not have, are tried with Identity alone. One type varies, the
others are plain ones; extents are unknown, so that only types, attributes and
numbers of inputs are in question.

EXCEPTIONS lists what Samebit does not take: lines of operator, version, type parameter and type, each with * where it stands for
all, then a reason. What is on the list and loads all the same is an error too.
"""

import argparse
import concurrent.futures
import fnmatch
import os
import subprocess
import sys
import tempfile

try:
    import onnx
    import onnx.defs
    from onnx import AttributeProto, TensorProto, helper
except ImportError:
    print("SKIPPED: this interpreter has no onnx package")
    sys.exit(77)

LEAST_VERSION = 7
NAMES = {
    "float": TensorProto.FLOAT, "double": TensorProto.DOUBLE, "string": TensorProto.STRING, "bool": TensorProto.BOOL,
}
# Attributes without which a node means nothing, and which a schema cannot tell.
ATTRIBUTES = {
    "AffineGrid": {}, "BitCast": {"to": TensorProto.INT32}, "BitShift": {"direction": "LEFT"},
    "Cast": {"to": TensorProto.FLOAT}, "CausalConvWithState": {}, "Concat": {"axis": 0}, "ConstantOfShape": {},
    "DepthToSpace": {"blocksize": 2}, "SpaceToDepth": {"blocksize": 2}, "Einsum": {"equation": "ij,jk->ik"},
    "GRU": {"hidden_size": 4}, "LSTM": {"hidden_size": 4}, "RNN": {"hidden_size": 4},
    "GroupNormalization": {"num_groups": 2}, "LpPool": {"kernel_shape": [2, 2]}, "LRN": {"size": 3},
    "AveragePool": {"kernel_shape": [2, 2]}, "MaxPool": {"kernel_shape": [2, 2]}, "MaxUnpool": {"kernel_shape": [2, 2]},
    "MaxRoiPool": {"pooled_shape": [2, 2]}, "RandomNormal": {"shape": [2]}, "RandomUniform": {"shape": [2]},
    "RegexFullMatch": {"pattern": "a*"}, "RotaryEmbedding": {"num_heads": 2}, "ConcatFromSequence": {"axis": 0},
    "TfIdfVectorizer": {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0,
                        "ngram_counts": [0], "ngram_indexes": [0], "pool_int64s": [1]},
    "Attention": {"q_num_heads": 2, "kv_num_heads": 2}, "LinearAttention": {"q_num_heads": 2, "kv_num_heads": 2},
    "Split": {}, "Upsample": {"scales": [1.0, 1.0]}, "Pad": {"pads": [0, 0]},
    "Slice": {"starts": [0], "ends": [1]}, "Squeeze": {"axes": [0]}, "Unsqueeze": {"axes": [0]},
}
# Attributes that say the type of an output: operator, type parameter → attribute.
OUTPUT_TYPES = {
    ("Cast", "T2"): "to", ("BitCast", "T2"): "to", ("EyeLike", "T2"): "dtype", ("Bernoulli", "T2"): "dtype",
    ("RandomNormal", "T"): "dtype", ("RandomUniform", "T"): "dtype", ("RandomNormalLike", "T2"): "dtype",
    ("RandomUniformLike", "T2"): "dtype", ("Multinomial", "T2"): "dtype", ("HannWindow", "T2"): "output_datatype",
    ("HammingWindow", "T2"): "output_datatype", ("BlackmanWindow", "T2"): "output_datatype",
    ("MelWeightMatrix", "T3"): "output_datatype", ("SequenceEmpty", "S"): "dtype", ("Optional", "V"): "",
}
# Type parameters that are equal to another one's, or follow from it, whatever the schema says.
LINKED = {
    ("SequenceInsert", "T"): "S", ("SequenceConstruct", "T"): "S", ("SequenceAt", "T"): "S", ("SplitToSequence", "T"): "S",
    ("ConcatFromSequence", "T"): "S", ("SequenceErase", "T"): "S",
}
BODIES = ("If", "Loop", "Scan", "SequenceMap")  # graphs inside: loaded by other tests


def element_of(text):
    """"tensor(float)" → 1; None for what is no tensor of one type."""
    if not text.startswith("tensor(") or text.count("(") != 1:
        return None
    name = text[len("tensor("):-1]
    return NAMES.get(name) or TensorProto.DataType.Value(name.upper())


def type_proto(text):
    """The type that the text names: tensors of unknown rank, sequences and optional values of them."""
    if text.startswith("seq("):
        return helper.make_sequence_type_proto(type_proto(text[4:-1]))
    if text.startswith("optional("):
        return helper.make_optional_type_proto(type_proto(text[9:-1]))
    return helper.make_tensor_type_proto(element_of(text), None)


PREFERRED = ["tensor(float)", "tensor(int64)", "tensor(int32)", "tensor(bool)", "tensor(uint8)", "tensor(int8)",
             "seq(tensor(float))", "optional(tensor(float))", "tensor(string)"]


def first_type(allowed):
    for text in PREFERRED:
        if text in allowed:
            return text
    return sorted(allowed)[0]


class Case:
    """A schema with one of its type parameters bound to a type."""

    def __init__(self, schema, parameter, text):
        self.schema, self.parameter, self.text = schema, parameter, text
        self.name = f"{schema.name} {schema.since_version} {parameter} {text}"

    def types(self):
        """What each type parameter is in this case."""
        bound = {c.type_param_str: first_type(c.allowed_type_strs) for c in self.schema.type_constraints}
        if self.parameter in bound:
            bound[self.parameter] = self.text
        inner = self.text[self.text.find("(") + 1:-1] if not self.text.startswith("tensor") else self.text
        for (name, parameter), to in LINKED.items():
            if name != self.schema.name:
                continue
            if self.parameter == to and parameter in bound:
                bound[parameter] = inner
            elif self.parameter == parameter and to in bound:
                bound[to] = f"seq({self.text})"
        adjust = ADJUSTED.get(self.schema.name)
        if adjust is not None:
            adjust(self, bound)
        return bound

    def attributes(self, bound):
        given = {}
        for name, value in ATTRIBUTES.get(self.schema.name, {}).items():
            if name in self.schema.attributes:
                given[name] = value
        if self.schema.name == "Mod" and self.schema.since_version < 28 and any(
                word in self.text for word in ("float", "double")):
            given["fmod"] = 1
        if self.schema.name == "TfIdfVectorizer" and self.text == "tensor(string)":
            del given["pool_int64s"]
            given["pool_strings"] = ["a"]
        if self.schema.name == "DequantizeLinear" and self.text == "tensor(float8e8m0)":
            given["output_dtype"] = TensorProto.FLOAT  # which the scale cannot say
        for (op, parameter), name in OUTPUT_TYPES.items():
            if op == self.schema.name and name in self.schema.attributes:
                given[name] = element_of(bound[parameter]) or element_of(bound[parameter][4:-1])
        if self.schema.name in ("Constant", "ConstantOfShape"):
            code = element_of(bound[self.schema.outputs[0].type_str])
            value = TensorProto(data_type=code, dims=[1])
            if code == TensorProto.STRING:
                value.string_data.append(b"x")
            else:
                value.raw_data = bytes(wide(code))
            given["value"] = value
        for name, attribute in self.schema.attributes.items():
            if attribute.required and name not in given:
                given[name] = {AttributeProto.INT: 1, AttributeProto.INTS: [1], AttributeProto.FLOAT: 1.0,
                               AttributeProto.FLOATS: [1.0], AttributeProto.STRING: "x"}[attribute.type]
        return given

    def model(self):
        bound = self.types()
        inputs, names = [], []
        for i, formal in enumerate(self.schema.inputs):
            optional = formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional
            if optional and not self.wants(formal, i):
                names.append("")
                continue
            text = bound.get(formal.type_str, formal.type_str)
            repeated = formal.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
            for copy in range(2 if repeated else 1):
                names.append(f"in{i}_{copy}")
                inputs.append(helper.make_value_info(names[-1], type_proto(text)))
        while names and names[-1] == "":
            names.pop()
        among_inputs = {formal.type_str for formal in self.schema.inputs}
        outputs = [f"out{i}" for i, formal in enumerate(self.schema.outputs)
                   if formal.option != onnx.defs.OpSchema.FormalParameterOption.Optional or
                   (formal.type_str == self.parameter and self.parameter not in among_inputs)]
        outputs = outputs or ["out0"]
        node = helper.make_node(self.schema.name, names, outputs, name="node", **self.attributes(bound))
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
        return helper.make_model(graph, ir_version=10,
                                 opset_imports=[helper.make_opsetid("", max(self.schema.since_version, LEAST_VERSION))])

    def wants(self, formal, index):
        """Optional inputs are there where their type is in question, or where nodes cannot do without."""
        needed = {"Resize": [2], "Clip": [], "Upsample": [], "Squeeze": [1], "ReduceSum": [1]}.get(self.schema.name, [])
        if self.schema.name == "Attention":  # the past is of keys and values
            return formal.type_str == self.parameter or {formal.type_str, self.parameter} == {"T1", "T2"}
        if self.schema.name == "LinearAttention":
            return True
        return formal.type_str == self.parameter or index in needed


def wide(code):
    """Bytes of one element."""
    if code in (TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64):
        return 8
    if code in (TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32):
        return 4
    if code in (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.INT16, TensorProto.UINT16):
        return 2
    return 1


# Types that go together, which no schema says.

def adjust_bit_cast(case, bound):
    bound["T1"] = bound["T2"] = case.text


def adjust_quantize(case, bound):
    names = {c.type_param_str: c.allowed_type_strs for c in case.schema.type_constraints}
    if "T3" in names and case.schema.name == "QuantizeLinear" and case.parameter != "T3":
        bound["T3"] = "tensor(uint8)"
    if case.schema.name == "QuantizeLinear" and "T3" not in names and case.parameter == "T1":
        bound["T2"] = "tensor(uint8)"
    if case.schema.name == "DequantizeLinear":
        bound["T1" if "T1" in names else "T"] = bound.get(case.parameter, "") if case.parameter in ("T", "T1") else "tensor(uint8)"


def adjust_attention(case, bound):
    """Keys, values and, where they are floats, masks have the queries' type."""
    if "float" in case.text or "double" in case.text:
        bound["T1"] = bound["T2"] = case.text
    if case.parameter != "U":
        bound["U"] = "tensor(bool)"


def adjust_optional(case, bound):
    if case.parameter == "O":
        bound["V"] = case.text[len("optional("):-1]
    elif case.parameter == "V":
        bound["O"] = f"optional({case.text})"


ADJUSTED = {"Attention": adjust_attention, "BitCast": adjust_bit_cast, "QuantizeLinear": adjust_quantize, "DequantizeLinear": adjust_quantize,
            "Optional": adjust_optional, "OptionalGetElement": adjust_optional}


def all_cases(newest):
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda s: (s.name, s.since_version)):
        later = [s.since_version for s in onnx.defs.get_all_schemas_with_history()
                 if s.name == schema.name and s.domain == schema.domain and s.since_version > schema.since_version] \
            if schema.since_version < LEAST_VERSION else []
        if schema.domain != "" or schema.deprecated or schema.since_version > newest or schema.name in BODIES:
            continue
        if schema.since_version < LEAST_VERSION and any(version <= LEAST_VERSION for version in later):
            continue
        parameters = {formal.type_str for formal in list(schema.inputs) + list(schema.outputs)}
        for constraint in schema.type_constraints:
            if constraint.type_param_str in parameters:
                for text in sorted(constraint.allowed_type_strs):
                    if "complex" in text and schema.name != "Identity":
                        continue
                    yield Case(schema, constraint.type_param_str, text)
        if not schema.type_constraints:
            yield Case(schema, "-", "-")


class Exceptions:
    def __init__(self, path):
        self.lines = []
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            words = line.split(None, 4)
            if len(words) < 5:
                sys.exit(f"{path}:{number}: OPERATOR VERSION PARAMETER TYPE REASON")
            self.lines.append((number, words[:4], words[4]))
        self.used = set()

    def find(self, case):
        given = (case.schema.name, str(case.schema.since_version), case.parameter, case.text)
        for number, pattern, reason in self.lines:
            if all(fnmatch.fnmatchcase(text, glob) for text, glob in zip(given, pattern)):
                return number, reason
        return None


def load(samebit, folder, index, case):
    """None, or why the model does not load."""
    path = os.path.join(folder, f"{index}.onnx")
    with open(path, "wb") as file:
        file.write(case.model().SerializeToString())
    done = subprocess.run([samebit, "dump", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False)
    os.unlink(path)
    return None if done.returncode == 0 else done.stderr.strip().replace(path, "model")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("samebit")
    parser.add_argument("exceptions")
    parser.add_argument("--only", default="")
    parser.add_argument("--newest", type=int, default=28)
    options = parser.parse_args()
    cases = [case for case in all_cases(options.newest) if options.only in case.name]
    exceptions, failures, excepted = Exceptions(options.exceptions), 0, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda pair: load(options.samebit, folder, pair[0], pair[1]), enumerate(cases))
        for case, problem in zip(cases, results):
            found = exceptions.find(case)
            if problem is not None and found is not None:
                exceptions.used.add(found[0])
                excepted += 1
            elif problem is not None:
                failures += 1
                print(f"{case.name}: {problem}")
    for number, pattern, reason in exceptions.lines:
        if number not in exceptions.used and not options.only:
            failures += 1
            print(f"{options.exceptions}:{number}: {' '.join(pattern)} is no exception any more: {reason}")
    print(f"{len(cases)} models, {excepted} excepted, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
