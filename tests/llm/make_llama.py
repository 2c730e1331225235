"""make_llama.py SHAPE FOLDER: a checkpoint of random bf16 weights in the shape of a Llama, quickly: for what is timed, and for bits.

Weights are a random block's numbers over and over, beginning elsewhere for each tensor. With SHAPE spoiled and a folder of bf16
weights behind FOLDER: a model like that one in which one token, the last, has infinite keys and values in every layer, computed in f16,
or with --bf16 in bf16.
"""

import json
import pathlib
import shutil
import sys

import numpy

# hidden, layers, query heads, key heads, a head's width, between, vocabulary, tied
SHAPES = {
    "llama-1b": (2048, 16, 32, 8, 64, 8192, 128256, True),
    "llama-8b": (4096, 32, 32, 8, 128, 14336, 128256, False),
    "small-64": (512, 2, 8, 2, 64, 1024, 512, True),
    "small-128": (1024, 2, 8, 2, 128, 2048, 512, True),
    "small-96": (768, 2, 8, 8, 96, 1536, 512, True),
}


def write(path, tensors):
    header, at = {}, 0
    for name, (dims, _) in tensors.items():
        size = 2 * int(numpy.prod(dims))
        header[name] = {"dtype": "BF16", "shape": list(dims), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, parts in tensors.values():
            for part in parts:
                file.write(part)


def narrow(numbers):
    return (numbers.astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)


def make(shape, folder):
    hidden, layers, heads, key_heads, width, between, vocabulary, tied = SHAPES[shape]
    random = numpy.random.default_rng(1)
    block = narrow(random.standard_normal(3 << 20) * 0.02)
    ones = narrow(1 + 0.2 * random.standard_normal(hidden))
    tensors = {}

    def add(name, *dims):
        count, begin, parts = int(numpy.prod(dims)), int(random.integers(len(block))), []
        while count > 0:
            parts.append(memoryview(block[begin : begin + count]))
            count -= len(parts[-1])
            begin = 0
        tensors[name] = (dims, parts)

    add("model.embed_tokens.weight", vocabulary, hidden)
    if not tied:
        add("lm_head.weight", vocabulary, hidden)
    tensors["model.norm.weight"] = ((hidden,), [ones])
    for layer in range(layers):
        place = f"model.layers.{layer}."
        add(place + "self_attn.q_proj.weight", heads * width, hidden)
        add(place + "self_attn.k_proj.weight", key_heads * width, hidden)
        add(place + "self_attn.v_proj.weight", key_heads * width, hidden)
        add(place + "self_attn.o_proj.weight", hidden, heads * width)
        add(place + "mlp.gate_proj.weight", between, hidden)
        add(place + "mlp.up_proj.weight", between, hidden)
        add(place + "mlp.down_proj.weight", hidden, between)
        tensors[place + "input_layernorm.weight"] = ((hidden,), [ones])
        tensors[place + "post_attention_layernorm.weight"] = ((hidden,), [ones])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": key_heads, "head_dim": width, "intermediate_size": between, "vocab_size": vocabulary,
        "tie_word_embeddings": tied, "max_position_embeddings": 131072, "rope_theta": 500000.0, "rms_norm_eps": 1e-5,
        "bos_token_id": 0, "eos_token_id": 1}))
    write(folder / "model.safetensors", tensors)


def spoil(folder, of):
    """Coordinate 0 of the residual stream is zero for all tokens but the last, in every layer; what norms, keys and values multiply it
    by overflows."""
    shutil.copytree(of, folder, dirs_exist_ok=True)
    raw = (of / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, about in json.loads(raw[8:begin]).items():
        if name == "__metadata__":
            continue
        assert about["dtype"] == "BF16", name
        first, end = about["data_offsets"]
        numbers = numpy.frombuffer(raw[begin + first : begin + end], numpy.uint16).copy().reshape(about["shape"])
        if name.endswith("embed_tokens.weight"):
            numbers[:, 0] = 0
            numbers[-1, 0] = narrow(numpy.float32([100]))[0]
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            numbers[0] = 0
        elif name.endswith("input_layernorm.weight"):
            numbers[0] = narrow(numpy.float32([60000]))[0]
        elif name.endswith(("k_proj.weight", "v_proj.weight")):
            numbers[:, 0] = narrow(numpy.where(numpy.arange(len(numbers)) % 2, -1, 1) * numpy.float32(2.0 ** (120 if "--bf16" in sys.argv else 3)))
        tensors[name] = (numbers.shape, [numbers])
    write(folder / "model.safetensors", tensors)


if __name__ == "__main__":
    if sys.argv[1] == "spoiled":
        spoil(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        make(sys.argv[1], pathlib.Path(sys.argv[2]))
