"""compare_tokenizers.py LIBSAMEBIT [tokenizer.json…] [--megabytes N] [--only NAME]: tokens and texts are those of the tokenizers package.

Tokenizers of every kind are trained here, on text that Python and Debian ship; then text in many languages, code, random
characters and random bytes are encoded and decoded by both, and token by token.

With --whole FOLDER…, all text of these folders is gone through once, in pieces, with random texts between, up to --megabytes and
--seconds for each tokenizer: documentation, messages in the languages of the world (.mo), sources. Where a piece differs and does
not without the characters of which versions of Unicode say different things, it is counted apart.
"""

import argparse
import ctypes
import gzip
import json
import pathlib
import random
import sys
import sysconfig
import time
import unicodedata

try:
    import tokenizers
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

parser = argparse.ArgumentParser()
parser.add_argument("library")
parser.add_argument("files", nargs="*", help="tokenizer.json files to compare in place of those that are trained here")
parser.add_argument("--megabytes", type=float, default=4)
parser.add_argument("--only", default="", help="tokenizers whose name contains this")
parser.add_argument("--show", type=int, default=4, help="how many differences of each tokenizer are shown")
parser.add_argument("--all-characters", action="store_true", help="also those that not every version of Unicode has")
parser.add_argument("--whole", nargs="+", default=[], metavar="FOLDER", help="compare all text in these folders")
parser.add_argument("--skip", type=float, default=0, metavar="MEGABYTES", help="with --whole: begin behind so much of it")
parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where tokenizers that were trained are kept for the next time")
parser.add_argument("--seconds", type=float, default=1e9, help="with --whole: the most time for each tokenizer")
options = parser.parse_args()
rng = random.Random(16)
# Emoji are newer than the oldest version of Unicode that Python knows, and everywhere.
NEWER = {chr(point) for point in [*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6C6), *range(0x1F910, 0x1F93F)]}

# ---- samebit, by ctypes ----


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 2048)]


class EncodeOptions(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_size_t), ("bare", ctypes.c_bool), ("plain", ctypes.c_bool)]


lib = ctypes.CDLL(options.library)
lib.sb_llm_free.argtypes = [ctypes.c_void_p]
lib.sb_tokenizer_release.argtypes = [ctypes.c_void_p]
lib.sb_decode_stream_destroy.argtypes = [ctypes.c_void_p]


class Samebit:
    def __init__(self, text):
        data = text.encode()
        self.handle = ctypes.c_void_p()
        self.error = Error()
        self.check(lib.sb_tokenizer_open_memory(data, ctypes.c_size_t(len(data)), b"tokenizer.json", ctypes.byref(self.handle),
                                                ctypes.byref(self.error)))

    def __del__(self):
        lib.sb_tokenizer_release(self.handle)

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.error.message.decode(errors="replace"))

    def encode(self, text, special=True, plain=False):
        data = text.encode()
        tokens, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        how = EncodeOptions(ctypes.sizeof(EncodeOptions), not special, plain)
        self.check(lib.sb_tokenizer_encode(self.handle, data, ctypes.c_size_t(len(data)), ctypes.byref(how), ctypes.byref(tokens),
                                           ctypes.byref(count), ctypes.byref(self.error)))
        found = tokens[: count.value]
        lib.sb_llm_free(tokens)
        return found

    def decode(self, tokens, skip):
        text, count = ctypes.c_void_p(), ctypes.c_size_t()
        self.check(lib.sb_tokenizer_decode(self.handle, (ctypes.c_int64 * len(tokens))(*tokens), ctypes.c_size_t(len(tokens)),
                                           ctypes.c_bool(skip), ctypes.byref(text), ctypes.byref(count), ctypes.byref(self.error)))
        found = ctypes.string_at(text, count.value)
        lib.sb_llm_free(text)
        return found.decode()

    def stream(self, tokens, skip):
        """The parts that a stream gives; each has to be whole characters, or .decode() fails."""
        stream, text, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        error = ctypes.byref(self.error)
        self.check(lib.sb_decode_stream_create(self.handle, ctypes.c_bool(skip), ctypes.byref(stream), error))
        parts = []
        for token in tokens:
            self.check(lib.sb_decode_stream_push(stream, ctypes.c_int64(token), ctypes.byref(text), ctypes.byref(count), error))
            parts.append(ctypes.string_at(text, count.value).decode())
        self.check(lib.sb_decode_stream_finish(stream, ctypes.byref(text), ctypes.byref(count), error))
        parts.append(ctypes.string_at(text, count.value).decode())
        lib.sb_decode_stream_destroy(stream)
        return "".join(parts)


# ---- texts ----


def read_texts():
    stdlib = pathlib.Path(sysconfig.get_paths()["stdlib"])
    files = sorted(stdlib.glob("*.py")) + sorted(stdlib.glob("*/*.py"))
    files += sorted(pathlib.Path("/usr/share/vim").glob("vim*/tutor/*.utf-8"))
    files += sorted(pathlib.Path("/usr/share/i18n/locales").glob("*")) + sorted(pathlib.Path("/usr/share/common-licenses").glob("*"))
    files += sorted(pathlib.Path("/usr/share/perl").glob("5*/unicore/Name.pl"))
    rng.shuffle(files)
    for file in files:
        try:
            yield file.read_text()
        except (OSError, UnicodeDecodeError):
            continue


def is_compared(character):
    """Whether both libraries know the same of it: they have different versions of Unicode."""
    first, now = unicodedata.ucd_3_2_0.category(character), unicodedata.category(character)
    return options.all_characters or (first == now and first not in ("Cn", "Cs")) or character in NEWER


def random_point():
    while True:
        point = rng.randrange(rng.choice([0x80, 0x250, 0x3000, 0x20000, 0x110000]))
        if not 0xD800 <= point < 0xE000 and is_compared(chr(point)):
            return chr(point)


def random_text(specials):
    kind = rng.randrange(5)
    if kind == 0:
        return "".join(random_point() for _ in range(rng.randrange(200)))
    if kind == 1:
        return "".join(filter(is_compared, rng.randbytes(rng.randrange(300)).decode(errors="replace")))
    if kind == 2:
        pool = list("abAZ09 .,!?'\"\n\r\t-_") + ["'s", "'LL", "'\u017f", "\u2581", "\u00a0", "\u3000", "é", "e\u0301", "日", "本", "😀", "👨‍👩‍👧", "İ", "ſ", "²", "Ⅷ"] + specials
        return "".join(rng.choice(pool) for _ in range(rng.randrange(120)))
    if kind == 3:
        return rng.choice("aé日 \n'1.▁") * rng.randrange(300)
    return "".join(rng.choice([" ", "  ", "\n", " \n", "\t", "\u00a0", "x", ".", "1"]) for _ in range(rng.randrange(60)))


def documents():
    amount = 0
    while amount < options.megabytes * 1e6:
        for text in texts:
            at = rng.randrange(max(1, len(text) - 4000))
            part = text[at : at + rng.randrange(1, 8000)]
            amount += len(part.encode())
            yield part
            if amount >= options.megabytes * 1e6:
                break


def content_of(file):
    """The text of a file, or "". Catalogues of messages are texts with zero bytes between, behind numbers."""
    try:
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
        if file.suffix == ".mo":
            table = int.from_bytes(data[16:20], "little")  # (of translations: lengths and places)
            first = int.from_bytes(data[table + 4 : table + 8], "little")
            return data[first:].replace(b"\0", b"\n").decode(errors="ignore")
        return data.decode()
    except (OSError, EOFError, UnicodeDecodeError, gzip.BadGzipFile):
        return ""


def whole_documents():
    """Pieces of all files, each once, of up to 60,000 characters, and after every fourth a random text."""
    files = [file for folder in options.whole for file in sorted(pathlib.Path(folder).rglob("*")) if file.is_file() and not file.is_symlink()]
    random.Random(7).shuffle(files)
    skipped, count = options.skip * 1e6, 0
    for file in files:
        text = content_of(file)
        for at in range(0, len(text), 60000):
            part = text[at : at + 60000]
            skipped -= len(part.encode())
            if skipped > 0:
                continue
            yield part
            count += 1
            if count % 4 == 0:
                yield "".join(random_text(SPECIALS) for _ in range(40))
            if count % 64 == 0:
                yield rng.randbytes(60000).decode(errors="replace")


texts = []
for text in read_texts():
    texts.append(text)
    if sum(map(len, texts)) > max(1e7, options.megabytes * 1e6):
        break
training = [] if options.files else [line for text in texts[:250] for line in text[:20000].split("\n")]
print(f"tokenizers {tokenizers.__version__}; {len(texts)} files, {sum(map(len, texts)) / 1e6:.1f} million characters")

# ---- tokenizers ----

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
ODD = r"\p{Lu}?[\p{Ll}\p{M}]+|\p{N}+|[^\s\p{L}\p{N}]+|\s+"  # none of those that have a search of their own
SPECIALS = ["<s>", "</s>", "<|end|>", "<mask>"]


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(training, trainer)
    return tokenizer


def byte_bpe(pre, normalizer=None, **extra):
    t = Tokenizer(models.BPE(**extra))
    t.pre_tokenizer = pre
    if normalizer is not None:
        t.normalizer = normalizer
    t.decoder = decoders.ByteLevel()
    train(t, trainers.BpeTrainer(vocab_size=6000, show_progress=False, special_tokens=SPECIALS,
                                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def split_bytes(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), behavior, invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    t = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def roberta():
    t = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True)])
    t.add_tokens([tokenizers.AddedToken("def", single_word=True), tokenizers.AddedToken("日本", rstrip=True), "xx"])
    return t


def llama3():
    t = byte_bpe(split_bytes(LLAMA3))
    data = json.loads(t.to_str())
    data["model"]["ignore_merges"] = True
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 0)])])
    return t


def with_bytes(t):
    """Puts the 256 tokens of bytes into the vocabulary."""
    data = json.loads(t.to_str())
    model = data["model"]
    if isinstance(model["vocab"], dict):
        names = [name for name, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
        names = names[:5] + [f"<0x{byte:02X}>" for byte in range(256)] + [name for name in names[5:]]
        model["vocab"] = {name: i for i, name in enumerate(names)}
    else:
        model["vocab"] = model["vocab"][:5] + [[f"<0x{byte:02X}>", 0.0] for byte in range(256)] + model["vocab"][5:]
    model["byte_fallback"] = True
    return data


def piece_bpe(pre):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre
    return train(t, trainers.BpeTrainer(vocab_size=5000, show_progress=False, special_tokens=["<unk>"] + SPECIALS, limit_alphabet=700))


def llama2():
    data = with_bytes(piece_bpe(pre_tokenizers.Metaspace()))
    data["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(data))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


def gemma():
    data = with_bytes(piece_bpe(pre_tokenizers.Metaspace()))
    t = Tokenizer.from_str(json.dumps(data))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return t


def mistral(scheme, split):
    def make():
        data = with_bytes(piece_bpe(pre_tokenizers.Metaspace()))
        t = Tokenizer.from_str(json.dumps(data))
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
        return t

    return make


def unigram(fallback, normalizer):
    def make():
        t = Tokenizer(models.Unigram())
        t.normalizer = normalizer
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
        train(t, trainers.UnigramTrainer(vocab_size=4000, show_progress=False, special_tokens=["<unk>"] + SPECIALS, unk_token="<unk>"))
        if fallback:
            t = Tokenizer.from_str(json.dumps(with_bytes(t)))
        t.decoder = decoders.Metaspace()
        return t

    return make


def wordpiece(cleanup):
    def make():
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=cleanup)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        train(t, trainers.WordPieceTrainer(vocab_size=5000, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]"] + SPECIALS,
                                           limit_alphabet=800))
        t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        t.decoder = decoders.WordPiece(cleanup=cleanup)
        return t

    return make


def words():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(True)])
    return train(t, trainers.WordLevelTrainer(vocab_size=3000, show_progress=False, special_tokens=["<unk>"] + SPECIALS))


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(t, trainers.BpeTrainer(vocab_size=4000, show_progress=False, special_tokens=["<unk>"] + SPECIALS, end_of_word_suffix="</w>",
                                 initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.Sequence([decoders.BPEDecoder("</w>"), decoders.ByteLevel()])
    return t


def prefixed():
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.pre_tokenizer = pre_tokenizers.Whitespace()
    train(t, trainers.BpeTrainer(vocab_size=4000, show_progress=False, special_tokens=["<unk>"] + SPECIALS, continuing_subword_prefix="##",
                                 limit_alphabet=300))
    return t


def part(normalizer, splitters):
    """Bytes alone; the last one of each piece is another token, so that pieces can be seen."""
    def make():
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        vocabulary = {text: i for i, text in enumerate(alphabet + [c + "</w>" for c in alphabet])}
        t = Tokenizer(models.BPE(vocabulary, [], end_of_word_suffix="</w>"))
        if normalizer is not None:
            t.normalizer = normalizer
        t.pre_tokenizer = pre_tokenizers.Sequence(splitters + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        t.decoder = decoders.Sequence([decoders.BPEDecoder("</w>"), decoders.ByteLevel()])
        return t

    return make


BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
kinds = {
    "gpt2": gpt2, "roberta": roberta, "llama3": llama3, "llama2": llama2, "gemma": gemma,
    "qwen2": lambda: byte_bpe(split_bytes(QWEN2), normalizers.NFC()),
    "odd": lambda: byte_bpe(split_bytes(ODD), normalizers.NFKC()),
    "mistral-first": mistral("first", False), "mistral-always": mistral("always", True), "mistral-never": mistral("never", True),
    "unigram": unigram(False, normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])),
    "unigram-bytes": unigram(True, normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])),
    "wordpiece": wordpiece(True), "wordpiece-cased": wordpiece(False), "words": words, "clip": clip, "prefixed": prefixed,
}
for name in "NFC NFD NFKC NFKD Lowercase StripAccents Strip Nmt BertNormalizer".split():
    kinds["part-" + name] = part(getattr(normalizers, name)(), [])
for behavior in BEHAVIORS:
    kinds["part-punctuation-" + behavior] = part(None, [pre_tokenizers.Punctuation(behavior)])
    kinds["part-split-" + behavior] = part(None, [pre_tokenizers.Split(" ", behavior, rng.random() < 0.5)])
    kinds["part-regex-" + behavior] = part(None, [pre_tokenizers.Split(Regex(r"\w+"), behavior, rng.random() < 0.5)])
for name, splitter in {"bert": pre_tokenizers.BertPreTokenizer(), "whitespace": pre_tokenizers.Whitespace(),
                       "whitespacesplit": pre_tokenizers.WhitespaceSplit(), "digits": pre_tokenizers.Digits(False),
                       "delimiter": pre_tokenizers.CharDelimiterSplit("e"), "metaspace": pre_tokenizers.Metaspace()}.items():
    kinds["part-" + name] = part(None, [splitter])
for name, expression in {"gpt2": GPT2, "llama3": LLAMA3, "qwen2": QWEN2}.items():
    kinds["part-regex-" + name] = part(None, [pre_tokenizers.Split(Regex(expression), "isolated")])

if options.files:
    kinds = {file: (lambda file=file: Tokenizer.from_file(file)) for file in options.files}

# ---- comparing ----


def all_points():
    """Every character of the planes that have any, between others and behind a letter."""
    for first in [*range(0, 0x40000, 256), *range(0xE0000, 0xF0000, 256), 0x10FF00]:
        block = [chr(p) for p in range(first, first + 256) if not 0xD800 <= p < 0xE000 and is_compared(chr(p))]
        if block:
            yield "".join(block)
            yield "x ".join(block)


def show(text):
    return ascii(text if len(text) < 300 else text[:300] + "…")


def first_difference(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"at {at}: {show(a[max(0, at - 12):at + 12])} / {show(b[max(0, at - 12):at + 12])}"


def compare(name, theirs, ours, batch, plain, report):
    theirs.encode_special_tokens = plain
    for special in (False,) if name.startswith("part") else (True, False):
        start = time.perf_counter()
        encodings = theirs.encode_batch(batch, add_special_tokens=special)
        spent[0] += time.perf_counter() - start
        for text, encoding in zip(batch, encodings):
            start = time.perf_counter()
            try:
                found = ours.encode(text, special, plain)
            except RuntimeError as problem:
                report("error", text, str(problem))
                continue
            spent[1] += time.perf_counter() - start
            expected = encoding.ids
            if found != expected:
                report("encode", text, first_difference([theirs.id_to_token(i) for i in expected], [theirs.id_to_token(i) for i in found]))
                continue
            skip = special
            decoded, expected = ours.decode(found, skip), theirs.decode(found, skip_special_tokens=skip)
            if decoded != expected:
                report("decode", text, first_difference(expected, decoded))
            elif len(found) < 500 and ours.stream(found, skip) != expected:
                report("stream", text, "")


def compare_whole(name, theirs, ours, report):
    """Returns how many bytes and pieces there were, and how many differ by characters that versions of Unicode know differently."""
    begin, amount, count, versions = time.time(), 0, 0, 0
    for text in whole_documents():
        found, expected = ours.encode(text, False), theirs.encode(text, add_special_tokens=False).ids
        amount += len(text.encode())
        count += 1
        if found == expected:
            decoded, expected = ours.decode(found, False), theirs.decode(expected, skip_special_tokens=False)
            if decoded != expected:
                report("decode", text, first_difference(expected, decoded))
        else:
            known = "".join(filter(is_compared, text))
            if known != text and ours.encode(known, False) == theirs.encode(known, add_special_tokens=False).ids:
                versions += 1
            else:
                report("encode", text, first_difference([theirs.id_to_token(i) for i in expected], [theirs.id_to_token(i) for i in found]))
        if amount >= options.megabytes * 1e6 or time.time() - begin > options.seconds:
            break
    return amount, count, versions


failed = []
for name, make in kinds.items():
    if options.only not in name or (options.whole and name.startswith("part")):
        continue
    start = time.time()
    try:
        kept = options.keep / f"{name}.json" if options.keep and not options.files else None
        theirs = Tokenizer.from_file(str(kept)) if kept and kept.exists() else make()
        if kept and not kept.exists():
            theirs.save(str(kept))
        theirs.no_padding()
        ours = Samebit(theirs.to_str())
    except RuntimeError as problem:
        print(f"{name:28} {problem}")
        failed.append(name)
        continue
    trained = time.time() - start
    problems, spent = [], [0.0, 0.0]

    def report(what, text, more):
        problems.append((what, text, more))

    if options.whole:
        amount, count, versions = compare_whole(name, theirs, ours, report)
        print(f"{name:28} {len(problems)} of {count} pieces differ, {amount / 1e6:.1f} MB; {versions} by characters that Unicode's versions know "
              f"differently; {time.time() - start:.0f} s", flush=True)
        for what, text, more in sorted(problems, key=lambda problem: len(problem[1]))[: options.show]:
            print(f"    {what} {show(text)}\n        {more}")
        if problems:
            failed.append(name)
        continue
    batch = [""] + [random_text(SPECIALS) for _ in range(1500)]
    if name.startswith("part"):
        batch += all_points()
    else:
        batch += documents()
    compare(name, theirs, ours, batch, False, report)
    compare(name, theirs, ours, [random_text(SPECIALS) for _ in range(300)], True, report)
    # Numbers in no order: what decoders make of broken characters.
    for _ in range(300):
        tokens = [rng.randrange(theirs.get_vocab_size()) for _ in range(rng.randrange(30))]
        if name.startswith(("llama2", "gemma", "mistral")) and rng.random() < 0.7:
            tokens = [rng.randrange(5, 300) for _ in tokens]
        expected, decoded = theirs.decode(tokens), ours.decode(tokens, True)
        if expected != decoded or ours.stream(tokens, True) != decoded:
            report("decode", str(tokens), first_difference(expected, decoded))
    megabytes = sum(len(text.encode()) for text in batch) * 2e-6
    print(f"{name:28} {len(problems)} of {len(batch)} differ; trained in {trained:.1f} s; MB/s: {megabytes / spent[0]:.1f} theirs, "
          f"{megabytes / spent[1]:.1f} ours", flush=True)
    for what, text, more in sorted(problems, key=lambda problem: len(problem[1]))[: options.show]:
        print(f"    {what} {show(text)}\n        {more}")
    if problems:
        failed.append(name)
sys.exit(f"different: {failed}" if failed else 0)
