"""Chat templates: conversations as the text that a model was trained on."""

import ctypes
import datetime
import json
import os
from typing import Optional

from ._errors import ArgumentTypeError
from ._handles import Handle
from ._library import library
from ._structures import LlmDate


class ChatTemplate(Handle):
    """What writes a conversation as text: the bytes that jinja2 writes in the transformers package. Any number of threads may use
    it at once.

    Parameters
    ----------
    path : path, optional
        A checkpoint: a folder with chat_template.jinja or tokenizer_config.json, or a GGUF file. Weights are not looked at.
    source : str, optional
        The template itself, in place of a checkpoint's.

    Raises
    ------
    samebit.Error
        FileError; FileFormatError for what is no template; UnsupportedError, with the name and the line, for what is not
        understood, and where the checkpoint has none.
    """

    def __init__(self, path=None, *, source: Optional[str] = None):
        known = library()
        self._library = known
        pointer = ctypes.c_void_p()
        if (path is None) == (source is None):
            raise ArgumentTypeError("a chat template is a checkpoint's or a source's: give one of them")
        if source is not None:
            given = source.encode("utf-8", "surrogatepass")
            known.call("sb_chat_template_create", given, len(given), ctypes.byref(pointer))
        else:
            known.call("sb_chat_template_load", os.fsencode(path), ctypes.byref(pointer))
        self._own(pointer.value, known.sb_chat_template_free)

    def render(self, messages, *, add_generation_prompt: bool = True, tools=None, date=None, **variables) -> str:
        """The text of a conversation.

        Parameters
        ----------
        messages : list of dict
            [{"role": "user", "content": "Hello"}, …].
        add_generation_prompt : bool
            Whether the text ends where the assistant begins.
        tools : list of dict, optional
            What the model may call.
        date : datetime.date or datetime.datetime, optional
            For templates that write one: today by default, at no time of day.
        **variables
            Whatever else the template asks for. Texts of special tokens are the checkpoint's.
        """
        given = {"messages": messages, "add_generation_prompt": add_generation_prompt, **variables}
        if tools is not None:
            given["tools"] = tools
        try:
            encoded = json.dumps(given, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError) as failure:
            raise ArgumentTypeError(f"the conversation is no JSON: {failure}") from None
        day = date if date is not None else datetime.date.today()
        moment = LlmDate(day.year, day.month, day.day, getattr(day, "hour", 0), getattr(day, "minute", 0),
                         getattr(day, "second", 0))
        text, count = ctypes.c_void_p(), ctypes.c_size_t()
        self._library.call("sb_chat_template_render", self.pointer, encoded, len(encoded), ctypes.byref(moment),
                           ctypes.byref(text), ctypes.byref(count))
        try:
            return ctypes.string_at(text, count.value).decode()
        finally:
            self._library.sb_llm_free(text)
