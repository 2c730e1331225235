#!/usr/bin/env python3
"""Networks that PyTorch's exporter writes today, by Samebit and by ONNX Runtime.

    python tools/zoo/exported.py --library build/src/libsamebit.so --folder FOLDER [--only REGEX] [--seconds S] [--threads N]

For a Python that has torch, timm, transformers, onnxscript, onnx, onnxruntime and numpy (CPU wheels do), and for more networks what varied.py names.
Exports the networks of the tables here, in varied.py and in drafted.py, with random weights, and some of them in other forms (FORMS), once below
--folder; runs each on N threads by both engines (one unless said); says the largest difference beside the largest value, and times both in turn:

    bench exported/NAME/tN samebit=MS peer=MS unit=ms ratio=PEER/SAMEBIT worst=DIFFERENCE

With --seconds 0 it only exports. What neither exporter can write is said and left out. Exit status 1 when a model is refused, a shape differs, or a
difference is above 1e-3 (LARGEST_DIFFERENCE has others): where a network decides by comparing numbers (which points are kept), one on the other side is such a difference, too. exported_gpu.py compares
with PyTorch on a GPU.
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
warnings.filterwarnings("ignore")

import ml_dtypes  # noqa: E402
import numpy  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402

import drafted  # noqa: E402
import quantized  # noqa: E402
import varied  # noqa: E402

MOST_SECONDS = 120  # for one model
SMALL = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, vocab_size=1000)
SEEING = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256)
DECODER = dict(SMALL, use_cache=False)
GROUPED = dict(DECODER, num_key_value_heads=2)
DETECTOR = dict(use_pretrained_backbone=False, use_timm_backbone=True, backbone="resnet18", d_model=64, encoder_layers=2, decoder_layers=2,
                encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)

TIMM = """
    mobilenetv4_conv_small efficientvit_b0 fastvit_t8 convnextv2_atto mobilevitv2_050 ghostnetv2_100 edgenext_xx_small poolformer_s12 levit_128s
    mixer_s32_224 xcit_nano_12_p16_224 coat_tiny hrnet_w18_small tiny_vit_5m_224 mambaout_femto starnet_s1 repvgg_a0 inception_v3 densenet121 dla34
    res2net50_26w_4s swin_tiny_patch4_window7_224 maxvit_rmlp_pico_rw_256 hiera_tiny_224 rexnet_100 regnety_002 davit_tiny cait_xxs24_224
    twins_svt_small crossvit_9_240 beit_base_patch16_224 eva02_tiny_patch14_224 resnest14d sequencer2d_s gmlp_s16_224 focalnet_tiny_srf volo_d1_224
    pit_ti_224 gcvit_xxtiny pvt_v2_b0 mvitv2_tiny efficientformer_l1 efficientformerv2_s0 tf_efficientnetv2_b0 mixnet_s lcnet_050 xception41
    ese_vovnet19b_dw gernet_s skresnet18 haloregnetz_b lambda_resnet26t botnet26t_256 visformer_tiny swinv2_tiny_window8_256 repvit_m0_9 rdnet_tiny
    convmixer_768_32 resmlp_12_224 nfnet_l0""".split()


def tokens(count=64, vocabulary=1000):
    return torch.randint(5, vocabulary, (1, count))


def text(count=64):
    return {"input_ids": tokens(count), "attention_mask": torch.ones(1, count, dtype=torch.long)}


def picture(*shape):
    return {"pixel_values": torch.randn(1, *shape)}


DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
EXPORTERS = (dict(dynamo=True, verbose=False, external_data=False), dict(dynamo=False, opset_version=17))

# Networks of the tables in another form: in 16 bits, by the exporter of TorchScript, quantised. Names are NETWORK:FORM.
FORMS = {
    "f16": """
        resnet18 mobilenet_v2 vit_b_32 convnext_tiny bert llama-step whisper-decoder unet2d-condition dac-decoder segformer
        gat edsr conformer""",
    "bf16": "squeezenet1_1 vit_b_32 bert llama-step edsr unet2d-condition",
    "script": "resnet18 bert gpt2 whisper-decoder unet2d lstm-tagger gru-tagger conv-lstm segformer detr spline-flow",
    "qdq": """
        resnet18 mobilenet_v2 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x1_0 efficientnet_b0 vit_b_32 bert smp-unet edsr
        whisper-decoder""",
    "qoperator": "resnet18 mobilenet_v2 mobilenet_v3_small squeezenet1_1 vit_b_32 bert edsr",
    "dynamic": "resnet18 vit_b_32 bert gpt2 llama-step whisper-decoder set-transformer lstm-tagger",
}
VARIANTS = [f"{name}:{form}" for form, which in FORMS.items() for name in which.split()]
# Of an output's largest element, by form or by network. Quantised sums on the other side of a half are a step of 255, and the next layers'
# with them: the peer's outputs of smp-unet differ by 6e-2 when its input does by 1e-5. Masks of Mask R-CNN are pasted where corners of boxes
# lie, which magnifies theirs.
LARGEST_DIFFERENCE = {"f16": 2e-2, "bf16": 1e-1, "qdq": 6e-2, "qoperator": 6e-2, "dynamic": 2e-2, "maskrcnn_resnet50_fpn": 1e-2}
REFUSED = {"qoperator": "com.microsoft:"}  # what the refusal of a form names, where Samebit lacks its operators on purpose

# Class, configuration, its arguments, and what makes inputs.
TRANSFORMERS = {
    "bert": ("BertModel", "BertConfig", SMALL, text),
    "deberta-v2": ("DebertaV2Model", "DebertaV2Config", dict(SMALL, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=32), text),
    "albert": ("AlbertModel", "AlbertConfig", SMALL, text),
    "distilbert": ("DistilBertModel", "DistilBertConfig", dict(dim=128, n_layers=3, n_heads=4, hidden_dim=256, vocab_size=1000), text),
    "modernbert": ("ModernBertModel", "ModernBertConfig",
                   dict(SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2), text),
    "mobilebert": ("MobileBertModel", "MobileBertConfig", dict(vocab_size=1000, num_hidden_layers=3), text),
    "squeezebert": ("SqueezeBertModel", "SqueezeBertConfig", dict(SMALL, embedding_size=128), text),
    "convbert": ("ConvBertModel", "ConvBertConfig", dict(SMALL, embedding_size=128), text),
    "roformer": ("RoFormerModel", "RoFormerConfig", SMALL, text),
    "mpnet": ("MPNetModel", "MPNetConfig", SMALL, text),
    "xlnet": ("XLNetModel", "XLNetConfig", dict(d_model=128, n_layer=2, n_head=4, d_inner=256, vocab_size=1000), text),
    "funnel": ("FunnelModel", "FunnelConfig", dict(vocab_size=1000, d_model=128, n_head=4, d_head=32, d_inner=256, block_sizes=[1, 1, 1]), text),
    "longformer": ("LongformerModel", "LongformerConfig", dict(SMALL, attention_window=32), text),
    "fnet": ("FNetModel", "FNetConfig", dict(vocab_size=1000, hidden_size=128, num_hidden_layers=3, intermediate_size=256),
             lambda: {"input_ids": tokens()}),
    "canine": ("CanineModel", "CanineConfig", dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128),
               lambda: {"input_ids": tokens(256)}),
    "t5": ("T5EncoderModel", "T5Config", dict(d_model=128, d_kv=32, d_ff=256, num_layers=3, num_heads=4, vocab_size=1000), text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", GROUPED, lambda: {"input_ids": tokens()}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", GROUPED, lambda: {"input_ids": tokens()}),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", dict(GROUPED, head_dim=32), lambda: {"input_ids": tokens()}),
    "phi": ("PhiForCausalLM", "PhiConfig", DECODER, lambda: {"input_ids": tokens()}),
    "olmo2": ("Olmo2ForCausalLM", "Olmo2Config", DECODER, lambda: {"input_ids": tokens()}),
    "cohere": ("CohereForCausalLM", "CohereConfig", DECODER, lambda: {"input_ids": tokens()}),
    "gpt-neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", DECODER, lambda: {"input_ids": tokens()}),
    "opt": ("OPTForCausalLM", "OPTConfig", dict(vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, ffn_dim=256,
                                                word_embed_proj_dim=128, use_cache=False), lambda: {"input_ids": tokens()}),
    "falcon": ("FalconForCausalLM", "FalconConfig", dict(vocab_size=1000, hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
                                                         use_cache=False), lambda: {"input_ids": tokens()}),
    "bloom": ("BloomForCausalLM", "BloomConfig", dict(hidden_size=128, n_layer=3, n_head=4, vocab_size=1000, use_cache=False),
              lambda: {"input_ids": tokens()}),
    "mamba": ("MambaForCausalLM", "MambaConfig", dict(hidden_size=64, num_hidden_layers=2, vocab_size=1000, use_cache=False),
              lambda: {"input_ids": tokens(16)}),
    "mamba2": ("Mamba2ForCausalLM", "Mamba2Config", dict(hidden_size=64, num_hidden_layers=2, vocab_size=1000, num_heads=8, head_dim=16, state_size=16,
                                                         n_groups=1, use_cache=False), lambda: {"input_ids": tokens(32)}),
    "recurrent-gemma": ("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", dict(DECODER, lru_width=128), lambda: {"input_ids": tokens(32)}),
    "wav2vec2": ("Wav2Vec2Model", "Wav2Vec2Config", SMALL, lambda: {"input_values": torch.randn(1, 16000)}),
    "hubert": ("HubertModel", "HubertConfig", SMALL, lambda: {"input_values": torch.randn(1, 16000)}),
    "wavlm": ("WavLMModel", "WavLMConfig", SMALL, lambda: {"input_values": torch.randn(1, 16000)}),
    "sew": ("SEWModel", "SEWConfig", SMALL, lambda: {"input_values": torch.randn(1, 16000)}),
    "encodec": ("EncodecModel", "EncodecConfig", {}, lambda: {"input_values": torch.randn(1, 1, 4800)}),
    "ast": ("ASTModel", "ASTConfig", dict(SEEING, max_length=256), lambda: {"input_values": torch.randn(1, 256, 128)}),
    "clap-audio": ("ClapAudioModel", "ClapAudioConfig", dict(depths=[1, 1, 1, 1], num_attention_heads=[2, 2, 4, 4], hidden_size=256,
                                                             patch_embeds_hidden_size=32), lambda: {"input_features": torch.randn(1, 1, 1001, 64)}),
    "clip": ("CLIPModel", "CLIPConfig", dict(text_config=SMALL, vision_config=dict(SEEING, image_size=224, patch_size=32)),
             lambda: {**text(16), **picture(3, 224, 224)}),
    "owlvit": ("OwlViTModel", "OwlViTConfig", dict(text_config=SMALL, vision_config=dict(SEEING, image_size=128)),
               lambda: {**text(16), **picture(3, 128, 128)}),
    "siglip": ("SiglipVisionModel", "SiglipVisionConfig", SEEING, lambda: picture(3, 224, 224)),
    "layoutlmv3": ("LayoutLMv3Model", "LayoutLMv3Config", dict(SMALL, coordinate_size=24, shape_size=16),
                   lambda: {**text(16), **picture(3, 224, 224), "bbox": torch.randint(0, 1000, (1, 16, 4))}),
    "segformer": ("SegformerForSemanticSegmentation", "SegformerConfig", {}, lambda: picture(3, 256, 256)),
    "upernet": ("UperNetForSemanticSegmentation", "UperNetConfig", dict(hidden_size=64, use_auxiliary_head=False), lambda: picture(3, 128, 128)),
    "detr": ("DetrForObjectDetection", "DetrConfig", DETECTOR, lambda: picture(3, 256, 256)),
    "deformable-detr": ("DeformableDetrForObjectDetection", "DeformableDetrConfig", DETECTOR, lambda: picture(3, 256, 256)),
    "rt-detr": ("RTDetrForObjectDetection", "RTDetrConfig", {}, lambda: picture(3, 320, 320)),
    "yolos": ("YolosForObjectDetection", "YolosConfig", dict(SEEING, image_size=[224, 224]), lambda: picture(3, 224, 224)),
    "depth-anything": ("DepthAnythingForDepthEstimation", "DepthAnythingConfig", {}, lambda: picture(3, 224, 224)),
    "zoedepth": ("ZoeDepthForDepthEstimation", "ZoeDepthConfig", {}, lambda: picture(3, 128, 128)),
    "swin2sr": ("Swin2SRForImageSuperResolution", "Swin2SRConfig", dict(embed_dim=60, depths=[2, 2], num_heads=[6, 6]), lambda: picture(3, 64, 64)),
    "vitdet": ("VitDetModel", "VitDetConfig", dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4), lambda: picture(3, 224, 224)),
    "sam-vision": ("SamVisionModel", "SamVisionConfig", dict(hidden_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=256,
                                                             global_attn_indexes=[1], window_size=7), lambda: picture(3, 256, 256)),
    "superpoint": ("SuperPointForKeypointDetection", "SuperPointConfig", {}, lambda: picture(3, 128, 128)),
    "efficientloftr": ("EfficientLoFTRModel", "EfficientLoFTRConfig", {}, lambda: picture(2, 3, 128, 128)),
    "videomae": ("VideoMAEModel", "VideoMAEConfig", dict(hidden_size=96, num_hidden_layers=2, num_attention_heads=4, intermediate_size=192, image_size=64),
                 lambda: picture(16, 3, 64, 64)),
    "patchtst": ("PatchTSTForPrediction", "PatchTSTConfig", dict(num_input_channels=3, context_length=64, patch_length=8, prediction_length=16,
                                                                 d_model=32), lambda: {"past_values": torch.randn(1, 64, 3)}),
}


class Late(Exception):
    """A model took longer than it may."""


def stop(*_):
    raise Late(f"more than {MOST_SECONDS} s")


def largest_allowed(name):
    network, _, form = name.partition(":")
    return LARGEST_DIFFERENCE.get(form or network, 1e-3)


def names():
    """Of all networks, in order."""
    return [*TRANSFORMERS, *TIMM, *varied.NETWORKS, *drafted.NETWORKS, *VARIANTS]


def make_single(name):
    """A network of f32 and its inputs by name."""
    torch.manual_seed(0)
    for table in (varied.NETWORKS, drafted.NETWORKS):
        if name in table:
            return table[name]()
    if name in TRANSFORMERS:
        import transformers

        network, config, arguments, inputs = TRANSFORMERS[name]
        return getattr(transformers, network)(getattr(transformers, config)(**arguments)).eval(), inputs()
    import timm

    network = timm.create_model(name, pretrained=False, num_classes=100).eval()
    return network, {"x": torch.randn(1, *network.default_cfg["input_size"])}


def make(name, dtype=torch.float32):
    """A network and its inputs by name, of which what is floating point has the dtype."""
    name, _, variant = name.partition(":")
    network, inputs = make_single(name)
    dtype = DTYPES.get(variant, dtype)
    return network.to(dtype), {key: value.to(dtype) if value.is_floating_point() else value for key, value in inputs.items()}


def write(network, inputs, part, exporters):
    """By the first exporter that can. Networks that are called with tensors in order have inputs of the names given here."""
    ordered = isinstance(network, varied.Calls)
    arguments, options = (tuple(inputs.values()), dict(input_names=list(inputs))) if ordered else ((), dict(kwargs=inputs))
    errors = []
    for exporter in exporters:
        try:
            with torch.no_grad():
                torch.onnx.export(network, arguments, str(part), **options, **exporter)
            return
        except Exception as error:  # pylint: disable=broad-except
            if isinstance(error, Late):
                raise
            errors.append(error)
    raise errors[0]


def export(name, path, dtype=torch.float32):
    """Writes the file whole or not at all."""
    variant = name.partition(":")[2]
    part = path.with_suffix(".part")
    if variant in quantized.VARIANTS:
        whole = path.with_name(name.partition(":")[0] + ".onnx")
        if not whole.exists():
            export(name.partition(":")[0], whole)
        quantized.write(variant, whole, part, feeds_of(whole, make(name)[1]))
    else:
        network, inputs = make(name, dtype)
        write(network, inputs, part, EXPORTERS[1:] if variant == "script" else EXPORTERS)
    os.replace(part, path)


def feeds_of(path, given):
    """Arrays by the names of a file's inputs, which are those given or their numbers."""
    given = list(given.items())
    by_name = dict(given)
    names_there = [value.name for value in onnx.load(str(path), load_external_data=False).graph.input]
    return {name: array_of(by_name.get(name, given[min(i, len(given) - 1)][1])) for i, name in enumerate(names_there)}


def array_of(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


class PyTorch:
    """In place of ONNX Runtime, which has nothing of bf16 on CPUs."""

    def __init__(self, name):
        self.network, self.inputs = make(name)
        self.call = (lambda: self.network(*self.inputs.values())) if isinstance(self.network, varied.Calls) else (lambda: self.network(**self.inputs))

    def run(self, _, __):
        with torch.inference_mode():
            return [array_of(value) for value in leaves(self.call())]


def leaves(value):
    """All tensors of a network's result, in the exporter's order."""
    if isinstance(value, torch.Tensor):
        return [value]
    value = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for each in value for tensor in leaves(each)]


def difference_of_numbers(mine, other):
    """The largest beside the largest finite number; not a number and infinity must be in the same places."""
    mine, other = mine.astype(numpy.float64), other.astype(numpy.float64)
    differs = (mine != other) & ~(numpy.isnan(mine) & numpy.isnan(other))
    if not differs.any():
        return 0.0
    off = numpy.abs(mine - other)[differs].max()
    return float(off / (1e-6 + numpy.abs(other[numpy.isfinite(other)]).max(initial=0))) if numpy.isfinite(off) else float("inf")


def largest_difference(ours, theirs):
    """Of numbers beside the largest one, of others the share that differs."""
    worst = 0.0
    for mine, other in zip(ours, theirs):
        if mine.shape != other.shape:
            raise ValueError(f"an output has the shape {mine.shape} where the peer's has {other.shape}")
        if mine.size and (other.dtype.kind == "f" or other.dtype == ml_dtypes.bfloat16):
            worst = max(worst, difference_of_numbers(mine, other))
        elif mine.size:
            worst = max(worst, float((mine != other).mean()))
    return worst


def quickest(run, seconds):
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(times) < 5:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def peer_for(name, path, threads):
    if name.endswith(":bf16"):
        torch.set_num_threads(threads)
        return PyTorch(name)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(samebit, name, path, seconds, threads):
    """(ratio, difference)."""
    peer = peer_for(name, path, threads)
    feeds = feeds_of(path, make(name)[1])
    session = samebit.load(str(path)).session(threads=threads)
    ours = [numpy.asarray(value) for value in session.run(feeds).values()]
    worst = largest_difference(ours, peer.run(None, feeds))
    rounds = [(quickest(lambda: session.run(feeds), seconds), quickest(lambda: peer.run(None, feeds), seconds)) for _ in range(2)]
    mine, other = (min(times) for times in zip(*rounds))
    print(f"bench exported/{name}/t{threads} samebit={1e3 * mine:.3f} peer={1e3 * other:.3f} unit=ms ratio={other / mine:.3f} worst={worst:.1e}",
          flush=True)
    return other / mine, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="where models are kept")
    parser.add_argument("--only", default="", help="models in whose name this regular expression is found")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each engine, twice")
    parser.add_argument("--threads", type=int, default=1, help="of each engine")
    arguments = parser.parse_args()
    os.environ["SAMEBIT_LIBRARY"] = arguments.library
    import samebit

    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, stop)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    ratios, wrong = [], []
    for name in [name for name in names() if re.search(arguments.only, name)]:
        path = arguments.folder / f"{name.replace(':', '.')}.onnx"
        signal.alarm(MOST_SECONDS)
        try:
            if not path.exists():
                export(name, path)
        except Exception as error:  # pylint: disable=broad-except
            print(f"# exported/{name}: not exported: {(str(error).strip() or repr(error)).splitlines()[0][:160]}", flush=True)
            continue
        finally:
            signal.alarm(0)
        if not arguments.seconds:
            continue
        try:
            ratio, worst = compare(samebit, name, path, arguments.seconds, arguments.threads)
            ratios.append(ratio)
            wrong += [name] if worst > largest_allowed(name) else []
        except Exception as error:  # pylint: disable=broad-except
            if REFUSED.get(name.partition(":")[2], "\0") in str(error):
                print(f"# exported/{name}: refused, as it has operators of {REFUSED[name.partition(':')[2]][:-1]}", flush=True)
                continue
            print(f"# exported/{name}: {type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:160]}", flush=True)
            wrong.append(name)
    if ratios:
        print(f"bench exported/mean/t{arguments.threads} ratio={statistics.geometric_mean(ratios):.3f} lowest={min(ratios):.3f} "
              f"below_0.8={sum(ratio < 0.8 for ratio in ratios)} of={len(ratios)}")
    if wrong:
        print("# wrong: " + ", ".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
