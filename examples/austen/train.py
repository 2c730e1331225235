#!/usr/bin/env python3
"""Train the language model on what tokenize_novels.py wrote, for some seconds, and write it as a folder of Hugging Face's.

    python train.py data model --seconds 70 --dropout 0.2

Schedules go by the time that has passed, so that a run ends well whenever it has to. Seeds and the order of the data are fixed;
how many steps fit into the time is not, and a GPU's sums are not either, so the committed files are the ones that count.
The folder is written whole or not at all, whenever the held-out text has become more probable than ever before.
"""

import time

BEGIN = time.monotonic()  # before PyTorch is loaded, which takes seconds too

import argparse
import json
import math
import os
import pathlib
import shutil
import struct

import numpy
import torch
import torch.nn.functional as F

SEED = 1775
WINDOW = 512
EPSILON = 1e-6
BASE = 10000.0


def rotation(positions, width):
    """The cosines and sines of the rotary embedding, [2, positions, width], both halves of a row alike."""
    frequencies = 1.0 / BASE ** (torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(positions, dtype=torch.float32), frequencies)
    angles = torch.cat([angles, angles], 1)
    return torch.stack([angles.cos(), angles.sin()])


def rotated(x, cosines, sines):
    a, b = x.chunk(2, -1)
    return x * cosines + torch.cat([-b, a], -1) * sines


def shared(x, q):
    """Keys or values with as many heads as queries have: several in a row share one."""
    rows, heads, length, width = x.shape
    return x[:, :, None].expand(rows, heads, q.shape[1] // heads, length, width).reshape(q.shape)


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x.float(), self.weight.shape, self.weight, EPSILON).to(x.dtype)


class Attention(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        width, head = shape.width, shape.head_width
        self.q_proj = torch.nn.Linear(width, shape.heads * head, bias=False)
        self.k_proj = torch.nn.Linear(width, shape.key_heads * head, bias=False)
        self.v_proj = torch.nn.Linear(width, shape.key_heads * head, bias=False)
        self.o_proj = torch.nn.Linear(shape.heads * head, width, bias=False)
        self.q_norm = Norm(head)
        self.k_norm = Norm(head)

    def forward(self, x, cosines, sines):
        rows, length, _ = x.shape
        head = self.shape.head_width
        q = self.q_norm(self.q_proj(x).view(rows, length, -1, head)).transpose(1, 2)
        k = self.k_norm(self.k_proj(x).view(rows, length, -1, head)).transpose(1, 2)
        v = self.v_proj(x).view(rows, length, -1, head).transpose(1, 2)
        q, k = rotated(q, cosines, sines).to(v.dtype), rotated(k, cosines, sines).to(v.dtype)
        y = F.scaled_dot_product_attention(q, shared(k, q), shared(v, q), is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(rows, length, -1))


class Mlp(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.gate_proj = torch.nn.Linear(shape.width, shape.inner, bias=False)
        self.up_proj = torch.nn.Linear(shape.width, shape.inner, bias=False)
        self.down_proj = torch.nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x):
        y = F.silu(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(F.dropout(y, self.shape.dropout, self.training))


class Layer(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.dropout = shape.dropout
        self.input_layernorm = Norm(shape.width)
        self.self_attn = Attention(shape)
        self.post_attention_layernorm = Norm(shape.width)
        self.mlp = Mlp(shape)

    def forward(self, x, cosines, sines):
        y = self.self_attn(self.input_layernorm(x), cosines, sines)
        x = x + F.dropout(y, self.dropout, self.training)
        return x + F.dropout(self.mlp(self.post_attention_layernorm(x)), self.dropout, self.training)


class Model(torch.nn.Module):
    """Qwen 3's network, with names of weights as Hugging Face has them (behind "model."); the head is the embedding."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.embed_tokens = torch.nn.Embedding(shape.vocabulary, shape.width)
        self.layers = torch.nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width)
        self.register_buffer("rotation", rotation(WINDOW, shape.head_width), persistent=False)
        for name, weight in self.named_parameters():
            if weight.ndim == 2:
                ends = name.endswith(("o_proj.weight", "down_proj.weight"))
                deviation = 0.02 if "embed" in name else 0.7 * weight.shape[1] ** -0.5
                torch.nn.init.normal_(weight, std=deviation / math.sqrt(2 * shape.layers) if ends else deviation)

    def forward(self, tokens):
        """Logits [rows, length, vocabulary] of tokens [rows, length]."""
        cosines, sines = self.rotation[:, : tokens.shape[1]]
        x = F.dropout(self.embed_tokens(tokens), self.shape.dropout, self.training)
        for layer in self.layers:
            x = layer(x, cosines, sines)
        return F.linear(self.norm(x), self.embed_tokens.weight)


def rounded(model):
    """The model with its weights as they are saved, in bf16, to compute with in f32."""
    copy = Model(model.shape).to(next(model.parameters()).device)
    copy.load_state_dict({name: weight.bfloat16().float() for name, weight in model.state_dict().items()})
    return copy.eval()


@torch.no_grad()
def log_probabilities(model, tokens, window=WINDOW):
    """The natural logarithms of the probabilities of tokens, cut into windows that know nothing of each other.

    A window's first token follows nothing and has none. In f32 without any shortcut."""
    logs = []
    for first in range(0, len(tokens), 16 * window):
        chosen = tokens[first : first + 16 * window]
        whole = len(chosen) // window * window
        parts = [chosen[:whole].view(-1, window)] if whole else []
        parts += [chosen[whole:].view(1, -1)] if len(chosen) - whole > 1 else []
        for part in parts:
            logits = model(part).float()[:, :-1]
            logs.append(-F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), reduction="none"))
    return torch.cat(logs).double()


def perplexity(model, tokens):
    return math.exp(-log_probabilities(model, tokens).mean().item())


def save_safetensors(tensors, path):
    """bf16 tensors as a safetensors file: the header's length, the header in JSON, the numbers, little-endian."""
    header, offset, parts = {"__metadata__": {"format": "pt"}}, 0, []
    for name, tensor in sorted(tensors.items()):
        data = tensor.detach().bfloat16().cpu().contiguous().view(torch.int16).numpy().astype("<i2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def load_safetensors(path):
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, end = entry["data_offsets"]
            bits = numpy.frombuffer(data[start + first : start + end], "<i2").copy()
            tensors[name] = torch.from_numpy(bits).view(torch.bfloat16).view(entry["shape"])
    return tensors


def configuration(shape):
    return {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "vocab_size": shape.vocabulary,
            "hidden_size": shape.width, "intermediate_size": shape.inner, "num_hidden_layers": shape.layers,
            "num_attention_heads": shape.heads, "num_key_value_heads": shape.key_heads, "head_dim": shape.head_width,
            "hidden_act": "silu", "max_position_embeddings": WINDOW, "rms_norm_eps": EPSILON, "rope_theta": BASE,
            "attention_bias": False, "attention_dropout": 0.0, "use_sliding_window": False, "tie_word_embeddings": True,
            "initializer_range": 0.02, "bos_token_id": 0, "eos_token_id": 0, "torch_dtype": "bfloat16", "use_cache": True}


def save(model, data, out):
    """The folder `out`, which is there whole or as it was before."""
    whole, before = out.with_name(out.name + ".new"), out.with_name(out.name + ".old")
    for folder in (whole, before):
        shutil.rmtree(folder, ignore_errors=True)
    whole.mkdir(parents=True)
    save_safetensors({"model." + name: weight for name, weight in model.state_dict().items()}, whole / "model.safetensors")
    for name, value in [("config.json", configuration(model.shape)),
                        ("generation_config.json", {"bos_token_id": 0, "eos_token_id": 0})]:
        (whole / name).write_text(json.dumps(value, indent=2) + "\n")
    shutil.copy(data / "tokenizer.json", whole / "tokenizer.json")
    if out.exists():
        os.rename(out, before)
    os.rename(whole, out)
    shutil.rmtree(before, ignore_errors=True)


def optimizer_of(model, options):
    decayed = [weight for weight in model.parameters() if weight.ndim == 2]
    others = [weight for weight in model.parameters() if weight.ndim != 2]
    groups = [{"params": decayed, "weight_decay": options.decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options.rate, betas=(0.9, 0.97), eps=1e-9, fused=True)


def train(model, training, heldout, options):
    device = training.device
    generator = torch.Generator().manual_seed(SEED)
    optimizer = optimizer_of(model, options)
    span = options.window + 1
    begin, step, evaluated, best = time.monotonic(), 0, 0, math.inf
    seconds = options.seconds - (begin - BEGIN)
    loss_sum = torch.zeros((), device=device)
    losses = 0
    while True:
        elapsed = time.monotonic() - begin
        epochs = step * options.batch * options.window / len(training)
        progress = max(elapsed / seconds, epochs / options.epochs)
        if progress >= (evaluated + 1) / options.evaluations or progress >= 1:
            evaluated = int(progress * options.evaluations)
            held = perplexity(rounded(model), heldout)
            print(f"{elapsed:.1f} s, step {step}, {epochs:.1f} epochs: training loss {loss_sum.item() / max(losses, 1):.4f}, "
                  f"held-out perplexity {held:.3f}", flush=True)
            loss_sum.zero_()
            losses = 0
            if held < best:
                best = held
                save(model, options.data, options.out)
            if progress >= 1:
                return
        rate = options.rate * min(progress / 0.03, 0.5 + 0.5 * math.cos(math.pi * min(progress, 1)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        first = torch.randint(len(training) - span + 1, (options.batch, 1), generator=generator)
        chosen = training[(first + torch.arange(span)).to(device, non_blocking=True)]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(chosen[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), chosen[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss_sum += loss.detach()
        losses += 1
        step += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="what tokenize_novels.py wrote")
    parser.add_argument("out", type=pathlib.Path, help="the folder of the model")
    parser.add_argument("--seconds", type=float, default=70, help="how long to train, from the start of this script on")
    parser.add_argument("--epochs", type=float, default=1000, help="the most times that the text is gone through")
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--decay", type=float, default=0.1, help="AdamW's weight decay")
    parser.add_argument("--rate", type=float, default=3e-3, help="AdamW's highest learning rate")
    parser.add_argument("--batch", type=int, default=32, help="windows in a step")
    parser.add_argument("--window", type=int, default=WINDOW, help="tokens in a window")
    parser.add_argument("--evaluations", type=int, default=14, help="how often the held-out text is looked at")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--key-heads", type=int, default=2)
    parser.add_argument("--head-width", type=int, default=64)
    parser.add_argument("--inner", type=int, default=448, help="the width inside an MLP")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    device = torch.device(options.device)

    def tokens(name):
        return torch.from_numpy(numpy.load(options.data / f"{name}.npy").astype(numpy.int64)).to(device)

    training, heldout, text = tokens("training"), tokens("heldout"), tokens("text")
    options.vocabulary = len(json.loads((options.data / "tokenizer.json").read_text())["model"]["vocab"])
    model = Model(options).to(device)
    print(f"{sum(weight.numel() for weight in model.parameters())} parameters, {len(training)} tokens, "
          f"PyTorch {torch.__version__}, {vars(options)}", flush=True)
    train(model, training, heldout, options)

    saved = load_safetensors(options.out / "model.safetensors")
    best = Model(options).to(device).eval()
    best.load_state_dict({name.removeprefix("model."): weight.float() for name, weight in saved.items()})
    result = {"heldout_perplexity": perplexity(best, heldout), "text_perplexity": perplexity(best, text),
              "text_tokens": len(text), "window": WINDOW, "parameters": sum(w.numel() for w in best.parameters())}
    print(json.dumps(result), flush=True)
    options.out.with_name(options.out.name + ".json").write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
