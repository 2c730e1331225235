"""Language models from Python, on the small ones that tests/llm has written: prompts, streams, logits, scores, perplexity,
tokenizers, chat templates, threads."""
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

try:
    import numpy as np
except ImportError:
    raise unittest.SkipTest("numpy is not installed") from None

import samebit
from samebit import _sequence, llm

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ["SAMEBIT_TEST_LLM"])
COMMAND = os.environ["SAMEBIT_TEST_COMMAND"]
TOKENS = [1, 50, 7, 23, 88, 4, 61, 12, 30]


def command(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = llm.load(MODELS / "llama-text", threads=1)

    def test_description(self):
        about = self.model.description
        self.assertEqual((about.family, about.format, about.dtype, about.vocabulary, about.begin),
                         ("Llama", "safetensors", "bf16", 97, 1))
        self.assertEqual(about.stops, (2, 3))
        said = command("info", MODELS / "llama-text", "--json")
        for name in ("layers", "hidden", "heads", "key_heads", "head_width", "intermediate", "window", "windowed_layers",
                     "declared_positions", "context", "parameters", "weight_bytes", "cache_bytes"):
            self.assertEqual(getattr(about, name), said[name], name)
        self.assertIn("Llama", repr(self.model))

    def test_generate_is_the_command(self):
        for settings, options in (({}, ()), ({"temperature": 0.75, "top_k": 20, "top_p": 0.875, "min_p": 0.0625, "seed": 5, "request": 2},
                                             ("--temperature", 0.75, "--top-k", 20, "--top-p", 0.875, "--min-p", 0.0625,
                                              "--seed", 5, "--request", 2)),
                                  ({"repetition_penalty": 1.5, "presence_penalty": 0.25, "frequency_penalty": -0.5,
                                    "logit_bias": {70: float("-inf"), 40: 1.5}},
                                   ("--repetition-penalty", 1.5, "--presence-penalty", 0.25, "--frequency-penalty", -0.5,
                                    "--logit-bias", "40=1.5", "--logit-bias", "70=-inf"))):
            made = self.model.generate("Hi ", 9, ignore_stops=True, **settings)
            said = command("generate", MODELS / "llama-text", "-p", "Hi ", "--count", 9, "--ignore-stops", "--json",
                           "--logprobs", *options)
            self.assertEqual((made.digest, made.text, made.end), (said["digest"], said["text"], said["end"]))
            self.assertEqual(made.tokens, [token["token"] for token in said["tokens"]])
            self.assertEqual(np.float32(made.logps).tolist(), np.float32([token["logp"] for token in said["tokens"]]).tolist())
            self.assertEqual(made.prompt_tokens, 4)
            self.assertGreater(made.decode_seconds, 0)

    def test_many(self):
        prompts = ["Hi there, hi there, hi", TOKENS, {"prompt": "Hi there, hi there, hi there", "temperature": 1.5, "seed": 3, "count": 4},
                   [{"role": "user", "content": "Hi"}]] + ["Hi there, hi"] * 3
        self.model.chat_template  # a conversation needs a date
        prompts[3] = self.model.encode(prompts[3], date=datetime.date(2026, 2, 28))
        for parallel, pages in ((1, 0), (3, 0), (16, 0), (2, 6)):
            made = self.model.generate_many(prompts, 7, parallel=parallel, pages=pages, ignore_stops=True)
            self.assertEqual(len(made), len(prompts))
            for found, prompt in zip(made, prompts):
                own = dict(prompt) if isinstance(prompt, dict) else {"prompt": prompt}
                alone = self.model.generate(own.pop("prompt"), own.pop("count", 7), ignore_stops=True, **own)
                self.assertEqual((found.digest, found.tokens, found.logps, found.text, found.end),
                                 (alone.digest, alone.tokens, alone.logps, alone.text, alone.end))
        without = self.model.generate_many(prompts, 7, ignore_stops=True, digest=False)
        self.assertEqual([(a.digest, a.tokens, a.logps) for a in without], [("", a.tokens, a.logps) for a in made])
        self.assertEqual(self.model.generate_many([]), [])
        with self.assertRaisesRegex(samebit.LimitError, "prompt 1: "):
            self.model.generate_many([TOKENS, TOKENS * 100])
        with self.assertRaisesRegex(samebit.ArgumentError, "prompt 1: token 0"):
            self.model.generate_many([TOKENS, [97]])
        with self.assertRaisesRegex(samebit.ArgumentError, 'prompt 0 is a dict without "prompt"'):
            self.model.generate_many([{"text": "Hi"}])
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "prompt 0: .*colour"):
            self.model.generate_many([{"prompt": "Hi", "colour": 1}])
        with self.assertRaisesRegex(samebit.ArgumentError, "0 prompts at a time"):
            self.model.generate_many([TOKENS], parallel=0)

    def test_embeddings(self):
        model = llm.load(MODELS / "llama-text", threads=1, hidden_states=True)
        rows = model.embed(TOKENS, None)
        self.assertEqual((rows.shape, rows.dtype), ((len(TOKENS), model.description.hidden), np.float32))
        self.assertEqual(model.embed(TOKENS, "last").tobytes(), rows[-1].tobytes())
        total = np.zeros(model.description.hidden)
        for row in rows:
            total += row.astype(np.float64)
        self.assertEqual(model.embed(TOKENS).tobytes(), (total / len(TOKENS)).astype(np.float32).tobytes())
        self.assertEqual(model.embed(TOKENS, None, wanted=[1, 4]).tobytes(), rows[[1, 4]].tobytes())
        sequence = model.sequence()
        self.assertEqual(sequence.embed(TOKENS[:4], None).tobytes(), rows[:4].tobytes())
        self.assertEqual(sequence.embed(TOKENS[4:], None, chunk=2).tobytes(), rows[4:].tobytes())
        self.assertEqual(model.generate(TOKENS, 5).digest, self.model.generate(TOKENS, 5).digest)
        quick = model.generate(TOKENS, 5, digest=False)
        self.assertEqual((quick.digest, quick.tokens), ("", model.generate(TOKENS, 5).tokens))
        with self.assertRaisesRegex(samebit.ArgumentError, "hidden_states"):
            self.model.embed(TOKENS)
        with self.assertRaisesRegex(samebit.ArgumentError, "the pooling 'max' is not known; there are None, 'last', 'mean'"):
            model.embed(TOKENS, "max")

    def test_replaced_weights(self):
        """A tensor of the file that is doubled, which reaches the folder in one case and the model in the other."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model")
            shutil.copytree(MODELS / "llama-text", path)
            data = bytearray((path / "model.safetensors").read_bytes())
            length = int.from_bytes(data[:8], "little")
            about = json.loads(data[8:8 + length])
            name, entry = next((name, entry) for name, entry in about.items() if entry["dtype"] in ("F32", "BF16") and "up_proj" in name)
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            raw = np.frombuffer(bytes(data[begin:end]), np.uint16).reshape(*entry["shape"], -1)
            high = raw.shape[-1] - 1  # the half of an element that has its exponent
            changed = raw.copy()
            changed[..., high] ^= 1 << 7  # exponents move: other numbers
            data[begin:end] = changed.tobytes()
            (path / "model.safetensors").write_bytes(data)
            wanted = llm.load(path, threads=1).generate(TOKENS, 7, ignore_stops=True).digest
        model = llm.load(MODELS / "llama-text", threads=1)
        before = model.generate(TOKENS, 7, ignore_stops=True).digest
        self.assertNotEqual(before, wanted)
        def tensors(array):
            if entry["dtype"] == "F32":
                yield array.view(np.float32)[..., 0]
            try:
                import torch
            except ImportError:
                return
            kind = {"F32": torch.float32, "BF16": torch.bfloat16}[entry["dtype"]]
            made = torch.from_numpy(array.view(np.int16).copy()).view(kind)[..., 0]
            yield made
            yield torch.nn.Parameter(made.T.contiguous()).T
        count = 0
        for new, old in zip(tensors(changed), tensors(raw)):
            model.replace_weights({name: new})
            self.assertEqual(model.generate(TOKENS, 7, ignore_stops=True).digest, wanted)
            self.assertEqual(model.generate_many([TOKENS], 7, ignore_stops=True)[0].digest, wanted)
            with self.assertRaisesRegex(samebit.ArgumentError, "has no tensor 'head'"):
                model.replace_weights({name: old, "head": old})
            with self.assertRaises(samebit.ShapeError):
                model.replace_weights({name: old[:1]})
            self.assertEqual(model.generate(TOKENS, 7, ignore_stops=True).digest, wanted)
            model.replace_weights({name: old})
            self.assertEqual(model.generate(TOKENS, 7, ignore_stops=True).digest, before)
            count += 1
        if not count:
            self.skipTest("bf16 weights need torch")
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "names of weights are text"):
            model.replace_weights({1: raw})

    def test_suggested_sampling(self):
        greedy = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0}
        self.assertEqual(self.model.suggested_sampling, greedy)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(MODELS / "llama-text", pathlib.Path(folder, "model"))
            pathlib.Path(folder, "model", "generation_config.json").write_text(
                '{"do_sample": true, "temperature": 0.75, "top_k": 20, "eos_token_id": [2, 3]}')
            model = llm.load(pathlib.Path(folder, "model"), threads=1)
            self.assertEqual(model.suggested_sampling, {**greedy, "temperature": 0.75, "top_k": 20})
            said = command("generate", pathlib.Path(folder, "model"), "-p", "Hi ", "--count", 9, "--ignore-stops", "--json")
            self.assertEqual(model.generate("Hi ", 9, ignore_stops=True, **model.suggested_sampling).digest, said["digest"])

    def test_options_change_no_bit(self):
        wanted = self.model.generate(TOKENS, 9, ignore_stops=True)
        self.assertIsNone(wanted.text)
        for options in ({"isa": "scalar"}, {"threads": 3}, {"passes": False}, {"reference": True}):
            made = llm.load(MODELS / "llama-text", **options).generate(np.array(TOKENS), 9, ignore_stops=True, chunk=2)
            self.assertEqual((made.digest, made.tokens), (wanted.digest, wanted.tokens), options)
        self.assertNotEqual(llm.load(MODELS / "llama-text", dtype="f32").generate(TOKENS, 9, ignore_stops=True).digest,
                            wanted.digest)

    def test_stream(self):
        made = self.model.generate("Hi ", 9, ignore_stops=True)
        told = list(self.model.stream("Hi ", 9, ignore_stops=True))
        self.assertEqual([token.token for token in told], made.tokens)
        self.assertEqual([token.logp for token in told], made.logps)
        self.assertEqual("".join(token.text for token in told), made.text)
        self.assertEqual([token.position for token in told], list(range(4, 13)))
        first = next(iter(self.model.stream("Hi ", 9, ignore_stops=True)))  # and left
        self.assertEqual(first, told[0])
        self.assertTrue(all(token.text is None for token in self.model.stream(TOKENS, 2, ignore_stops=True)))
        self.assertEqual(list(self.model.stream("Hi ", 0)), [])

    def test_a_stop_ends_it(self):
        """A seed whose text ends by itself."""
        for seed in range(200):
            made = self.model.generate("Hi ", 30, temperature=2.0, seed=seed)
            if made.end == "stop":
                break
        self.assertEqual(made.end, "stop")
        self.assertIn(made.tokens[-1], self.model.description.stops)
        told = list(self.model.stream("Hi ", 30, temperature=2.0, seed=seed))
        self.assertEqual([token.token for token in told], made.tokens)
        self.assertEqual([token.stops for token in told], [False] * (len(told) - 1) + [True])
        self.assertEqual("".join(token.text for token in told), made.text)

    def test_the_context_ends_it(self):
        model = llm.load(MODELS / "llama-text", context=12, threads=1)
        made = model.generate(TOKENS, 30, ignore_stops=True)
        self.assertEqual((made.end, len(made.tokens)), ("context", 4))
        self.assertEqual([token.token for token in model.stream(TOKENS, 30, ignore_stops=True)], made.tokens)
        with self.assertRaisesRegex(samebit.LimitError, "context of 12"):
            model.generate(TOKENS + TOKENS)

    def test_logits(self):
        logits = self.model.logits(TOKENS)
        self.assertEqual((logits.shape, logits.dtype), ((97,), np.float32))
        self.assertFalse(logits.flags.writeable)
        rows = self.model.logits(TOKENS, [0, 8])
        self.assertEqual(rows.shape, (2, 97))
        self.assertEqual(rows[1].tobytes(), logits.tobytes())
        self.assertEqual(self.model.logits(TOKENS[:1]).tobytes(), rows[0].tobytes())
        tensor = self.model.logits(TOKENS, tensor=True)
        self.assertEqual(tensor.shape, (1, 1, 97))
        self.assertEqual(np.from_dlpack(tensor).tobytes(), logits.tobytes())
        self.assertEqual(int(logits.argmax()), self.model.generate(TOKENS, 1).tokens[0])
        with self.assertRaisesRegex(samebit.ArgumentError, "token 9 of 9"):
            self.model.logits(TOKENS, [9])

    def test_score(self):
        scores = self.model.score(TOKENS, top=3)
        self.assertEqual((scores.logps.shape, scores.top_tokens.shape), ((9,), (9, 3)))
        self.assertTrue(np.isnan(scores.logps[0]) and (scores.top_tokens[0] == -1).all())
        self.assertEqual(scores.tokens.tolist(), TOKENS)
        for place in range(1, 9):
            logits = self.model.logits(TOKENS[:place]).astype(np.float64)
            logps = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
            self.assertAlmostEqual(scores.logps[place], logps[TOKENS[place]], places=5)
            order = sorted(range(97), key=lambda token: (-logits[token], token))[:3]  # noqa: B023
            self.assertEqual(scores.top_tokens[place].tolist(), order)
            self.assertTrue(np.allclose(scores.top_logps[place], logps[order], atol=1e-5))
        said = command("generate", MODELS / "llama-text", "--tokens", ",".join(map(str, TOKENS)), "--count", 0, "--score-prompt",
                       "--logprobs", "--json")
        self.assertEqual(scores.logps[1:].tolist(), np.float32([token["logp"] for token in said["tokens"][1:]]).tolist())
        self.assertEqual(self.model.score("Hi ").logps.shape, (4,))
        with self.assertRaisesRegex(samebit.ArgumentError, "likeliest 98 tokens of 97"):
            self.model.score(TOKENS, top=98)

    def test_perplexity_is_the_command(self):
        text = "It is a truth universally acknowledged, that a single man"
        for settings, options in (({"window": 20}, ("--context", 20)),
                                  ({"window": 20, "stride": 3, "begin": None}, ("--context", 20, "--stride", 3, "--begin", "none")),
                                  ({"window": 12, "method": "llama.cpp", "limit": 2},
                                   ("--context", 12, "--method", "llama.cpp", "--windows", 2))):
            found = self.model.perplexity(text, **settings)
            done = subprocess.run([COMMAND, "perplexity", MODELS / "llama-text", "-", "--json", *map(str, options)], input=text,
                                  check=True, stdout=subprocess.PIPE, text=True)
            said = json.loads(done.stdout)
            self.assertEqual((found.digest, found.perplexity, found.standard_error, found.scored, found.windows),
                             (said["digest"], said["perplexity"], said["standard_error"], said["scored"], said["windows"]))
        for settings, message in (({"method": "half"}, "there are 'full', 'llama.cpp'"), ({"window": 65}, "from 2 to 64"),
                                  ({"begin": -1}, "None is for none"), ({"window": 9, "stride": 9}, "from 1 to 8")):
            with self.assertRaisesRegex(samebit.ArgumentError, message):
                self.model.perplexity(text, **settings)

    def test_sequences_go_on(self):
        with self.model.sequence() as sequence:
            sequence.step(TOKENS[:4])
            self.assertEqual(len(sequence), 4)
            rest = sequence.step(TOKENS[4:])
            self.assertEqual(rest[0].tobytes(), self.model.logits(TOKENS).tobytes())
            sequence.trim(4)
            self.assertEqual(sequence.step(TOKENS[4:]).tobytes(), rest.tobytes())
            made = sequence.generate(TOKENS[:1], 3, ignore_stops=True)
            self.assertEqual(len(sequence), 9 + 1 + 2)
            self.assertEqual(made.tokens, self.model.generate(TOKENS + TOKENS[:1], 3, ignore_stops=True).tokens)
            with self.assertRaises(samebit.ArgumentError):
                sequence.trim(13)
            with self.assertRaisesRegex(samebit.ArgumentError, "token 1 of 2 is 97; the model has 97"):
                sequence.step([1, 97])
            self.assertEqual(len(sequence), 12)
            sequence.interrupt()
            with self.assertRaises(samebit.Interrupted):
                sequence.step([1])
            sequence.interrupt()
            sequence.clear_interrupt()
            sequence.step([1])
        self.assertTrue(sequence.closed)

    def test_threads(self):
        wanted = self.model.generate(TOKENS, 5, ignore_stops=True).digest
        found = []
        workers = [threading.Thread(target=lambda: found.append(self.model.generate(TOKENS, 5, ignore_stops=True).digest))
                   for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(found, [wanted] * 4)

    def test_wrong_prompts(self):
        for prompt in (["Hi"], [1.5], 7, None):
            with self.assertRaisesRegex(samebit.ArgumentTypeError, "whole numbers"):
                self.model.generate(prompt)
        with self.assertRaisesRegex(samebit.ArgumentError, "at least one token"):
            self.model.generate([])
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "sampling"):
            self.model.generate(TOKENS, temperature="warm")
        with self.assertRaisesRegex(samebit.ArgumentError, "top_p 0"):
            self.model.generate(TOKENS, temperature=1, top_p=0)
        with self.assertRaises(samebit.FileError):
            llm.load("/nowhere")
        with self.assertRaisesRegex(samebit.ArgumentError, "'f16', 'bf16', 'f32'"):
            llm.load(MODELS / "llama-text", dtype="f64")
        with self.assertRaisesRegex(samebit.FileError, "neither tokenizer.json nor tokenizer.model"):
            llm.load(MODELS / "gpt2").tokenizer  # noqa: B018


class Text(unittest.TestCase):
    def setUp(self):
        self.tokenizer = llm.Tokenizer(MODELS / "llama-text")

    def test_encode_and_decode(self):
        self.assertEqual(self.tokenizer.encode("Hi <s>"), [1, 43, 76, 3, 1])
        self.assertEqual(self.tokenizer.encode("Hi <s>", bare=True, plain=True), [43, 76, 3, 31, 86, 33])
        self.assertEqual(self.tokenizer.encode("", bare=True), [])
        self.assertEqual(self.tokenizer.decode([1, 43, 76]), "<s>Hi")
        self.assertEqual(self.tokenizer.decode(np.array([1, 43, 76]), skip_special=True), "Hi")
        self.assertEqual(len(self.tokenizer), 97)
        self.assertEqual((self.tokenizer.token(1), self.tokenizer.token(97)), (b"<s>", None))
        self.assertEqual((self.tokenizer.find("<s>"), self.tokenizer.find("nothing")), (1, None))
        self.assertEqual((self.tokenizer.is_special(1), self.tokenizer.is_special(43)), (True, False))
        self.assertEqual(llm.Tokenizer((MODELS / "llama-text/tokenizer.json").read_bytes()).encode("Hi"), [1, 43, 76])
        with self.assertRaisesRegex(samebit.ArgumentError, "UTF-8 at byte 1"):
            self.tokenizer.encode("a\udc00")
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "not int"):
            self.tokenizer.encode(5)
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "ids, not text"):
            self.tokenizer.decode("Hi")
        with self.assertRaises(samebit.FileFormatError):
            llm.Tokenizer(b"{")

    def test_token_by_token(self):
        ids = self.tokenizer.encode("Hello <s> there")
        decoder = self.tokenizer.decoder()
        text = "".join(map(decoder.push, ids)) + decoder.finish()
        self.assertEqual(text, self.tokenizer.decode(ids, skip_special=True))
        with self.assertRaisesRegex(samebit.Error, "closed"):
            decoder.push(1)
        waiting = self.tokenizer.decoder()
        self.tokenizer.close()
        with self.assertRaisesRegex(samebit.Error, "the tokenizer has been closed"):
            waiting.push(1)


class Chats(unittest.TestCase):
    def test_render(self):
        template = llm.ChatTemplate(MODELS / "llama-text")
        said = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi <s>"}]
        self.assertEqual(template.render(said, date=datetime.date(2026, 2, 28)),
                         "<s>[2026-02-28][system]Be brief</s>[user]Hi <s></s>[assistant]")
        self.assertTrue(template.render(said, add_generation_prompt=False).endswith("</s>"))
        model = llm.load(MODELS / "llama-text", threads=1, context=128)
        ids = model.encode(said, date=datetime.date(2026, 2, 28))
        self.assertEqual(model.tokenizer.decode(ids), template.render(said, date=datetime.date(2026, 2, 28)))
        self.assertEqual(model.generate(said, 3, ignore_stops=True).digest,
                         model.generate(model.encode(said), 3, ignore_stops=True).digest)

    def test_a_source(self):
        template = llm.ChatTemplate(source="{{ messages|length }} {{ name }} {{ tools|length }}")
        self.assertEqual(template.render([{}, {}], name="é", tools=[1]), "2 é 1")
        with self.assertRaises(samebit.FileFormatError):
            llm.ChatTemplate(source="{% if %}")
        with self.assertRaises(samebit.UnsupportedError):
            llm.ChatTemplate(MODELS / "gpt2")
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "no JSON"):
            template.render([object()])
        with self.assertRaisesRegex(samebit.ArgumentTypeError, "give one"):
            llm.ChatTemplate()


class Interface(unittest.TestCase):
    def test_numbers_are_the_headers(self):
        header = (ROOT / "include/samebit/llm.h").read_text()
        for kind, names in (("end", [f"SB_LLM_END_{name.upper()}" for name in _sequence.ENDS]),
                            ("windows", [f"SB_LLM_WINDOWS_{name.upper().replace('.', '_')}" for name in _sequence.WINDOWS])):
            body = re.search(rf"typedef enum sb_llm_{kind} {{(.*?)}}", header, re.S).group(1)
            self.assertEqual(re.findall(r"^    (SB_\w+)", body, re.M), names)
        self.assertEqual(list(_sequence.WINDOWS.values()), [0, 1])


if __name__ == "__main__":
    unittest.main()
