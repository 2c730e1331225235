"""Language models, every bit of whose logits is specified.

    from samebit import llm

    model = llm.load("gemma-3-270m.gguf")             a folder of safetensors, or a GGUF file
    model.generate("The capital of France is").text   text, ids or a conversation
    for token in model.stream("Once upon a time"):    as they come
        print(token.text, end="")
    model.generate_many(prompts, parallel=32)         many together, each with the bits that it has alone
    model.embed("A text", "mean")                     final hidden states (load with hidden_states=True)
    model.replace_weights({name: tensor})             of torch or numpy, in place
    model.logits("A prompt")                          an array of numpy; tensor=True for DLPack
    model.score("A text", top=5)                      what the model makes of each token
    model.perplexity(text)
    model.tokenizer, model.chat_template              the checkpoint's
    model.sequence()                                  a sequence that goes on from call to call

docs/llm.md says what is specified.
"""

from ._chat_template import ChatTemplate
from ._language_model import Description, Model, load
from ._sequence import Generation, Perplexity, Scores, Sequence, Token
from ._tokenizer import Decoder, Tokenizer

__all__ = [
    "ChatTemplate",
    "Decoder",
    "Description",
    "Generation",
    "Model",
    "Perplexity",
    "Scores",
    "Sequence",
    "Token",
    "Tokenizer",
    "load",
]
