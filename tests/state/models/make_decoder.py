#!/usr/bin/env python3
"""Export a decoder of a language model, with random weights, by torch.onnx: one of a cache that each run makes longer.

    python make_decoder.py FILE.onnx [--exporter torchscript|dynamo] [--layers N --width N --heads N --vocabulary N]

Inputs: ids s64[1,tokens], and for each layer past_key_I and past_value_I [1,heads,past,width/heads]. Outputs: logits
[1,tokens,vocabulary], and present_key_I and present_value_I, which are the past with the tokens' keys and values behind
it. The defaults make the tests' models; GPT-2's size is --layers 12 --width 768 --heads 12 --vocabulary 50257
--positions 4096. What the exporter writes is left as it is; --without-traces drops the metadata of nodes, which name files
of the machine.

Needs torch, and for the dynamo exporter onnx and onnxscript.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past_key, past_value):
        batch, tokens, width = x.shape
        query, key, value = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.mix(self.before(x)).split(self.width, dim=2)
        )
        key, value = torch.cat((past_key, key), dim=2), torch.cat((past_value, value), dim=2)
        length = key.shape[2]
        mask = torch.arange(length - tokens, length)[:, None] >= torch.arange(length)[None, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask.to(x.device))
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.behind(x)), approximate="tanh")), key, value


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, positions):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, *past):
        begin = past[0].shape[2]
        x = self.tokens(ids) + self.positions(torch.arange(begin, begin + ids.shape[1], device=ids.device))
        present = []
        for i, block in enumerate(self.blocks):
            x, key, value = block(x, past[2 * i], past[2 * i + 1])
            present += [key, value]
        return functional.linear(self.norm(x), self.tokens.weight), *present


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--exporter", choices=("torchscript", "dynamo"), default="dynamo")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=31)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--dtype", choices=("f32", "f16", "bf16"), default="f32")
    parser.add_argument("--without-traces", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(1)
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[given.dtype]
    sizes = (given.layers, given.width, given.heads, given.vocabulary, given.positions)
    model = Decoder(*sizes).eval().to(dtype)
    shape = (1, given.heads, 5, given.width // given.heads)
    past = tuple(torch.randn(shape).to(dtype) for _ in range(2 * given.layers))
    ids = torch.randint(0, given.vocabulary, (1, 3))
    pairs = [f"{kind}_{i}" for i in range(given.layers) for kind in ("key", "value")]
    names = {
        "input_names": ["ids"] + [f"past_{pair}" for pair in pairs],
        "output_names": ["logits"] + [f"present_{pair}" for pair in pairs],
    }
    if given.exporter == "torchscript":
        axes = {"ids": {1: "tokens"}} | {f"past_{pair}": {2: "past"} for pair in pairs}
        torch.onnx.export(
            model, (ids, *past), given.file, dynamic_axes=axes, dynamo=False, opset_version=17, **names
        )
    else:
        tokens = torch.export.Dim("tokens", min=1, max=1024)
        length = torch.export.Dim("past", min=0, max=given.positions - 1)
        shapes = ({1: tokens}, tuple({2: length} for _ in past))
        torch.onnx.export(
            model, (ids, *past), given.file, dynamic_shapes=shapes, dynamo=True, external_data=False, **names
        )
    if given.without_traces:
        drop_traces(given.file)


def drop_traces(file):
    import onnx

    model = onnx.load(file)
    for items in (model.graph.node, model.graph.value_info, model.graph.input, model.graph.output):
        for item in items:
            del item.metadata_props[:]
    del model.graph.metadata_props[:]
    onnx.save(model, file)


main()
