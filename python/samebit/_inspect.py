"""Looking inside a model before anything runs."""

import ctypes
import dataclasses
from typing import List, Optional

from ._dtypes import dtype_name
from ._errors import ArgumentTypeError
from ._handles import encoded, text
from ._structures import InspectOptions
from ._values import Tensor


@dataclasses.dataclass(frozen=True)
class InspectedValue:
    """What is known of a value before running."""

    name: str
    fact: str
    """As text: "f32[batch,3,224,224]"; "?" when nothing is known."""
    dtype: Optional[str]
    elements: int
    """Of a tensor whose extents are all known, else -1."""
    constant: Optional[Tensor]
    """The value where it is known before running."""
    producer: int
    """Index of the node that computes it; -1 for inputs and initialisers."""
    initialiser: bool


@dataclasses.dataclass(frozen=True)
class InspectedNode:
    """A node. Inputs and outputs are indices of values of the same graph; -1 where one is omitted."""

    name: str
    op: str
    domain: str
    version: int
    attributes: str
    inputs: tuple
    outputs: tuple
    parameters: int
    flops: Optional[str]
    """Operations a run, as a formula of symbols; None when they are not known."""
    flop_count: int
    """The same when it is a number, else -1."""
    bytes: Optional[str]
    byte_count: int
    kernel: Optional[str]
    """What will compute it: a kernel's name, "reference", "constant"; None while an open extent decides."""
    why: str
    """With "reference": why no kernel takes the node."""
    bodies: dict
    """{name: Inspection} of graphs of its own."""


@dataclasses.dataclass(frozen=True)
class Inspection:
    """A graph as it runs."""

    name: str
    nodes: List[InspectedNode]
    """In the order of execution."""
    values: List[InspectedValue]
    parameters: int
    parameter_bytes: int
    flops: Optional[str]
    flop_count: int


def _value(known, given):
    constant = Tensor(known.sb_tensor_retain(given.constant)) if given.constant else None
    return InspectedValue(text(given.name), text(given.fact), dtype_name(given.dtype), given.elements, constant,
                          given.producer, given.initialiser)


def _node(known, given):
    bodies = {text(given.body_names[i]): _graph(known, given.bodies[i]) for i in range(given.body_count)}
    return InspectedNode(
        text(given.name), text(given.op), text(given.domain), given.version, text(given.attributes),
        tuple(given.inputs[: given.input_count]), tuple(given.outputs[: given.output_count]), given.parameters,
        text(given.flops), given.flop_count, text(given.bytes), given.byte_count, text(given.kernel), text(given.why),
        bodies,
    )


def _graph(known, pointer):
    totals = known.sb_inspection_totals(pointer).contents
    return Inspection(
        text(known.sb_inspection_name(pointer)),
        [_node(known, known.sb_inspection_node(pointer, i).contents)
         for i in range(known.sb_inspection_node_count(pointer))],
        [_value(known, known.sb_inspection_value(pointer, i).contents)
         for i in range(known.sb_inspection_value_count(pointer))],
        totals.parameters, totals.parameter_bytes, text(totals.flops), totals.flop_count,
    )


def inspect(model, symbols):
    """The Inspection of a model's first entry graph, with values for symbols."""
    known = model._library
    names = [encoded(name) for name in symbols]
    try:
        numbers = (ctypes.c_int64 * len(names))(*symbols.values())
    except TypeError as failure:
        raise ArgumentTypeError(f"an extent is no number: {failure}") from None
    options = InspectOptions(ctypes.sizeof(InspectOptions), len(names), (ctypes.c_char_p * len(names))(*names), numbers)
    pointer = ctypes.c_void_p()
    known.call("sb_model_inspect", model.pointer, ctypes.byref(options), ctypes.byref(pointer))
    try:
        return _graph(known, pointer)
    finally:
        known.sb_inspection_release(pointer)
