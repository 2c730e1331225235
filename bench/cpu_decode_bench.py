#!/usr/bin/env python3
"""Time a language model of random bf16 weights on this machine's CPU beside llama.cpp, and its prompts beside the 16-bit chain.

    python cpu_decode_bench.py --build BUILD --models CACHE_FOLDER [--model llama-1b] [--threads N] [--only REGEX] [--rounds 5]

A line a case:

    bench cpu-decode/MODEL/bSEQUENCES/cCONTEXT samebit=… peer=… unit=tok/s ratio=SAMEBIT/PEER read=GB/s share=…
    bench cpu-prefill/MODEL/TOKENS samebit=… peer=… unit=tok/s ratio=SAMEBIT/PEER wall=… llama=…

Decoding: new tokens a second of all sequences together, each behind CONTEXT others; the peer is llama.cpp by the package
llama-cpp-python, built for this processor, on the same GGUF file. With one sequence, `read` is how fast the weights went by, and
`share` that over what as many threads read of memory in plain loads, in turn with the others. Prompts: the peer is the chain
itself, the rate at which `chain16_bench` on as many cores would do the model's matrix products, since no other engine computes
these bits; both are in processor time, `wall` is ours by the clock on the wall and `llama` llama.cpp's.

Both sides run in this process, on as many threads, and take turns; medians are told. What the two make of the same prompt is
compared: the likeliest tokens by llama.cpp's logits must be near the top of ours.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import gguf
import llama_cpp
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import samebit  # noqa: E402
import samebit.llm  # noqa: E402

# Shapes: of Llama-3.2-1B whole; of Llama-3.1-8B with real widths and as many layers as small machines have memory for.
SHAPES = {
    "llama-1b": {"hidden": 2048, "layers": 16, "heads": 32, "key_heads": 8, "width": 64, "between": 8192, "vocabulary": 128256,
                 "tied": True},
    "llama-8b-4-layers": {"hidden": 4096, "layers": 4, "heads": 32, "key_heads": 8, "width": 128, "between": 14336,
                          "vocabulary": 128256, "tied": False},
    "small": {"hidden": 512, "layers": 4, "heads": 8, "key_heads": 4, "width": 64, "between": 1024, "vocabulary": 32000,
              "tied": True},
}
DECODE = [(1, 64), (1, 512), (1, 2048), (4, 64)]
PROMPTS = [128, 512]
PAUSE = 0.3  # seconds, in which threads of the side before stop spinning


# -- The checkpoint --------------------------------------------------------------------------------


def matrices(shape):
    """Names as GGUF has them, with rows and columns of the products of a token."""
    hidden, queries, keys = shape["hidden"], shape["heads"] * shape["width"], shape["key_heads"] * shape["width"]
    for layer in range(shape["layers"]):
        for name, rows, columns in (("attn_q", queries, hidden), ("attn_k", keys, hidden), ("attn_v", keys, hidden),
                                    ("attn_output", hidden, queries), ("ffn_gate", shape["between"], hidden),
                                    ("ffn_up", shape["between"], hidden), ("ffn_down", hidden, shape["between"])):
            yield f"blk.{layer}.{name}.weight", rows, columns


def write_checkpoint(path, shape):
    random = numpy.random.default_rng(1)
    writer = gguf.GGUFWriter(path.with_suffix(".partial"), "llama")
    writer.add_block_count(shape["layers"])
    writer.add_context_length(8192)
    writer.add_embedding_length(shape["hidden"])
    writer.add_feed_forward_length(shape["between"])
    writer.add_head_count(shape["heads"])
    writer.add_head_count_kv(shape["key_heads"])
    writer.add_rope_dimension_count(shape["width"])
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape["vocabulary"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    writer.add_tokenizer_model("no_vocab")

    def add(name, rows, columns):
        numbers = random.standard_normal((rows, columns), dtype=numpy.float32) * numpy.float32(0.02)
        halves = (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16)
        writer.add_tensor(name, halves.view(numpy.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)

    def add_norm(name):
        writer.add_tensor(name, numpy.ones(shape["hidden"], numpy.float32))

    add("token_embd.weight", shape["vocabulary"], shape["hidden"])
    if not shape["tied"]:
        add("output.weight", shape["vocabulary"], shape["hidden"])
    add_norm("output_norm.weight")
    for name, rows, columns in matrices(shape):
        add(name, rows, columns)
    for layer in range(shape["layers"]):
        add_norm(f"blk.{layer}.attn_norm.weight")
        add_norm(f"blk.{layer}.ffn_norm.weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    path.with_suffix(".partial").rename(path)


def prompt_of(shape, length, sequence=0):
    """Fixed tokens; each sequence's begin differently, since equal beginnings are run once."""
    return [(sequence * 7919 + i + 1) * 2654435761 % (1 << 32) % shape["vocabulary"] for i in range(length)]


# -- What the machine can do -----------------------------------------------------------------------


def chain_rate(build, threads):
    """GMAC/s of `threads` copies of chain16_bench together, each on a core of its own."""
    command = [str(build / "bench" / "chain16_bench"), "--isa", best_isa(build)]
    cores = sorted(os.sched_getaffinity(0))
    runs = [subprocess.Popen(["taskset", "-c", str(cores[i]), *command], stdout=subprocess.PIPE, text=True)
            for i in range(threads)]
    return sum(float(re.search(r"samebit=([0-9.]+)", run.communicate()[0]).group(1)) for run in runs)


def best_isa(build):
    for name in ("avx512", "avx2", "scalar"):
        run = subprocess.run([str(build / "bench" / "chain16_bench"), "--isa", name], stdout=subprocess.PIPE, text=True)
        if "samebit=" in run.stdout:
            return name
    sys.exit(f"{build}/bench/chain16_bench times nothing here")


def read_rate(build, threads):
    """GB/s that `threads` threads read of memory in plain loads."""
    run = subprocess.run([str(build / "bench" / "read_bench"), str(threads)], stdout=subprocess.PIPE, text=True, check=True)
    return float(re.search(r"samebit=([0-9.]+)", run.stdout).group(1))


# -- The sides -------------------------------------------------------------------------------------


class Samebit:
    def __init__(self, path, shape, threads, context):
        self.shape, self.threads = shape, threads
        self.model = samebit.llm.load(path, threads=threads, context=context)
        self.sequence = self.model.sequence()

    def prefill(self, length):
        """Tokens a second of processor time, as chain16_bench takes it: that of this thread, which takes part in everything, or of
        all threads in the mean, whichever is more. `wall` is by the clock on the wall."""
        self.sequence.trim(0)
        begin = time.thread_time(), time.process_time()
        made = self.sequence.generate(prompt_of(self.shape, length), 1, ignore_stops=True, digest=False)
        self.wall = length / made.prompt_seconds
        return length / max(time.thread_time() - begin[0], (time.process_time() - begin[1]) / self.threads)

    def decode(self, sequences, context, count):
        if sequences == 1:
            prompt = prompt_of(self.shape, context)
            if len(self.sequence) < context:  # it begins as each prompt does: what is there stays
                self.sequence.step(prompt[len(self.sequence):])
            self.sequence.trim(context - 1)
            made = self.sequence.generate(prompt[-1:], count, ignore_stops=True, digest=False)
            self.sequence.trim(context)
            return (count - 1) / made.decode_seconds
        prompts = [prompt_of(self.shape, context, i) for i in range(sequences)]
        took = []
        for new in (1, count):
            start = time.perf_counter()
            self.model.generate_many(prompts, new, parallel=sequences, ignore_stops=True)
            took.append(time.perf_counter() - start)
        return sequences * (count - 1) / (took[1] - took[0])

    def logits(self, length):
        return numpy.asarray(self.model.logits(prompt_of(self.shape, length))).reshape(-1)


class Llama:
    def __init__(self, path, shape, threads, context, sequences):
        llama_cpp.llama_backend_init()
        silence = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(silence, ctypes.c_void_p(0))
        self.kept = silence
        self.shape = shape
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), llama_cpp.llama_model_default_params())
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_seq_max = context * sequences, sequences
        options.n_batch = context * sequences
        options.n_threads = options.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, options)
        if not self.context:
            sys.exit(f"llama.cpp cannot run {path}")
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.batch = llama_cpp.llama_batch_init(context * sequences, 0, 1)
        self.there = None  # sequences and positions of each that the cache has from a case of decoding

    def run(self, rows):
        """rows: (token, position, sequence, whether its logits are wanted)."""
        for i, (token, position, sequence, wanted) in enumerate(rows):
            self.batch.token[i], self.batch.pos[i] = token, position
            self.batch.n_seq_id[i], self.batch.seq_id[i][0], self.batch.logits[i] = 1, sequence, wanted
        self.batch.n_tokens = len(rows)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            sys.exit("llama.cpp cannot run a step")
        llama_cpp.llama_synchronize(self.context)

    def logits_at(self, row):
        return numpy.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, row), (self.shape["vocabulary"],))

    def read(self, length, sequences=1):
        """Prompts of all sequences; their last tokens' rows."""
        self.there = None
        llama_cpp.llama_memory_clear(self.memory, True)
        rows = [(token, i, s, i == length - 1) for s in range(sequences)
                for i, token in enumerate(prompt_of(self.shape, length, s))]
        self.run(rows)
        return [length * (s + 1) - 1 for s in range(sequences)]

    def prefill(self, length):
        start = time.perf_counter()
        self.read(length)
        return length / (time.perf_counter() - start)

    def decode(self, sequences, context, count):
        if self.there != (sequences, context):
            self.read(context, sequences)
            self.there = sequences, context
        llama_cpp.llama_memory_seq_rm(self.memory, -1, context - 1, -1)
        self.run([(prompt_of(self.shape, context, s)[-1], context - 1, s, True) for s in range(sequences)])
        tokens = [int(self.logits_at(s).argmax()) for s in range(sequences)]
        start = time.perf_counter()
        for step in range(count - 1):
            self.run([(token, context + step, s, True) for s, token in enumerate(tokens)])
            tokens = [int(self.logits_at(s).argmax()) for s in range(sequences)]
        return sequences * (count - 1) / (time.perf_counter() - start)

    def logits(self, length):
        return self.logits_at(self.read(length)[0]).copy()


# -- Measuring -------------------------------------------------------------------------------------


def check_alike(ours, theirs):
    """Both have the weights at their places: logits of random models are far from each other otherwise."""
    first, second = ours.logits(24), theirs.logits(24)
    correlation = float(numpy.corrcoef(first, second)[0, 1])
    if not correlation > 0.99:
        sys.exit(f"logits of both sides correlate by {correlation:.4f} only: one of them runs another model")
    print(f"# logits correlate by {correlation:.6f}", flush=True)


def in_turns(rounds, *runs):
    """Medians of what each gives."""
    found = [[] for _ in runs]
    for round_ in range(rounds + 1):
        for of, run in zip(found, runs):
            time.sleep(PAUSE)
            rate = run()
            if round_ > 0:
                of.append(rate)
    return [statistics.median(of) for of in found]


def processor():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    return re.search(r"model name\s*: (.*)", text).group(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=pathlib.Path, help="a build with bench/chain16_bench and bench/read_bench")
    parser.add_argument("--models", required=True, type=pathlib.Path, help="where checkpoints are kept")
    parser.add_argument("--model", default="llama-1b", choices=SHAPES)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="all processors by default")
    parser.add_argument("--only", default="", help="cases whose name it matches")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=32, help="new tokens of a case")
    parser.add_argument("--no-peer", action="store_true", help="leave llama.cpp out")
    parser.add_argument("--json", type=pathlib.Path, help="everything, as JSON")
    arguments = parser.parse_args()
    shape, name, threads = SHAPES[arguments.model], arguments.model, arguments.threads
    path = arguments.models / f"{name}.gguf"
    if not path.exists():
        arguments.models.mkdir(parents=True, exist_ok=True)
        write_checkpoint(path, shape)
    decode = [case for case in DECODE if re.search(arguments.only, f"cpu-decode/{name}/b{case[0]}/c{case[1]}")]
    prompts = [length for length in PROMPTS if re.search(arguments.only, f"cpu-prefill/{name}/{length}")]
    context = max([c + arguments.count for _, c in decode] + prompts + [64])
    samebit.open_library(arguments.build / "src" / "libsamebit.so")
    ours = Samebit(path, shape, threads, context)
    theirs = None
    if not arguments.no_peer:
        theirs = Llama(path, shape, threads, context, max([s for s, _ in decode] + [1]))
        print(f"# llama.cpp: {llama_cpp.llama_print_system_info().decode()}", flush=True)
        check_alike(ours, theirs)
    in_layers = sum(rows * columns for _, rows, columns in matrices(shape))
    head = shape["vocabulary"] * shape["hidden"]
    print(f"# {processor()}, {threads} threads, {time.strftime('%Y-%m-%d', time.gmtime())}", flush=True)
    results = []

    def tell(line, **values):
        print(line, flush=True)
        results.append(values)

    for sequences, length in decode:
        case = f"cpu-decode/{name}/b{sequences}/c{length}"
        runs = [lambda side=side: side.decode(sequences, length, arguments.count) for side in (ours, theirs) if side]
        runs.append(lambda: read_rate(arguments.build, threads))
        rates = in_turns(arguments.rounds, *runs)
        text = f"bench {case} samebit={rates[0]:.2f}"
        if theirs:
            text += f" peer={rates[1]:.2f} unit=tok/s ratio={rates[0] / rates[1]:.2f}"
        if sequences == 1:
            read = rates[0] * 2 * (in_layers + head) / 1e9
            text += f" read={read:.1f} share={read / rates[-1]:.2f}"
        tell(text, case=case, samebit=rates[0], peer=rates[1] if theirs else None)
    for length in prompts:
        case = f"cpu-prefill/{name}/{length}"
        chain = lambda: chain_rate(arguments.build, threads) * 1e9 / (in_layers + head / length)  # noqa: E731
        runs = [lambda: ours.prefill(length), chain] + ([lambda: theirs.prefill(length)] if theirs else [])
        rates = in_turns(arguments.rounds, *runs)
        text = f"bench {case} samebit={rates[0]:.2f} peer={rates[1]:.2f} unit=tok/s ratio={rates[0] / rates[1]:.2f}"
        text += f" wall={ours.wall:.2f}"
        if theirs:
            text += f" llama={rates[2]:.2f}"
        tell(text, case=case, samebit=rates[0], peer=rates[1], llama=rates[2] if theirs else None)
    if arguments.json:
        arguments.json.write_text(json.dumps({"processor": processor(), "threads": threads, "cases": results}, indent=1))


if __name__ == "__main__":
    main()
