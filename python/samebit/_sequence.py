"""Sequences of tokens: a language model's cache, and what goes on behind it."""

import ctypes
import dataclasses
import threading
from typing import List, Optional

import numpy

from ._errors import ArgumentError, ArgumentTypeError
from ._handles import Handle
from ._interrupts import interruptible
from ._library import library
from ._structures import (
    ON_TOKEN,
    LlmEmbedding,
    LlmGeneration,
    LlmLogitBias,
    LlmPerplexity,
    LlmPerplexityResult,
    LlmResult,
    LlmSampling,
    LlmScoring,
)
from ._tokenizer import address_of_ids, id_array
from ._values import Tensor

# sb_llm_end and sb_llm_windows: the numbers are part of the binary interface.
ENDS = ("limit", "stop", "context", "caller", "complete")
POOLINGS = {None: 0, "last": 1, "mean": 2}
WINDOWS = {"full": 0, "llama.cpp": 1}
_CALLBACK_FAILED = 10  # sb_status: "internal error", which no caller sees


@dataclasses.dataclass(frozen=True)
class Token:
    """A token that was generated."""

    token: int
    position: int
    """In the sequence."""
    logp: float
    """Its log-probability under the logits of the position before."""
    stops: bool
    """Whether it is one that ends a text; its text is ""."""
    text: Optional[str]
    """What of the text has become certain with it, in whole characters, and possibly nothing; None without a tokenizer."""


@dataclasses.dataclass(frozen=True)
class Generation:
    """What came of a generation."""

    tokens: List[int]
    """The new tokens, with the one that ended the text, if one did."""
    logps: List[float]
    text: Optional[str]
    """None without a tokenizer."""
    end: str
    """Why it ended: "limit" (as many tokens as were asked for), "stop" (a token that ends texts), or "context" (it is full)."""
    digest: str
    """SHA-256 of the tokens and the logits that each came from: what `samebit generate --digest` prints. "" where none was asked for."""
    prompt_tokens: int
    prompt_seconds: float
    first_token_seconds: float
    """To the first new token; 0 where there is none."""
    decode_seconds: float
    """From there to the last one."""


@dataclasses.dataclass(frozen=True)
class Scores:
    """What a model made of tokens that were given."""

    tokens: numpy.ndarray
    """int64 [n]: the tokens themselves."""
    logps: numpy.ndarray
    """float32 [n]: each one's log-probability under the logits of the position before; NaN for the first one."""
    top_tokens: numpy.ndarray
    """int64 [n, top]: the likeliest tokens in each place, the likeliest first; -1 for the first token."""
    top_logps: numpy.ndarray
    """float32 [n, top]."""


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """How well a model foretells a text."""

    perplexity: float
    standard_error: float
    """As if tokens were independent; NaN for one token."""
    mean: float
    """The negative log-probability of a token."""
    scored: int
    """How many tokens counted."""
    tokens: int
    windows: int
    digest: str
    """SHA-256 of the tokens that counted and their log-probabilities: what `samebit perplexity --digest` prints."""


def sampling(temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, seed=0, request=0, repetition_penalty=1.0,
             presence_penalty=0.0, frequency_penalty=0.0, logit_bias=None):
    """An LlmSampling structure. `logit_bias`: {token: what is added to its logit}; -inf for one that must not come."""
    try:
        biases = sorted((logit_bias or {}).items())
        array = (LlmLogitBias * len(biases))(*(LlmLogitBias(token, bias) for token, bias in biases))
        made = LlmSampling(ctypes.sizeof(LlmSampling), temperature, top_k, top_p, min_p, seed, request,
                           repetition_penalty, presence_penalty, frequency_penalty, len(biases), array)
    except (TypeError, OverflowError, AttributeError) as failure:
        raise ArgumentTypeError(f"a setting of sampling cannot be passed on: {failure}") from None
    made.kept = array  # as long as the structure, whose copies do not keep it
    return made


class Sequence(Handle):
    """One sequence of tokens: `Model.sequence` makes it, empty. Threads that use one at the same time wait for each other;
    different sequences of one model run at the same time.

    Raises, in all methods: samebit.ArgumentError for tokens and settings that do not exist, LimitError when the context is full,
    KeyboardInterrupt after Ctrl-C. The sequence is then as long as it was, but for tokens that a generation had put behind it.
    """

    def __init__(self, model, options):
        known = library()
        self._library = known
        self.model = model
        self._lock = threading.RLock()
        self._options = options
        pointer = ctypes.c_void_p()
        known.call("sb_llm_session_create", model.pointer, ctypes.byref(options), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_llm_session_destroy)

    def __len__(self):
        """How many positions the sequence has."""
        return self._library.sb_llm_session_length(self.pointer)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    def __repr__(self):
        return f"<samebit.llm.Sequence of {self.model!r}>" if self.closed else (
            f"<samebit.llm.Sequence of {len(self)} positions, {self.model!r}>")

    def __bool__(self):
        return True  # an empty sequence, too

    def trim(self, length: int = 0):
        """Forgets all positions from `length` on. 0 begins anew."""
        with self._lock:
            self._library.call("sb_llm_session_trim", self.pointer, length)

    def interrupt(self):
        """Ends the run in progress, or else the next one, with samebit.Interrupted. Any thread may call this."""
        pointer = self._address
        if pointer is not None:
            self._library.sb_llm_session_interrupt(pointer)

    def clear_interrupt(self):
        """Takes back an interrupt that no run has reported yet."""
        pointer = self._address
        if pointer is not None:
            self._library.sb_llm_session_clear_interrupt(pointer)

    def _call(self, name, *arguments):
        """A function of the library on this sequence, which Ctrl-C ends early."""
        interruptible(self, self._library.call, name, self.pointer, *arguments)

    # ---- logits ----

    def step(self, tokens, wanted=None, *, tensor: bool = False):
        """Puts tokens behind the sequence, and gives logits.

        Parameters
        ----------
        tokens : list of int, or array
            At least one.
        wanted : list of int, optional
            The places in `tokens` of those whose logits are wanted; by default the last one's.
        tensor : bool
            Whether a samebit.Tensor is given, for whatever speaks DLPack (`torch.from_dlpack(logits)`), rather than an array
            of numpy.

        Returns
        -------
        numpy.ndarray
            float32 [len(wanted), vocabulary], read-only, over the library's memory, which it keeps alive. As a tensor it has an
            axis of 1 in front.
        """
        ids = id_array(tokens)
        places = id_array([len(ids) - 1] if wanted is None else wanted, "wanted places")
        pointer = ctypes.c_void_p()
        with self._lock:
            self._call("sb_llm_step", len(ids), address_of_ids(ids), len(places), address_of_ids(places),
                       ctypes.byref(pointer))
        logits = Tensor(pointer.value)
        return logits if tensor else logits.numpy()[0]

    def score(self, tokens, *, top: int = 0, chunk: int = 0) -> Scores:
        """Puts tokens behind the sequence, and says what the model made of them.

        Parameters
        ----------
        tokens : list of int, or array
            At least one.
        top : int
            How many of the likeliest tokens are wanted in each place.
        chunk : int
            The most tokens in one run, up to 512; 0: as many as have 128 MiB of logits. Changes no bit.
        """
        ids = id_array(tokens)
        if not 0 <= top <= self.model.description.vocabulary:
            raise ArgumentError(f"the likeliest {top} tokens of {self.model.description.vocabulary} are asked for")
        logps = numpy.empty(len(ids), numpy.float32)
        top_tokens = numpy.empty((len(ids), top), numpy.int64)
        top_logps = numpy.empty((len(ids), top), numpy.float32)
        scoring = LlmScoring(ctypes.sizeof(LlmScoring), chunk, 0, logps.ctypes.data, top, top_tokens.ctypes.data,
                             top_logps.ctypes.data)
        with self._lock:
            self._call("sb_llm_score", len(ids), address_of_ids(ids), ctypes.byref(scoring))
        return Scores(numpy.array(ids, numpy.int64), logps, top_tokens, top_logps)

    def embed(self, tokens, pooling="mean", *, wanted=None, chunk: int = 0):
        """Puts tokens behind the sequence, and gives their final hidden states; see `Model.embed`."""
        if pooling not in POOLINGS:
            raise ArgumentError(f"the pooling {pooling!r} is not known; there are {', '.join(map(repr, POOLINGS))}")
        ids = id_array(tokens)
        places = id_array(wanted, "wanted places") if wanted is not None else None
        about = LlmEmbedding(ctypes.sizeof(LlmEmbedding), POOLINGS[pooling], len(places or ()),
                             address_of_ids(places) if places is not None else None, chunk)
        pointer = ctypes.c_void_p()
        with self._lock:
            self._call("sb_llm_embed", len(ids), address_of_ids(ids), ctypes.byref(about), ctypes.byref(pointer))
        states = Tensor(pointer.value).numpy()
        return states if pooling is None else states[0]

    def perplexity(self, tokens, *, method="full", window=0, stride=0, begin=None, limit=0, chunk=0) -> Perplexity:
        """The perplexity of tokens, without the one that texts begin with; see `Model.perplexity`. The sequence is empty
        afterwards."""
        if method not in WINDOWS:
            raise ArgumentError(f"the method {method!r} is not known; there are {', '.join(map(repr, WINDOWS))}")
        ids = id_array(tokens)
        how = LlmPerplexity(ctypes.sizeof(LlmPerplexity), WINDOWS[method], window, stride, -1 if begin is None else begin,
                            limit, chunk, None, None)
        result = LlmPerplexityResult()
        with self._lock:
            self._call("sb_llm_measure_perplexity", len(ids), address_of_ids(ids), ctypes.byref(how),
                       ctypes.byref(result))
        return Perplexity(result.perplexity, result.error, result.mean, result.scored, result.tokens, result.windows,
                          result.digest.decode())

    # ---- generating ----

    def _generate(self, ids, limit, chosen, ignore_stops, chunk, told, digest=False):
        """One generation of the library's; told(LlmToken) hears of each new token. A digest of the logits takes 0.5 ms a token
        of 128,256."""
        failures = []

        def hear(_, token, stop, report):
            try:
                told(token.contents)
                return 0
            except BaseException as failure:  # nothing of Python may pass through the library
                failures.append(failure)
                report.contents.status = _CALLBACK_FAILED
                return _CALLBACK_FAILED

        callback = ON_TOKEN(hear)
        generation = LlmGeneration(ctypes.sizeof(LlmGeneration), limit, chunk, chosen, ignore_stops, False,
                                   ctypes.cast(callback, ctypes.c_void_p), None, None, None, 0, False, not digest, True)
        result = LlmResult()
        try:
            self._call("sb_llm_generate", len(ids), address_of_ids(ids), ctypes.byref(generation), ctypes.byref(result))
        except Exception:
            if failures:
                raise failures[0] from None
            raise
        return result

    def generate(self, tokens, count: int = 128, *, ignore_stops: bool = False, chunk: int = 0, tokenizer=None,
                 digest: bool = True, **settings) -> Generation:
        """Puts tokens behind the sequence, and then one new token after the other. The last new one is not put behind it: it is the
        first of whatever comes next. See `Model.generate` for the settings.

        Parameters
        ----------
        tokens : list of int, or array
            The prompt: at least one.
        tokenizer : Tokenizer, optional
            Makes text of the new tokens.
        """
        ids, new, logps = id_array(tokens), [], []

        def told(token):
            new.append(token.token)
            logps.append(token.logp)

        with self._lock:
            result = self._generate(ids, count, sampling(**settings), ignore_stops, chunk, told, digest)
        end = ENDS[result.end]
        said = new[:-1] if end == "stop" else new
        return Generation(new, logps, tokenizer.decode(said, skip_special=True) if tokenizer is not None else None, end,
                          result.digest.decode(), result.prompt_tokens, result.prompt_ns / 1e9,
                          result.first_token_ns / 1e9, result.decode_ns / 1e9 if new else 0.0)

    def stream(self, tokens, count: int = 128, *, ignore_stops: bool = False, chunk: int = 0, tokenizer=None,
               **settings):
        """The same token by token: an iterator of Token, which computes each when it is asked for. It may be left at any time. The
        tokens are those of `generate`, and so is the text of all of them together."""
        chosen = sampling(**settings)
        decoder = tokenizer.decoder() if tokenizer is not None else None
        ids, heard = id_array(tokens), []
        for index in range(count):
            with self._lock:
                self._generate(ids, 1, chosen, ignore_stops, chunk,
                               lambda token: heard.append((token.token, token.position, token.logp, token.stops)))
                token, position, logp, stops = heard.pop()
                is_last = stops or index + 1 == count or len(self) == self.model.description.context
            text = None if decoder is None else "" if stops else decoder.push(token)
            if decoder is not None and is_last:
                text += decoder.finish()
            yield Token(token, position, logp, stops, text)
            if is_last:
                return
            ids = id_array([token])
