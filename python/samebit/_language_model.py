"""Language models: checkpoints, and what they say."""

import ctypes
import dataclasses
import os
import threading
from typing import Iterator, List, Mapping, Optional, Tuple

from ._chat_template import ChatTemplate
from ._devices import open_device
from ._engine import _number
from ._errors import ArgumentError, ArgumentTypeError
from ._handles import Handle, text
from ._library import DTYPE_NAMES, DTYPE_NUMBERS, library
from ._model import _Pool
from ._options import Settings, model_options
from ._queue import generate_many
from ._sequence import Generation, Perplexity, Scores, Sequence, Token
from ._structures import LlmOptions, LlmSampling, LlmWeight
from ._tokenizer import Tokenizer
from ._values import tensor_pointer


@dataclasses.dataclass(frozen=True)
class Description:
    """What a language model is."""

    family: str
    """ "Llama", "Gemma 3", …"""
    format: str
    """ "safetensors" or "GGUF"."""
    dtype: str
    """That it is computed in: "f32", "f16" or "bf16"."""
    layers: int
    hidden: int
    heads: int
    key_heads: int
    head_width: int
    intermediate: int
    vocabulary: int
    window: int
    """Keys that layers with a window see; 0: none has one."""
    windowed_layers: int
    declared_positions: int
    """The longest context that the checkpoint declares."""
    context: int
    """The longest that the model was loaded for."""
    parameters: int
    weight_bytes: int
    cache_bytes: int
    """What the cache of one sequence takes."""
    begin: Optional[int]
    """The token that texts begin with; None: none is named."""
    stops: Tuple[int, ...]
    """The tokens that end a text."""


def _describe(given):
    fields = {field.name: getattr(given, field.name) for field in dataclasses.fields(Description)
              if field.name not in ("family", "format", "dtype", "begin", "stops")}
    return Description(family=text(given.family), format=text(given.format), dtype=DTYPE_NAMES[given.dtype],
                       begin=given.begin if given.begin >= 0 else None, stops=tuple(given.stops[:given.stop_count]),
                       **fields)


class Model(Handle):
    """A language model, ready to run: `samebit.llm.load` makes it. Immutable but for `replace_weights`; any number of threads may use
    it at the same time.

    Prompts may be text, which the checkpoint's tokenizer encodes; a list or an array of ids; or a conversation, a list of
    {"role": …, "content": …}, which its chat template writes.
    """

    def __init__(self, path, settings, dtype, context, options, hidden_states):
        known = library()
        self._library = known
        self._path = path
        self._settings = settings
        self._pool = _Pool()
        self._lock = threading.Lock()
        self._tokenizer = self._chat_template = self._suggested = None
        given = LlmOptions(ctypes.sizeof(LlmOptions), 0 if dtype is None else _number(DTYPE_NUMBERS, "the dtype", dtype),
                           context, ctypes.pointer(options), False, hidden_states)
        pointer = ctypes.c_void_p()
        known.call("sb_llm_load", os.fsencode(path), ctypes.byref(given), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_llm_release)
        self.description = _describe(known.sb_llm_describe(pointer.value).contents)

    def __repr__(self):
        return f"<samebit.llm.Model {self.description.family}, {self.description.parameters:,} parameters>"

    # ---- text ----

    @property
    def tokenizer(self) -> Tokenizer:
        """The checkpoint's tokenizer, which is opened when it is first asked for."""
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = Tokenizer(self._path)
            return self._tokenizer

    @property
    def chat_template(self) -> ChatTemplate:
        """The checkpoint's chat template, which is read when it is first asked for."""
        with self._lock:
            if self._chat_template is None:
                self._chat_template = ChatTemplate(self._path)
            return self._chat_template

    @property
    def suggested_sampling(self) -> dict:
        """What the checkpoint's generation_config.json, or a GGUF file's metadata, says of sampling, as settings of `generate`, which does not take them by itself:
        `model.generate(prompt, **model.suggested_sampling)`. Where it says nothing, generate's own."""
        with self._lock:
            if self._suggested is None:
                given = LlmSampling()
                self._library.call("sb_llm_suggest_sampling", os.fsencode(self._path), ctypes.byref(given))
                self._suggested = {name: getattr(given, name) for name in
                                   ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")}
            return dict(self._suggested)

    def encode(self, prompt, **variables):
        """A prompt's tokens. Of a conversation, `variables` are for the template: add_generation_prompt, tools, date, …"""
        if isinstance(prompt, str):
            return self.tokenizer.encode(prompt)
        if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], dict):
            return self.tokenizer.encode(self.chat_template.render(prompt, **variables), bare=True)
        return prompt

    def _tokenizer_for(self, prompt, tokenizer):
        """The tokenizer that makes text of what comes behind a prompt; of ids only the one that was given."""
        if tokenizer is not None:
            return tokenizer
        is_text = isinstance(prompt, str) or (isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], dict))
        return self.tokenizer if is_text else None

    # ---- sequences ----

    def sequence(self, **changes) -> Sequence:
        """An empty sequence of its own, for what takes several calls: a conversation, a text that is scored piece by piece.
        `changes` are options as in samebit.llm.load that differ from the model's: threads, device, …"""
        return Sequence(self, self._settings.replaced(**changes).structure())

    def _take(self):
        return self._pool.take() or self.sequence()

    def _give(self, sequence):
        sequence.trim(0)
        self._pool.give(sequence)

    def _with_sequence(self, work):
        sequence = self._take()
        try:
            return work(sequence)
        finally:
            self._give(sequence)

    # ---- what it says ----

    def generate(self, prompt, count: int = 128, *, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
                 min_p: float = 0.0, seed: int = 0, request: int = 0, repetition_penalty: float = 1.0,
                 presence_penalty: float = 0.0, frequency_penalty: float = 0.0, logit_bias: Optional[dict] = None,
                 ignore_stops: bool = False, chunk: int = 0, digest: bool = True,
                 tokenizer: Optional[Tokenizer] = None) -> Generation:
        """Goes on with a prompt.

        Parameters
        ----------
        prompt : str, list of int, array, or list of dict
            At least one token.
        count : int
            The most new tokens.
        temperature : float
            0 takes the likeliest token; else tokens are sampled.
        top_k, top_p, min_p
            Sample from the K likeliest (0: all); from the fewest that have this probability together; from those with at least this
            share of the likeliest one's.
        seed, request : int
            What is drawn depends on them, the position and the logits, and on nothing else.
        repetition_penalty, presence_penalty, frequency_penalty : float
            Change the logits of tokens that have come: the first also of those in the prompt.
        logit_bias : dict, optional
            {token: what is added to its logit}; -inf for one that must not come.
        ignore_stops : bool
            Whether it goes on behind tokens that end a text.
        chunk : int
            The most tokens of the prompt in one run, up to 2,048; 0: 2,048 on a device, else 512. Changes no bit.
        digest : bool
            Whether the logits are digested: 0.5 ms a token of 128,256. Without, `Generation.digest` is "".
        tokenizer : Tokenizer, optional
            Another one than the checkpoint's for the text of the new tokens. For prompts of ids, where there is no text without.

        Raises
        ------
        samebit.Error
            ArgumentError, LimitError when the prompt is longer than the context, KeyboardInterrupt after Ctrl-C.
        """
        ids = (tokenizer or self.tokenizer).encode(prompt) if isinstance(prompt, str) else self.encode(prompt)
        return self._with_sequence(lambda sequence: sequence.generate(
            ids, count, ignore_stops=ignore_stops, chunk=chunk, digest=digest,
            tokenizer=self._tokenizer_for(prompt, tokenizer), temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed, request=request,
            repetition_penalty=repetition_penalty, presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty, logit_bias=logit_bias))

    def stream(self, prompt, count: int = 128, *, tokenizer: Optional[Tokenizer] = None, **settings) -> Iterator[Token]:
        """The same token by token: an iterator of samebit.llm.Token, each of which is computed when it is asked for. `settings` are
        those of `generate`."""
        ids = (tokenizer or self.tokenizer).encode(prompt) if isinstance(prompt, str) else self.encode(prompt)
        sequence = self._take()
        try:
            yield from sequence.stream(ids, count, tokenizer=self._tokenizer_for(prompt, tokenizer), **settings)
        finally:
            self._give(sequence)

    def logits(self, prompt, wanted=None, *, tensor: bool = False):
        """The logits behind a prompt: float32 [vocabulary], of the last token, or [len(wanted), vocabulary] of those whose
        places are in `wanted`. An array of numpy over the library's memory, which is read-only; with `tensor` a
        samebit.Tensor with axes [1, rows, vocabulary] for whatever speaks DLPack."""
        found = self._with_sequence(lambda sequence: sequence.step(self.encode(prompt), wanted, tensor=tensor))
        return found[0] if wanted is None and not tensor else found

    def generate_many(self, prompts, count: int = 128, *, parallel: int = 16, pages: int = 0, ignore_stops: bool = False,
                      chunk: int = 0, digest: bool = True, tokenizer: Optional[Tokenizer] = None,
                      **settings) -> List[Generation]:
        """Goes on with many prompts together, in steps that all of them share. What comes of each is what `generate` makes of it alone,
        bit for bit; beginnings that prompts have in common are run once.

        Parameters
        ----------
        prompts : iterable
            Each a prompt as in `generate`, or a dict {"prompt": …} with settings of its own beside it: "count", "ignore_stops",
            "temperature", "seed", "request" and what else `generate` samples by.
        parallel : int
            The most that run at a time. Changes no bit.
        pages : int
            Pages of 16 positions for all that run; 0: enough for the longest. Changes no bit.

        The others are as in `generate`. Where a prompt fails, the others are finished, and the first failure is raised with the prompt's
        place. Ctrl-C ends all.
        """
        return generate_many(self, self._settings.structure(), prompts, count, parallel, pages, ignore_stops, chunk,
                             digest, tokenizer, settings)

    # ---- what it is made of ----

    def replace_weights(self, weights: Mapping):
        """Replaces weights of the checkpoint, all or none, as a trainer does between two rounds: from here on the model computes what a
        checkpoint with these tensors computes. Nobody may use the model meanwhile; a sequence that has positions has to be trimmed to 0.

        Parameters
        ----------
        weights : mapping
            {name in the checkpoint: tensor}. Tensors of torch (also on a GPU, from which they are copied), arrays of numpy, or what
            speaks DLPack, with the dtype and the extents of the file. They are copied; those that are not named stay.

        Raises
        ------
        samebit.Error
            ArgumentError for a name that the checkpoint has not, and for another dtype; ShapeError; UnsupportedError for quantised
            tensors. Nothing has changed then.
        """
        items = list(weights.items())
        given = (LlmWeight * len(items))()
        try:
            for place, (name, value) in zip(given, items):
                if not isinstance(name, str):
                    raise ArgumentTypeError(f"names of weights are text, not {type(name).__name__}")
                place.name = name.encode("utf-8", "surrogateescape")
                if hasattr(value, "detach"):  # torch's: parameters have a gradient, and may lie on a GPU
                    value = value.detach().cpu()
                place.tensor = tensor_pointer(value, name=name)
            self._library.call("sb_llm_replace_weights", self.pointer, len(items), given)
        finally:
            for place in given:
                if place.tensor:
                    self._library.sb_tensor_release(place.tensor)

    # ---- what it makes of texts ----

    def embed(self, prompt, pooling: Optional[str] = "mean", *, wanted=None):
        """The final hidden states of a prompt, which the head reads: float32, of a model that was loaded with hidden_states=True.

        Parameters
        ----------
        prompt : str, list of int, array, or list of dict
            At least one token.
        pooling : str or None
            "mean": their mean, [hidden]; added in float64 in the order of the tokens, divided, and rounded once. "last": the last
            token's, [hidden]. None: a row for each, [tokens, hidden].
        wanted : list of int, optional
            Ascending places of the tokens that are looked at, by default all. Not with "last".
        """
        return self._with_sequence(lambda sequence: sequence.embed(self.encode(prompt), pooling, wanted=wanted))

    def score(self, prompt, *, top: int = 0) -> Scores:
        """What the model makes of each token of a prompt: log-probabilities, and the `top` likeliest tokens in each place."""
        return self._with_sequence(lambda sequence: sequence.score(self.encode(prompt), top=top))

    def perplexity(self, prompt, *, method: str = "full", window: int = 0, stride: int = 0, begin="auto", limit: int = 0,
                   chunk: int = 0) -> Perplexity:
        """How well the model foretells a text, over windows of it, as `samebit perplexity` measures it (docs/llm.md).

        Parameters
        ----------
        prompt : str, list of int, or array
            The text; of ids, without the one that texts begin with.
        method : str
            "full", where each token counts once, or "llama.cpp", where the second half of each window does.
        window : int
            The most positions of a window; 0: 512, or the context where that is less.
        stride : int
            With "full": how far the next window's end is; 0: half a window.
        begin : int or None, optional
            The token before each window; by default what the tokenizer puts before a text, and none for ids.
        limit : int
            Run so many windows at most; 0: all.
        chunk : int
            As in `Sequence.score`.
        """
        if isinstance(prompt, str):
            ids = self.tokenizer.encode(prompt, bare=True)
            begin = self._begin() if begin == "auto" else begin
        else:
            ids, begin = prompt, None if begin == "auto" else begin
        if begin is not None and begin < 0:
            raise ArgumentError(f"the token before each window is {begin}: None is for none")
        return self._with_sequence(lambda sequence: sequence.perplexity(
            ids, method=method, window=window, stride=stride, begin=begin, limit=limit, chunk=chunk))

    def _begin(self):
        """The token that the tokenizer puts before a text; None: none."""
        around, bare = self.tokenizer.encode("a"), self.tokenizer.encode("a", bare=True)
        return around[0] if len(around) > len(bare) and around[:1] != bare[:1] else None


def load(path, device=None, *, dtype=None, context=0, hidden_states=False, threads=0, isa="best", passes=True, reference=False,
         memory_limit=0, require_device=False, force_cpu=None, graphs="auto") -> Model:
    """Loads a language model's checkpoint.

    Parameters
    ----------
    path : path
        A folder with config.json and safetensors files, or a GGUF file (of a split one the first). It is mapped, and must not be
        changed while the model is in use.
    device : str, optional
        "cpu" (also None), "cuda", "cuda:1", a torch.device, or "auto" for a GPU where there is one.
    dtype : str, optional
        Of weights, activations and cache: "f32", "f16" or "bf16"; by default that of most of the checkpoint's matrices, and bf16
        where they are quantised.
    context : int
        The most positions that a sequence may have; 0: what the checkpoint declares, or 4096 where that is more.
    hidden_states : bool
        Whether final hidden states come out too: for `embed`.
    threads : int
        Worker threads of each sequence; 0: one per processor.
    isa, passes, reference, memory_limit, require_device, force_cpu, graphs
        As in samebit.load.

    None of the options but `dtype`, and `context` where a rule for positions goes by it, changes a bit of a result.

    Raises
    ------
    samebit.Error
        FileError; FileFormatError with file, tensor and byte offset; UnsupportedError for families, formats and settings that are
        not known, with those that are; ArgumentError; OutOfMemoryError; DeviceError.
    """
    settings = Settings(open_device(device), threads, memory_limit=memory_limit, force_cpu=force_cpu,
                        require_device=require_device, graphs=graphs)
    return Model(path, settings, dtype, context, model_options(isa, passes, reference, memory_limit, None), hidden_states)
