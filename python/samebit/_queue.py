"""Many prompts at once: a queue of requests over a batch of sequences, each with the bits that it has alone."""

import ctypes

from ._errors import ArgumentError, ArgumentTypeError, Error
from ._handles import Handle
from ._interrupts import interruptible
from ._library import library
from ._sequence import ENDS, Generation, sampling
from ._structures import (
    ON_END,
    ON_TOKEN,
    LlmBatchOptions,
    LlmGeneration,
    LlmQueueOptions,
    LlmRequest,
)
from ._tokenizer import address_of_ids, id_array

PAGE_POSITIONS = 16


class _Batch(Handle):
    """Sequences on pages that they share."""

    def __init__(self, model, pages, options):
        known = self._library = library()
        self._options = options
        given = LlmBatchOptions(ctypes.sizeof(LlmBatchOptions), pages, ctypes.pointer(options))
        pointer = ctypes.c_void_p()
        known.call("sb_llm_batch_create", model.pointer, ctypes.byref(given), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_llm_batch_release)

    def interrupt(self):
        self._library.sb_llm_batch_interrupt(self.pointer)

    def clear_interrupt(self):
        """A batch is for one call: an interrupt that came too late goes with it."""


class _Answer:
    """A request, and what comes of it."""

    def __init__(self, index, ids, count, ignore_stops, chunk, digest, tokenizer, settings):
        self.index, self.tokenizer = index, tokenizer
        self.tokens, self.logps = [], []
        self.generation = self.failure = None
        self.ids = id_array(ids)  # which the library copies
        self.chosen = sampling(**settings)  # whose biases it does not
        self.on_token, self.on_end = ON_TOKEN(self._hear), ON_END(self._end)
        self.request = LlmRequest(
            ctypes.sizeof(LlmRequest), len(self.ids), address_of_ids(self.ids),
            LlmGeneration(ctypes.sizeof(LlmGeneration), count, chunk, self.chosen, ignore_stops, False,
                          ctypes.cast(self.on_token, ctypes.c_void_p), None, None, None, 0, False, not digest, True),
            self.on_end)

    def _hear(self, _, token, stop, report):
        self.tokens.append(token.contents.token)
        self.logps.append(token.contents.logp)
        return 0

    def _end(self, _, status, report, result):
        if status:
            try:
                library().check(status, report.contents)
            except Error as failure:
                self.failure = failure
            return
        made = result.contents
        self.numbers = (made.digest.decode(), made.prompt_tokens, made.prompt_ns / 1e9, made.first_token_ns / 1e9,
                        made.decode_ns / 1e9 if self.tokens else 0.0)
        self.end = ENDS[made.end]

    def finish(self):
        """The Generation. (Text is made here: nothing that may raise belongs into a callback.)"""
        if self.failure is not None:
            raise type(self.failure)(f"prompt {self.index}: {self.failure}", self.failure.status)
        said = self.tokens[:-1] if self.end == "stop" else self.tokens
        text = self.tokenizer.decode(said, skip_special=True) if self.tokenizer is not None else None
        return Generation(self.tokens, self.logps, text, self.end, *self.numbers)


def _pages_for(answers, context, parallel):
    """Pages for those that take most, as many as run at a time."""
    each = sorted((min(len(a.ids) + a.request.generation.limit, context) + PAGE_POSITIONS - 1) // PAGE_POSITIONS
                  for a in answers)
    return max(1, sum(each[-parallel:]))


def _ask(model, index, prompt, count, ignore_stops, chunk, digest, tokenizer, settings):
    """A prompt, or a dict of one and what is its own: {"prompt": …, "count": …, "temperature": …}."""
    if isinstance(prompt, dict):
        own = dict(prompt)
        if "prompt" not in own:
            raise ArgumentError(f'prompt {index} is a dict without "prompt"; of settings beside, it may have those of generate')
        prompt = own.pop("prompt")
        count, ignore_stops = own.pop("count", count), own.pop("ignore_stops", ignore_stops)
        settings = {**settings, **own}
    ids = (tokenizer or model.tokenizer).encode(prompt) if isinstance(prompt, str) else model.encode(prompt)
    try:
        return _Answer(index, ids, count, ignore_stops, chunk, digest, model._tokenizer_for(prompt, tokenizer), settings)
    except TypeError as failure:
        raise ArgumentTypeError(f"prompt {index}: {failure}") from None


def generate_many(model, options, prompts, count, parallel, pages, ignore_stops, chunk, digest, tokenizer, settings):
    """A Generation for each prompt, in their order."""
    if parallel < 1:
        raise ArgumentError(f"{parallel} prompts at a time: at least one is")
    answers = [_ask(model, index, prompt, count, ignore_stops, chunk, digest, tokenizer, settings)
               for index, prompt in enumerate(prompts)]
    if not answers:
        return []
    known = library()
    batch = _Batch(model, pages or _pages_for(answers, model.description.context, parallel), options)
    queue = ctypes.c_void_p()
    how = LlmQueueOptions(ctypes.sizeof(LlmQueueOptions), parallel, 0, False)
    try:
        known.call("sb_llm_queue_create", batch.pointer, ctypes.byref(how), ctypes.byref(queue))
        for answer in answers:
            try:
                known.call("sb_llm_queue_add", queue, ctypes.byref(answer.request))
            except Error as failure:
                raise type(failure)(f"prompt {answer.index}: {failure}", failure.status) from None
        interruptible(batch, known.call, "sb_llm_queue_run", queue)
    finally:
        known.sb_llm_queue_destroy(queue)
        batch.close()
    return [answer.finish() for answer in answers]
