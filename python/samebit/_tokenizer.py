"""Tokenizers: text to the ids of tokens, and back."""

import ctypes
import os
from array import array
from typing import List, Optional

from ._errors import ArgumentTypeError
from ._handles import Handle
from ._library import library
from ._structures import EncodeOptions


def id_array(tokens, what="tokens"):
    """An array of 64-bit integers of a list, an array of numpy, or whatever has whole numbers in it."""
    if isinstance(tokens, (str, bytes, bytearray)):
        raise ArgumentTypeError(f"{what} are ids, not text: encode it")
    try:
        return array("q", tokens)
    except (TypeError, OverflowError) as failure:
        raise ArgumentTypeError(f"{what} have to be a list of whole numbers: {failure}") from None


def address_of_ids(ids):
    """Where an id_array's numbers lie."""
    return ids.buffer_info()[0]


def _utf8(text, what):
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{what} is a str, not {type(text).__name__}")
    return text.encode("utf-8", "surrogatepass")  # a lone surrogate is refused by the library, with its place


class Tokenizer(Handle):
    """The tokenizer of a checkpoint: the tokens of the library with which its model was trained. Any number of threads may use
    it at once.

    Parameters
    ----------
    source : path or bytes
        A folder with tokenizer.json or tokenizer.model, such a file, or a GGUF file; or the contents of a tokenizer.json.

    Raises
    ------
    samebit.Error
        FileError, FileFormatError with the part that is wrong, UnsupportedError with the part that is not known.
    """

    def __init__(self, source):
        known = library()
        self._library = known
        pointer = ctypes.c_void_p()
        if isinstance(source, bytes):
            known.call("sb_tokenizer_open_memory", source, len(source), None, ctypes.byref(pointer))
        else:
            known.call("sb_tokenizer_open", os.fsencode(source), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_tokenizer_release)

    def __len__(self):
        """One more than the highest id of a token. Models may have more rows than that."""
        return self._library.sb_tokenizer_vocabulary(self.pointer)

    def __repr__(self):
        return f"<samebit.llm.Tokenizer with {len(self)} tokens>"

    def encode(self, text: str, *, bare: bool = False, plain: bool = False) -> List[int]:
        """The ids of a text's tokens.

        Parameters
        ----------
        text : str
            The text.
        bare : bool
            Whether what the tokenizer puts around a text, such as the token that texts begin with, is left out.
        plain : bool
            Whether special tokens that are written in the text are text too: for what strangers wrote.
        """
        given = _utf8(text, "a text")
        options = EncodeOptions(ctypes.sizeof(EncodeOptions), bare, plain)
        pointer, count = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.call("sb_tokenizer_encode", self.pointer, given, len(given), ctypes.byref(options),
                           ctypes.byref(pointer), ctypes.byref(count))
        try:
            return ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int64))[:count.value]
        finally:
            self._library.sb_llm_free(pointer)

    def decode(self, tokens, *, skip_special: bool = False) -> str:
        """The text of tokens. Ids that no token has are left out, and bytes that make no character become U+FFFD."""
        ids = id_array(tokens)
        pointer, count = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.call("sb_tokenizer_decode", self.pointer, address_of_ids(ids), len(ids), skip_special,
                           ctypes.byref(pointer), ctypes.byref(count))
        try:
            return ctypes.string_at(pointer, count.value).decode()
        finally:
            self._library.sb_llm_free(pointer)

    def decoder(self, *, skip_special: bool = True) -> "Decoder":
        """Decodes token by token."""
        return Decoder(self, skip_special)

    def token(self, token: int) -> Optional[bytes]:
        """A token as the vocabulary writes it, which is not what it decodes to; None where no token has this id."""
        count = ctypes.c_size_t()
        text = self._library.sb_tokenizer_token(self.pointer, token, ctypes.byref(count))
        return None if text is None else ctypes.string_at(text, count.value)

    def find(self, text) -> Optional[int]:
        """The id of the token that the vocabulary writes so (str or bytes); None: there is none."""
        given = _utf8(text, "a token")
        found = self._library.sb_tokenizer_find(self.pointer, given, len(given))
        return found if found >= 0 else None

    def is_special(self, token: int) -> bool:
        """Whether a token is a mark such as <|end|>, which is no part of a text."""
        return self._library.sb_tokenizer_is_special(self.pointer, token)


class Decoder(Handle):
    """Decoding token by token: `Tokenizer.decoder` makes it. What it gives, one behind the other, is what `Tokenizer.decode` gives
    for all tokens, and each part is whole characters. For one thread at a time."""

    def __init__(self, tokenizer, skip_special):
        known = library()
        self._library = known
        self._tokenizer = tokenizer  # which has to outlive the stream
        pointer = ctypes.c_void_p()
        known.call("sb_decode_stream_create", tokenizer.pointer, skip_special, ctypes.byref(pointer))
        self._own(pointer.value, known.sb_decode_stream_destroy)

    def push(self, token: int) -> str:
        """Takes the next token, and gives the text that no later one can change."""
        self._check()
        text, count = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.call("sb_decode_stream_push", self.pointer, token, ctypes.byref(text), ctypes.byref(count))
        return ctypes.string_at(text, count.value).decode() if count.value else ""

    def finish(self) -> str:
        """Gives what still waits. Afterwards the decoder is closed."""
        self._check()
        text, count = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.call("sb_decode_stream_finish", self.pointer, ctypes.byref(text), ctypes.byref(count))
        rest = ctypes.string_at(text, count.value).decode() if count.value else ""
        self.close()
        return rest

    def _check(self):
        self._tokenizer.pointer  # noqa: B018 (raises where it has been closed: the stream looks at its tables)
