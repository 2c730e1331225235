"""What models are fed: things of the kind that they were made for, the same on every machine.

A maker takes a size of those that the model's row lists and gives {input: array}. Speech is a recording that one of the
packages holds; pages and lines of text are drawn; an echo is speech behind speech. Nothing is random but `rng`'s noise.
"""

import functools
import pathlib
import wave

import numpy
from PIL import Image, ImageDraw, ImageFont

RECORDING = "pipecat/services/aws/nova_sonic/ready.wav"
recordings = {}  # set by whoever has unpacked the packages: file -> path

TEXT = ("Every output bit specified", "the same bits whatever the batch", "0123456789 AEIOU aeiou", "CPU or GPU, one or eight",
        "chunked, padded, cut or whole", "run it again on a laptop")


def rng():
    return numpy.random.default_rng(1)


@functools.cache
def recording():
    """The recording as floats at 16 kHz."""
    with wave.open(str(recordings[RECORDING])) as file:
        rate, channels = file.getframerate(), file.getnchannels()
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, channels)[:, 0] / 32768
    at = numpy.arange(int(len(samples) * 16000 / rate)) * (rate / 16000)
    return numpy.interp(at, numpy.arange(len(samples)), samples).astype(numpy.float32)


def speech(count):
    """`count` samples of speech at 16 kHz: the recording again and again, a little quieter each time."""
    once = recording()
    times = -(-count // len(once))
    whole = numpy.concatenate([once * numpy.float32(0.97**i) for i in range(times)])
    return numpy.ascontiguousarray(whole[:count])


@functools.cache
def drawn(height, width, letters):
    """Lines of text in black on white, [height, width, 3] in 0..255."""
    image = Image.new("RGB", (width, height), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(letters)
    for line in range(max(1, height // (3 * letters))):
        pen.text((letters // 2, line * 3 * letters + letters // 4), TEXT[line % len(TEXT)], fill="black", font=font)
    return numpy.asarray(image, numpy.float32)


MEAN = numpy.array([0.485, 0.456, 0.406], numpy.float32)
DEVIATION = numpy.array([0.229, 0.224, 0.225], numpy.float32)


def channels_first(image):
    return numpy.ascontiguousarray(image.transpose(2, 0, 1)[None], numpy.float32)


def page(name):
    """A page of text, normalised as pictures mostly are; size: (height, width)."""
    return lambda size: {name: channels_first((drawn(*size, 28) / 255 - MEAN) / DEVIATION)}


def line(name, channels, height):
    """A line of text in -1..1; size: its width."""
    return lambda width: {name: channels_first(drawn(height, width, height * 2 // 3)[:, :, :channels] / 127.5 - 1)}


def photograph(name):
    """Channels last, with the mean of each taken off; size: (height, width)."""
    return lambda size: {name: (drawn(*size, 28) - 255 * MEAN)[None].astype(numpy.float32)}


def photograph_in_one(name):
    """Channels last, in 0..1; size: (height, width)."""
    return lambda size: {name: drawn(*size, 28)[None] / 255}


def audio(name, shape):
    """Speech, or features of its size, in any shape; size: what `shape` takes."""
    def make(size):
        dims = shape(size)
        return {name: speech(int(numpy.prod(dims))).reshape(dims)}
    return make


def waveforms(size_or_rate):
    """A waveform and its length; size: samples."""
    del size_or_rate  # front ends of other rates hear the same samples
    return lambda size: {"waveforms": speech(size)[None], "waveforms_lens": numpy.array([size], numpy.int64)}


def silero(rate=True, sequence=False):
    """A window of 512 samples behind 64 of context, and a state; or eight windows at once."""
    def make(_):
        if sequence:
            return {"input": speech(8 * 576).reshape(8, 576), "h": numpy.zeros((1, 1, 128), numpy.float32),
                    "c": numpy.zeros((1, 1, 128), numpy.float32)}
        fed = {"input": speech(9000)[None, -576:], "state": numpy.zeros((2, 1, 128), numpy.float32)}
        return {**fed, "sr": numpy.array(16000, numpy.int64)} if rate else fed
    return make


def old_silero(_):
    return {"input": speech(1536)[None], "sr": numpy.array(16000, numpy.int64),
            "h": numpy.zeros((2, 1, 64), numpy.float32), "c": numpy.zeros((2, 1, 64), numpy.float32)}


def echo(width):
    """Three spectrograms of speech (far end, microphone, enhanced) and a state; size: frames."""
    return lambda frames: {"input": speech(3 * frames * 160).reshape(1, 3, frames, 160),
                           "h0": numpy.zeros((4, 1, width), numpy.float32)}


def loss(frames):
    """A spectrogram with lost frames, and a listener; size: frames."""
    return {"degraded_audio": speech(frames * 257).reshape(1, 1, frames, 257),
            "rater_embed": rng().standard_normal((1, 64)).astype(numpy.float32)}


def pitch(samples):
    return {"audio": speech(samples)[None], "fmin": numpy.array(46.875, numpy.float32),
            "fmax": numpy.array(2093.75, numpy.float32)}


def file_bytes(count):
    """The first bytes of a source file, once a row; size: rows."""
    source = pathlib.Path(__file__).read_bytes()
    row = numpy.frombuffer((source * (count // len(source) + 1))[:count], numpy.uint8).astype(numpy.int32)
    return lambda rows: {"bytes": numpy.stack([numpy.roll(row, i) for i in range(rows)])}


def tokens(count, vocabulary):
    """Numbers of tokens, [1, count]: the bytes of TEXT, spread over the vocabulary."""
    text = " ".join(TEXT).encode()
    return numpy.array([[1 + text[i % len(text)] * 131 % (vocabulary - 1) for i in range(count)]], numpy.int64)


def sentence(vocabulary, segments=False):
    """A sentence of a BERT, nothing of it masked; size: tokens."""
    def make(count):
        fed = {"input_ids": tokens(count, vocabulary), "attention_mask": numpy.ones((1, count), numpy.int64)}
        return {**fed, "token_type_ids": numpy.zeros((1, count), numpy.int64)} if segments else fed
    return make


def letters(name, vocabulary):
    """Letters as numbers; size: letters."""
    return lambda count: {name: tokens(count, vocabulary)}


def characters(count):
    """A sentence by characters, and its length; size: characters."""
    return {"token_ids": tokens(count, 10000), "length": numpy.array([count], numpy.int64)}


def reaction(count):
    """Atoms of a reaction in a chain; size: atoms."""
    at = numpy.arange(count)
    return {"atoms": tokens(count, 17), "neighbors": 1 + tokens(count, 4),
            "distances": numpy.minimum(numpy.abs(at[:, None] - at[None]), 9)[None].astype(numpy.int64),
            "roles": (1 + (at > count // 2))[None].astype(numpy.int64)}


def name_to_read(count):
    """A name's letters; size: letters."""
    return {"src": tokens(count, 40), "src_mask": numpy.ones((1, count), bool)}


def name_read(count):
    """What a decoder has of a name while it writes the eighth letter; size: letters of the name."""
    noise = rng().standard_normal((1, count + 2, 256)).astype(numpy.float32)
    return {"prefix": tokens(8, 100), "memory": noise[:, :count].copy(), "src_mask": numpy.ones((1, count), bool),
            "hidden": noise[:, count:].copy()}


def frame(first, width, second):
    """A frame of `width` and the state of two LSTMs of 128."""
    return lambda _: {first: speech(9000)[None, None, -width:], second: numpy.zeros((1, 2, 128, 2), numpy.float32)}


def spectrum(bins):
    """The logarithm of a spectrum's power, of its kind; size: frames."""
    return lambda frames: {"input": numpy.log10(speech(frames * bins) ** 2 + 1e-6).reshape(1, frames, bins).astype(numpy.float32)}


def sleep(_):
    """Half a minute of one channel, and fifteen bands of it."""
    wave = speech(7500)
    return {"raw_signal": wave[None, None], "spectrogram": numpy.stack([wave * (1 + band) for band in range(15)])[None] ** 2}


def two_pictures(_):
    return {name: drawn(60, 60, size)[None] / 255 for name, size in (("input_1", 20), ("input_2", 24))}
