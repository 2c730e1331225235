#!/usr/bin/env python3
"""Train the tokenizer on the novels, and write them as tokens for train.py.

    pip install -r requirements.txt
    python tokenize_novels.py r-cran-janeaustenr_1.0.0-1_all.deb data

Writes data/tokenizer.json, data/training.npy, data/heldout.npy and data/text.npy, of u16. The last twentieth of each novel is
held out, and neither the model nor the tokenizer is trained on it; text.npy has the first 100,000 tokens of the whole text.
"""

import argparse
import pathlib

import numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from novels import novels

VOCABULARY = 2048
END = "<|endoftext|>"
HELD_OUT = 20  # one paragraph in as many, by letters
FIRST = 100000


def parted(novel):
    """A novel up to the paragraph that begins its last twentieth, and the rest."""
    cut = novel.rindex("\n", 0, len(novel) * (HELD_OUT - 1) // HELD_OUT) + 1
    return novel[:cut], novel[cut:]


def train(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", help="r-cran-janeaustenr_1.0.0-1_all.deb, or the file Rdata.rdb in it")
    parser.add_argument("out", type=pathlib.Path, help="the folder to write")
    options = parser.parse_args()
    texts = novels(options.package)
    parts = [parted(novel) for novel in texts]
    tokenizer = train([training for training, _ in parts])
    end = tokenizer.token_to_id(END)

    def joined(pieces):
        """Tokens of several texts, each behind the one that ends a text."""
        return numpy.array([token for piece in pieces for token in [end] + tokenizer.encode(piece).ids], numpy.uint16)

    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(options.out / "tokenizer.json"))
    arrays = {"training": joined([training for training, _ in parts]), "heldout": joined([heldout for _, heldout in parts]),
              "text": numpy.array(tokenizer.encode("".join(texts)).ids[:FIRST], numpy.uint16)}
    for name, array in arrays.items():
        numpy.save(options.out / f"{name}.npy", array)
        print(f"{name}: {len(array)} tokens")


if __name__ == "__main__":
    main()
