"""record_tokenizers.py: makes small tokenizers of every kind, and records what the packages that define them make of texts.

    pip install tokenizers sentencepiece
    python record_tokenizers.py

writes ../fuzz/seeds/tokenizer/NAME.json, which are also the seeds of the fuzz targets, and tokenizer_cases.json and
sentencepiece.json, which test_tokenizer.c reads. compare_tokenizers.py compares more, where the packages are installed.
"""

import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).parent
SEEDS = HERE.parent / "fuzz" / "seeds" / "tokenizer"
random.seed(16)

CORPUS = """
The tokens of a text are the same on every machine, and so are the bits of every logit that follows from them.
She sells sea shells by the sea shore; he'd sell them there, they're told, and I'll buy what's left. Isn't it?
Der Text wird in Stücke geschnitten, und jedes Stück für sich übersetzt. Größe und Maß zählen.
Le texte est découpé en morceaux; chacun est traduit à part. Où êtes-vous? Çà et là.
El niño comió piñas en mañanas frías. ¿Qué más?
Текст режется на куски, и каждый кусок переводится отдельно.
文章は断片に切られ、それぞれが符号になる。 文字も数も同じ。
int main(void) { for (int i = 0; i < 100; i++) printf("%d\\n", i * i); return 0; }
def add(first, second):
    return first + second  # 1 + 2 = 3
10 20 300 4000 50000 3.14159 2026-11-23
"""
TRAINING = CORPUS.split("\n") * 3

TEXTS = ["", " ", "a", "The tokens of a text", "  two  spaces  ", "line\nline\r\n\n  line", "\t\ttabs\t", "don't you'LL WE'VE I'm he'd",
         "1234567890 12 3", "größer Straße Über", "e\u0301 é \u1e9b\u0323 ﬁ Å", "日本語の文章。", "Привет, мир", "👩‍👩‍👧 😀!", "a\u00a0b\u3000c\u2581d",
         "x = y[3] + {\"k\": 'v'}  # ok", "<s>hi</s>", "a <mask> b<mask>c", "<|end|>", "…—“quoted”", "\u0000\u0001\u007f", "\U0010ffff\U00012345",
         "aaaaaaaaaaaaaaaaaaaa", "the the the", "she sells sea shells", "\ufffd", "İstanbul ſ K", "a\n\n\n", " \n", "\r\n\r\n", "x  \n  y", "½²Ⅷ٣"]


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def train(tokenizer, trainer):
    tokenizer.train_from_iterator(TRAINING, trainer)
    return tokenizer


SPECIALS = ["<s>", "</s>", "<|end|>"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def byte_level(pre, size=420):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    return train(t, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=SPECIALS,
                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def split(expression):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def llama3():
    data = json.loads(byte_level(split(LLAMA3)).to_str())
    data["model"]["ignore_merges"] = True
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="$A $B", special_tokens=[("<s>", 0)])
    return t


def qwen2():
    t = byte_level(split(LLAMA3.replace("{1,3}", "")))
    t.normalizer = normalizers.NFC()
    return t


def roberta():
    t = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))
    t.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken("sea", single_word=True), AddedToken("日本", rstrip=True), "xx"])
    return t


def other_expression():
    t = byte_level(split(r"\p{Lu}?[\p{Ll}\p{M}]+|\d+|\w|[^\w\s]+|\s"), 320)
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s{2,}"), " ")])
    return t


def with_bytes(t):
    data = json.loads(t.to_str())
    names = [name for name, _ in sorted(data["model"]["vocab"].items(), key=lambda item: item[1])]
    names = names[:4] + [f"<0x{byte:02X}>" for byte in range(256)] + names[4:]
    data["model"]["vocab"] = {name: i for i, name in enumerate(names)}
    data["model"]["byte_fallback"] = True
    return data


def pieces():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    return with_bytes(train(t, trainers.BpeTrainer(vocab_size=200, show_progress=False, special_tokens=["<unk>", *SPECIALS], limit_alphabet=70)))


def llama2():
    data = pieces()
    data["pre_tokenizer"] = None
    t = Tokenizer.from_str(json.dumps(data))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="$A $B", special_tokens=[("<s>", 1)])
    return t


def gemma():
    t = Tokenizer.from_str(json.dumps(pieces()))
    t.normalizer = normalizers.Replace(" ", "▁")
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return t


def mistral():
    t = Tokenizer.from_str(json.dumps(pieces()))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def unigram():
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    train(t, trainers.UnigramTrainer(vocab_size=150, show_progress=False, special_tokens=["<unk>", *SPECIALS], unk_token="<unk>"))
    data = json.loads(t.to_str())
    data["model"]["vocab"] = [[text, round(score, 6)] for text, score in data["model"]["vocab"]]
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.Metaspace()
    return t


def wordpiece():
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    train(t, trainers.WordPieceTrainer(vocab_size=220, show_progress=False, special_tokens=["[UNK]", "[CLS]", "[SEP]", *SPECIALS]))
    t.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    t.decoder = decoders.WordPiece()
    return t


def words():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.Digits(True)])
    return train(t, trainers.WordLevelTrainer(vocab_size=90, show_progress=False, special_tokens=["<unk>", *SPECIALS]))


def clip():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Split(Regex(r"'s|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"), "removed", True)
    train(t, trainers.BpeTrainer(vocab_size=240, show_progress=False, special_tokens=["<unk>", *SPECIALS], end_of_word_suffix="</w>"))
    t.decoder = decoders.BPEDecoder("</w>")
    return t


def record():
    cases = []
    SEEDS.mkdir(parents=True, exist_ok=True)
    for make in (gpt2, llama3, qwen2, roberta, other_expression, llama2, gemma, mistral, unigram, wordpiece, words, clip):
        t = make()
        name = make.__name__
        (SEEDS / f"{name}.json").write_text(dumps(json.loads(t.to_str())) + "\n")
        for text in TEXTS + [random.choice(TEXTS) + random.choice(TEXTS) for _ in range(20)]:
            bare = random.random() < 0.7
            plain = random.random() < 0.1
            t.encode_special_tokens = plain
            ids = t.encode(text, add_special_tokens=not bare).ids
            skip = random.random() < 0.5
            cases.append({"tokenizer": name, "text": text, "bare": bare, "plain": plain, "tokens": ids, "skip": skip,
                          "decoded": t.decode(ids, skip_special_tokens=skip)})
    (HERE / "tokenizer_cases.json").write_text("[\n" + ",\n".join(map(dumps, cases)) + "\n]\n")


def record_sentencepiece():
    """sentencepiece's own tokenizers, as lists of tokens, scores and types."""
    found = []
    for kind, more in (("bpe", {}), ("bpe", {"add_dummy_prefix": False, "user_defined_symbols": ["sea", "\n"]}), ("unigram", {"remove_extra_whitespaces": True})):
        model = io.BytesIO()
        settings = {"vocab_size": 420, "byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False,
                    "character_coverage": 0.99, "hard_vocab_limit": False, **more}
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TRAINING), model_writer=model, model_type=kind,
                                                 minloglevel=2, **settings)
        sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        types = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(len(sp))]
        for symbol in more.get("user_defined_symbols", []):
            types[sp.piece_to_id(symbol)] = 4
        texts = [text for text in TEXTS if "<" not in text and "\0" not in text]
        texts += [random.choice(texts) + random.choice(texts) for _ in range(20)]
        found.append({"kind": kind, "prefix": settings.get("add_dummy_prefix", True), "tokens": [sp.id_to_piece(i) for i in range(len(sp))],
                      "scores": [sp.get_score(i) for i in range(len(sp))], "types": types, "model": model.getvalue().hex(),
                      "cases": [{"text": text, "tokens": sp.encode(text), "decoded": sp.decode(sp.encode(text))} for text in texts]})
    (HERE / "sentencepiece.json").write_text("[\n" + ",\n".join(map(dumps, found)) + "\n]\n")


record()
record_sentencepiece()
