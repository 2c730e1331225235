"""Networks of kinds that exported.py's tables have not: a row is a name and a function that makes a network and its inputs.

Detectors, segmenters, video and flow of torchvision; audio of torchaudio; diffusion of diffusers; segmentation_models_pytorch; and of
transformers decoders with caches, decoders of sound, detectors, series, mixtures of experts. Networks written by hand are in drafted.py.
Imports stand in the rows, so that a package that is missing costs its rows only.
"""

import functools
import importlib

import torch

NETWORKS = {}


def import_torchaudio():
    """One that was built for another CUDA will do, and transformers imports it too."""
    cuda, torch.version.cuda = torch.version.cuda, None
    try:
        importlib.import_module("torchaudio")
    except ImportError:
        pass
    finally:
        torch.version.cuda = cuda


import_torchaudio()


class Calls(torch.nn.Module):
    """What a network does with tensors in order: exporters want one forward, and many networks have lists, caches or other names for it."""

    def __init__(self, network, call):
        super().__init__()
        self.network, self.call = network, call

    def forward(self, *tensors):
        return self.call(self.network, *tensors)


def row(name, *inputs):
    """Enters a function that makes a network, which is called with the inputs in order; shapes are of normal numbers."""

    def enter(make):
        def made():
            network = make()
            network, call = network if isinstance(network, tuple) else (network, lambda network, *tensors: network(*tensors))
            given = [torch.randn(each) if isinstance(each, tuple) else each() for each in inputs]
            return Calls(network, call).eval(), {f"input{i}": value for i, value in enumerate(given)}

        NETWORKS[name] = made
        return make

    return enter


def whole(most, *shape):
    """What makes numbers below `most`."""
    return lambda: torch.randint(5, most, shape)


def ones(*shape):
    return lambda: torch.ones(*shape, dtype=torch.long)


def level(*shape):
    """What makes numbers between 0 and 1, as pictures have them."""
    return lambda: torch.rand(*shape)


# ---- torchvision ----


def vision(name, path, *inputs, call=None, **arguments):
    def make():
        module, function = path.split(".")
        network = getattr(importlib.import_module("torchvision.models" + ("" if module == "models" else "." + module)), function)(**arguments)
        return (network, call) if call else network

    row(name, *inputs)(make)


def detect(network, image):
    return tuple(network([image])[0].values())


def segment(network, image):
    return network(image)["out"]


DETECTORS = {
    "ssdlite320_mobilenet_v3_large": 320, "ssd300_vgg16": 300, "fasterrcnn_mobilenet_v3_large_320_fpn": 224, "fasterrcnn_resnet50_fpn": 160,
    "retinanet_resnet50_fpn": 160, "fcos_resnet50_fpn": 160, "maskrcnn_resnet50_fpn": 160, "keypointrcnn_resnet50_fpn": 160,
}
for detector, size in DETECTORS.items():
    sizes = {} if detector.startswith("ssd") else dict(min_size=size, max_size=size)
    vision(detector, "detection." + detector, level(3, size, size), call=detect, weights=None, weights_backbone=None, **sizes)
for segmenter in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50", "deeplabv3_resnet50"):
    vision("seg-" + segmenter, "segmentation." + segmenter, (1, 3, 160, 160), call=segment, weights=None, weights_backbone=None)
for video in ("r3d_18", "mc3_18", "r2plus1d_18"):
    vision(video, "video." + video, (1, 3, 8, 64, 64))
vision("s3d", "video.s3d", (1, 3, 16, 224, 224))
vision("swin3d_t", "video.swin3d_t", (1, 3, 8, 96, 96))
vision("mvit_v2_s", "video.mvit_v2_s", (1, 3, 16, 224, 224))
vision("raft_small", "optical_flow.raft_small", (1, 3, 128, 128), (1, 3, 128, 128),
       call=lambda network, *images: network(*images, num_flow_updates=4)[-1])
for classifier in ("alexnet", "vgg11_bn", "squeezenet1_1", "shufflenet_v2_x1_0", "mnasnet0_5", "googlenet", "resnet18", "mobilenet_v2", "mobilenet_v3_small",
                   "efficientnet_b0", "vit_b_32", "convnext_tiny"):
    vision(classifier, "models." + classifier, (1, 3, 224, 224), **(dict(init_weights=True) if classifier == "googlenet" else {}))


# ---- torchaudio ----


def sound(name, function, *inputs, call=None, **arguments):
    def make():
        network = getattr(importlib.import_module("torchaudio.models"), function)(**arguments)
        return (network, call) if call else network

    row(name, *inputs)(make)


sound("conv-tasnet", "ConvTasNet", (1, 1, 8000), enc_num_feats=128, msk_num_feats=64, msk_num_hidden_feats=128, msk_num_layers=4, msk_num_stacks=2)
sound("wav2letter", "Wav2Letter", (1, 40, 200), num_classes=40, input_type="mfcc", num_features=40)
sound("deepspeech", "DeepSpeech", (1, 1, 60, 40), n_feature=40, n_hidden=256, n_class=40)
sound("conformer", "Conformer", (1, 100, 80), lambda: torch.tensor([100]), input_dim=80, num_heads=4, ffn_dim=256, num_layers=2,
      depthwise_conv_kernel_size=31)
sound("emformer", "Emformer", (1, 68, 80), lambda: torch.tensor([64]), input_dim=80, num_heads=4, ffn_dim=256, num_layers=2, segment_length=16,
      left_context_length=16, right_context_length=4)
sound("hdemucs", "HDemucs", (1, 2, 22050), sources=["a", "b"], channels=16)
sound("tacotron2-teacher", "Tacotron2", whole(30, 1, 24), (1, 80, 12), n_symbol=40, symbol_embedding_dim=128, encoder_embedding_dim=128, decoder_rnn_dim=256, attention_rnn_dim=256,
      prenet_dim=64, postnet_embedding_dim=128, attention_hidden_dim=64,
      call=lambda network, text, mel: network(text, torch.tensor([24]), mel, torch.tensor([12])))
sound("wavernn", "WaveRNN", (1, 1, 800), (1, 1, 80, 8), upsample_scales=[5, 5, 8], n_classes=64, hop_length=200, n_res_block=2, n_rnn=128, n_fc=128, n_freq=80)
sound("rnnt", "emformer_rnnt_model", (1, 36, 80), lambda: torch.tensor([36]), whole(30, 1, 8), lambda: torch.tensor([8]), input_dim=80, encoding_dim=128,
      num_symbols=40, segment_length=16, right_context_length=4, time_reduction_input_dim=64, time_reduction_stride=2, transformer_num_heads=4,
      transformer_ffn_dim=128, transformer_num_layers=2, transformer_dropout=0.0, transformer_activation="gelu", transformer_left_context_length=16,
      transformer_max_memory_size=0, transformer_weight_init_scale_strategy="depthwise", transformer_tanh_on_mem=True, symbol_embedding_dim=64,
      num_lstm_layers=2, lstm_layer_norm=True, lstm_layer_norm_epsilon=1e-3, lstm_dropout=0.0,
      call=lambda network, sources, lengths, targets, target_lengths: network(sources, lengths, targets, target_lengths)[0])
sound("squim-objective", "squim_objective_base", (1, 8000))


# ---- diffusers ----


def diffuse(name, model, *inputs, call, **arguments):
    row(name, *inputs)(lambda: (getattr(importlib.import_module("diffusers"), model)(**arguments), call))


BLOCKS = dict(down_block_types=["CrossAttnDownBlock2D", "DownBlock2D"], block_out_channels=[64, 128], layers_per_block=1, norm_num_groups=16,
              cross_attention_dim=64, attention_head_dim=8)
CODER = dict(block_out_channels=[32, 64], down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2, latent_channels=4,
             norm_num_groups=16)
step = functools.partial(lambda: torch.tensor([7]))
diffuse("unet2d", "UNet2DModel", (1, 3, 32, 32), step, call=lambda n, x, t: n(x, t, return_dict=False), sample_size=32, block_out_channels=[64, 128],
        down_block_types=["DownBlock2D", "AttnDownBlock2D"], up_block_types=["AttnUpBlock2D", "UpBlock2D"], layers_per_block=1, norm_num_groups=16)
diffuse("unet2d-condition", "UNet2DConditionModel", (1, 4, 32, 32), step, (1, 16, 64), call=lambda n, x, t, c: n(x, t, c, return_dict=False),
        up_block_types=["UpBlock2D", "CrossAttnUpBlock2D"], sample_size=32, **BLOCKS)
diffuse("controlnet", "ControlNetModel", (1, 4, 32, 32), step, (1, 16, 64), (1, 3, 256, 256),
        call=lambda n, x, t, c, image: n(x, t, c, image, return_dict=False), **BLOCKS)
diffuse("unet1d", "UNet1DModel", (1, 14, 32), step, call=lambda n, x, t: n(x, t, return_dict=False), in_channels=14, out_channels=14,
        extra_in_channels=0, time_embedding_type="positional", use_timestep_embedding=True, block_out_channels=[32, 64], layers_per_block=1, out_block_type="OutConv1DBlock",
        act_fn="mish", down_block_types=["DownResnetBlock1D", "DownResnetBlock1D"], up_block_types=["UpResnetBlock1D"],
        mid_block_type="MidResTemporalBlock1D", freq_shift=1)
diffuse("vae-encoder", "AutoencoderKL", (1, 3, 64, 64), call=lambda n, x: n.encode(x, return_dict=False)[0].mean, **CODER)
diffuse("vae-decoder", "AutoencoderKL", (1, 4, 32, 32), call=lambda n, x: n.decode(x, return_dict=False), **CODER)
diffuse("vq", "VQModel", (1, 3, 64, 64), call=lambda n, x: n(x, return_dict=False)[0], num_vq_embeddings=64, **dict(CODER, latent_channels=3))
diffuse("vae-tiny", "AutoencoderTiny", (1, 4, 16, 16), call=lambda n, x: n.decode(x, return_dict=False))
diffuse("vae-oobleck", "AutoencoderOobleck", (1, 8, 16), call=lambda n, x: n.decode(x, return_dict=False), decoder_channels=16, decoder_input_channels=8,
        encoder_hidden_size=16, downsampling_ratios=[2, 4, 4], channel_multiples=[1, 2, 4])
diffuse("vae-dc", "AutoencoderDC", (1, 4, 8, 8), call=lambda n, x: n.decode(x, return_dict=False), latent_channels=4, attention_head_dim=8,
        decoder_block_types=["ResBlock", "EfficientViTBlock"], decoder_block_out_channels=[32, 64], decoder_layers_per_block=[1, 1],
        decoder_qkv_multiscales=[[], [5]], encoder_block_types=["ResBlock", "EfficientViTBlock"], encoder_block_out_channels=[32, 64],
        encoder_layers_per_block=[1, 1], encoder_qkv_multiscales=[[], [5]], decoder_norm_types="rms_norm", decoder_act_fns="silu")
diffuse("dit", "DiTTransformer2DModel", (1, 4, 16, 16), step, step, call=lambda n, x, t, c: n(x, t, c, return_dict=False), num_attention_heads=4,
        attention_head_dim=32, in_channels=4, out_channels=8, num_layers=2, sample_size=16)
diffuse("sd3", "SD3Transformer2DModel", (1, 4, 16, 16), (1, 12, 64), (1, 32), step, sample_size=16, in_channels=4, num_layers=2, attention_head_dim=32,
        num_attention_heads=4, joint_attention_dim=64, caption_projection_dim=128, pooled_projection_dim=32, out_channels=4,
        call=lambda n, x, c, p, t: n(x, c, p, t, return_dict=False))
diffuse("flux", "FluxTransformer2DModel", (1, 64, 16), (1, 12, 64), (1, 32), lambda: torch.tensor([0.5]), in_channels=16, num_layers=1, num_single_layers=1,
        attention_head_dim=32, num_attention_heads=4, joint_attention_dim=64, pooled_projection_dim=32, axes_dims_rope=[8, 12, 12],
        call=lambda n, x, c, p, t: n(x, c, p, t, torch.zeros(64, 3), torch.zeros(12, 3), return_dict=False))


# ---- segmentation_models_pytorch ----


def segment_with(name, model, encoder="resnet18"):
    row("smp-" + name, (1, 3, 128, 128))(
        lambda: getattr(importlib.import_module("segmentation_models_pytorch"), model)(encoder_name=encoder, encoder_weights=None, classes=4))


for model in ("Unet", "UnetPlusPlus", "FPN", "PSPNet", "Linknet", "MAnet", "PAN", "UPerNet", "DeepLabV3Plus"):
    segment_with(model.lower(), model)
segment_with("segformer", "Segformer", "mit_b0")
segment_with("unet-effnet", "Unet", "timm-efficientnet-b0")


# ---- transformers ----


def hugging(name, model, config, *inputs, call=None, **arguments):
    """`call` has the inputs in order; without one they are the network's first arguments."""

    def make():
        transformers = importlib.import_module("transformers")
        sub = {key: getattr(transformers, value.pop("class"))(**value) if isinstance(value, dict) and "class" in value else value
               for key, value in ((key, dict(value) if isinstance(value, dict) else value) for key, value in arguments.items())}
        network = getattr(transformers, model)(getattr(transformers, config)(**sub))
        return network, call or (lambda network, *tensors: tuple(value for value in network(*tensors, return_dict=False)
                                                                 if isinstance(value, torch.Tensor)))

    row(name, *inputs)(make)


def with_cache(layers):
    """A decoder's step: what it is given, the numbers of positions, and keys and values of each layer; the cache goes out too."""

    def call(network, tokens, *cached):
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(layers):
            cache.update(cached[2 * layer], cached[2 * layer + 1], layer)
        result = network(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return (result.logits, *(each for layer in range(layers) for each in (cache.layers[layer].keys, cache.layers[layer].values)))

    return call


def cached_decoder(name, model, config, heads=2, size=32, tokens=1, **arguments):
    settings = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, vocab_size=1000, num_key_value_heads=heads)
    hugging(name, model, config, whole(1000, 1, tokens), *[(1, heads, 128, size)] * 6, call=with_cache(3), **{**settings, **arguments})


SMALL = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256, vocab_size=1000)
GROUPED = dict(SMALL, num_key_value_heads=2, use_cache=False)
EXPERTS = dict(GROUPED, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=128)
SEEING = dict(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256)
BART = dict(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256,
            vocab_size=1000)
WAVES = dict(SMALL, conv_dim=[64] * 7)


def logits(network, *tensors):
    return network(*tensors, use_cache=False).logits


def decode(network, tokens, states):
    """The decoder of a pair, beside what the encoder said."""
    return network(decoder_input_ids=tokens, encoder_outputs=(states,), use_cache=False).logits


cached_decoder("llama-step", "LlamaForCausalLM", "LlamaConfig")
cached_decoder("qwen2-step", "Qwen2ForCausalLM", "Qwen2Config")
cached_decoder("qwen3-chunk", "Qwen3ForCausalLM", "Qwen3Config", head_dim=32, tokens=16)
cached_decoder("gemma2-step", "Gemma2ForCausalLM", "Gemma2Config", head_dim=32)
cached_decoder("phi3-step", "Phi3ForCausalLM", "Phi3Config", pad_token_id=0)
cached_decoder("smollm3-step", "SmolLM3ForCausalLM", "SmolLM3Config", pad_token_id=0)
hugging("mixtral", "MixtralForCausalLM", "MixtralConfig", whole(1000, 1, 32), call=logits, num_local_experts=4, **GROUPED)
hugging("qwen3-moe", "Qwen3MoeForCausalLM", "Qwen3MoeConfig", whole(1000, 1, 32), call=logits, head_dim=32, **EXPERTS)
hugging("gpt2", "GPT2LMHeadModel", "GPT2Config", whole(1000, 1, 64), call=logits, n_embd=128, n_layer=3, n_head=4, vocab_size=1000)
hugging("gptj", "GPTJForCausalLM", "GPTJConfig", whole(1000, 1, 64), call=logits, n_embd=128, n_layer=3, n_head=4, rotary_dim=16, vocab_size=1000)
hugging("mpt", "MptForCausalLM", "MptConfig", whole(1000, 1, 64), call=logits, d_model=128, n_layers=3, n_heads=4, vocab_size=1000)
hugging("rwkv", "RwkvForCausalLM", "RwkvConfig", whole(1000, 1, 16), call=logits, hidden_size=128, num_hidden_layers=2, vocab_size=1000)
hugging("lfm2", "Lfm2ForCausalLM", "Lfm2Config", whole(1000, 1, 64), call=logits, layer_types=["conv", "full_attention", "conv"], **GROUPED)
hugging("electra", "ElectraForTokenClassification", "ElectraConfig", whole(1000, 1, 64), embedding_size=64, **SMALL)
hugging("esm", "EsmForMaskedLM", "EsmConfig", whole(30, 1, 128), ones(1, 128), position_embedding_type="rotary", pad_token_id=1, **dict(SMALL, vocab_size=33))
hugging("big-bird", "BigBirdModel", "BigBirdConfig", whole(1000, 1, 256), block_size=16, num_random_blocks=2, **SMALL)
hugging("perceiver", "PerceiverModel", "PerceiverConfig", (1, 128, 64), d_model=64, d_latents=64, num_latents=32, num_self_attends_per_block=3,
        num_self_attention_heads=4, num_cross_attention_heads=4)
hugging("tapas", "TapasModel", "TapasConfig", whole(1000, 1, 64), ones(1, 64), lambda: torch.zeros(1, 64, 7, dtype=torch.long), **SMALL)
hugging("layoutlm", "LayoutLMModel", "LayoutLMConfig", whole(1000, 1, 64), whole(1000, 1, 64, 4), **SMALL)
hugging("decision-transformer", "DecisionTransformerModel", "DecisionTransformerConfig", (1, 20, 17), (1, 20, 4), (1, 20, 1), (1, 20, 1),
        lambda: torch.arange(20)[None], call=lambda n, s, a, r, g, t: n(s, a, r, g, t, torch.ones(1, 20), return_dict=False)[:3], hidden_size=128, n_layer=3, n_head=4)

hugging("whisper-encoder", "WhisperModel", "WhisperConfig", (1, 80, 400), call=lambda n, x: n.encoder(x).last_hidden_state, max_source_positions=200, pad_token_id=0, **BART)
hugging("whisper-decoder", "WhisperForConditionalGeneration", "WhisperConfig", whole(1000, 1, 16), (1, 200, 128), call=decode, max_source_positions=200,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **BART)
hugging("t5-decoder", "T5ForConditionalGeneration", "T5Config", whole(1000, 1, 16), (1, 64, 128), call=decode, d_model=128, d_kv=32, d_ff=256,
        num_layers=3, num_heads=4, vocab_size=1000)
hugging("bart", "BartForConditionalGeneration", "BartConfig", whole(1000, 1, 64), whole(1000, 1, 16),
        call=lambda n, x, y: n(x, decoder_input_ids=y, use_cache=False).logits, **BART)
hugging("marian", "MarianMTModel", "MarianConfig", whole(1000, 1, 64), whole(1000, 1, 16), pad_token_id=0, decoder_start_token_id=0,
        call=lambda n, x, y: n(x, decoder_input_ids=y, use_cache=False).logits, **BART)
hugging("moonshine", "MoonshineForConditionalGeneration", "MoonshineConfig", (1, 16000), whole(1000, 1, 12),
        call=lambda n, x, y: n(x, decoder_input_ids=y, use_cache=False).logits, hidden_size=128, intermediate_size=256, vocab_size=1000,
        encoder_num_hidden_layers=2, decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4)
hugging("trocr-decoder", "TrOCRForCausalLM", "TrOCRConfig", whole(1000, 1, 24), call=logits, d_model=128, decoder_layers=2, decoder_attention_heads=4,
        decoder_ffn_dim=256, vocab_size=1000)
hugging("dac-decoder", "DacModel", "DacConfig", (1, 64, 20), call=lambda n, x: n.decoder(x), encoder_hidden_size=16, decoder_hidden_size=128, hidden_size=64,
        upsampling_ratios=[8, 5, 4, 2])
hugging("dac-encoder", "DacModel", "DacConfig", (1, 1, 4000), call=lambda n, x: n.encode(x, return_dict=False)[1:3], encoder_hidden_size=16, decoder_hidden_size=128,
        n_codebooks=4, codebook_size=64, downsampling_ratios=[2, 4, 5, 5])
hugging("encodec-decoder", "EncodecModel", "EncodecConfig", (1, 128, 20), call=lambda n, x: n.decoder(x), num_filters=16)
hugging("mimi", "MimiModel", "MimiConfig", (1, 1, 7680), call=lambda n, x: n(x, num_quantizers=4, return_dict=False)[:2], hidden_size=128, num_filters=16,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4, head_dim=32, intermediate_size=256, upsample_groups=128, vector_quantization_hidden_dimension=64,
        codebook_dim=64, codebook_size=128)
hugging("hifigan", "SpeechT5HifiGan", "SpeechT5HifiGanConfig", (1, 32, 80), call=lambda n, x: n(x), upsample_initial_channel=64)
hugging("univnet", "UnivNetModel", "UnivNetConfig", (1, 16, 100), (1, 16, 64), call=lambda n, x, noise: n(x, noise, return_dict=False)[0], model_hidden_channels=32)
hugging("fastspeech2", "FastSpeech2ConformerModel", "FastSpeech2ConformerConfig", whole(70, 1, 24), call=lambda n, x: n(x, return_dict=False)[:1], hidden_size=96,
        encoder_layers=1, decoder_layers=1, encoder_linear_units=128, decoder_linear_units=128, speech_decoder_postnet_units=64,
        pitch_predictor_channels=64, energy_predictor_channels=64, duration_predictor_channels=64)
hugging("vits", "VitsModel", "VitsConfig", whole(30, 1, 24), vocab_size=38, hidden_size=64, num_hidden_layers=2, ffn_dim=128, flow_size=64, spectrogram_bins=129,
        upsample_initial_channel=64, noise_scale=0.0, noise_scale_duration=0.0, use_stochastic_duration_prediction=False)
hugging("wav2vec2-conformer", "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", (1, 8000), position_embeddings_type="rotary", **WAVES)
hugging("wav2vec2-bert", "Wav2Vec2BertModel", "Wav2Vec2BertConfig", (1, 100, 160), **SMALL)
hugging("data2vec-audio", "Data2VecAudioModel", "Data2VecAudioConfig", (1, 8000), num_conv_pos_embeddings=5, **WAVES)
hugging("speech-to-text", "Speech2TextModel", "Speech2TextConfig", (1, 200, 80), call=lambda n, x: n.encoder(x).last_hidden_state, conv_channels=64,
        input_feat_per_channel=80, **BART)
hugging("parakeet", "ParakeetEncoder", "ParakeetEncoderConfig", (1, 200, 80), num_mel_bins=80, subsampling_conv_channels=64, **{
    key: value for key, value in SMALL.items() if key != "vocab_size"})

hugging("sam", "SamModel", "SamConfig", (1, 256, 16, 16), lambda: torch.rand(1, 1, 2, 2) * 200,
        call=lambda n, x, points: n(image_embeddings=x, input_points=points, return_dict=False)[:2],
        vision_config=dict(SEEING, image_size=256), prompt_encoder_config=dict(image_size=256))
hugging("mask2former", "Mask2FormerForUniversalSegmentation", "Mask2FormerConfig", (1, 3, 128, 128), decoder_layers=3, encoder_layers=1, hidden_dim=64,
        feature_size=64, mask_feature_size=64, num_attention_heads=4, encoder_feedforward_dim=128, dim_feedforward=128, num_queries=20,
        call=lambda n, x: (lambda out: (out.class_queries_logits, out.masks_queries_logits))(n(x)))
hugging("maskformer", "MaskFormerForInstanceSegmentation", "MaskFormerConfig", (1, 3, 128, 128),
        call=lambda n, x: (lambda out: (out.class_queries_logits, out.masks_queries_logits))(n(x)))
hugging("conditional-detr", "ConditionalDetrForObjectDetection", "ConditionalDetrConfig", (1, 3, 160, 160),
        call=lambda n, x: n(x, return_dict=False)[:2], use_pretrained_backbone=False, use_timm_backbone=True, backbone="resnet18", d_model=64, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)
hugging("d-fine", "DFineForObjectDetection", "DFineConfig", (1, 3, 160, 160), call=lambda n, x: n(x, return_dict=False)[:2])
hugging("dpt", "DPTForDepthEstimation", "DPTConfig", (1, 3, 192, 192), image_size=192, backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[32, 64, 96, 96],
        fusion_hidden_size=64, **dict(SEEING, num_hidden_layers=4))
hugging("glpn", "GLPNForDepthEstimation", "GLPNConfig", (1, 3, 128, 128))
hugging("vitpose", "VitPoseForPoseEstimation", "VitPoseConfig", (1, 3, 256, 192), call=lambda n, x: n(x).heatmaps,
        backbone_config={"class": "VitPoseBackboneConfig", "hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "out_indices": [3]})
hugging("clipseg", "CLIPSegForImageSegmentation", "CLIPSegConfig", whole(1000, 1, 16), (1, 3, 224, 224), call=lambda n, x, y: n(x, y).logits,
        text_config=SMALL, vision_config=dict(SEEING, image_size=224, patch_size=16), extract_layers=[0, 1, 2], projection_dim=64, reduce_dim=32)
hugging("blip-vision-text", "BlipForImageTextRetrieval", "BlipConfig", whole(1000, 1, 16), (1, 3, 128, 128), call=lambda n, x, y: n(x, y).itm_score,
        text_config=dict(SMALL, encoder_hidden_size=128), vision_config=dict(SEEING, image_size=128), image_text_hidden_size=64)
hugging("swiftformer", "SwiftFormerModel", "SwiftFormerConfig", (1, 3, 224, 224), depths=[1, 1, 2, 1], embed_dims=[24, 48, 96, 192])
hugging("dinat-cvt", "CvtModel", "CvtConfig", (1, 3, 128, 128))
hugging("vjepa2", "VJEPA2Model", "VJEPA2Config", (1, 8, 3, 64, 64), call=lambda n, x: n(x, skip_predictor=True).last_hidden_state, crop_size=64, frames_per_clip=8,
        **{key: value for key, value in SEEING.items() if key != "intermediate_size"})
hugging("timesformer", "TimesformerModel", "TimesformerConfig", (1, 4, 3, 64, 64), num_frames=4, image_size=64, **SEEING)
hugging("vit-mae", "ViTMAEModel", "ViTMAEConfig", (1, 3, 224, 224), level(1, 196), call=lambda n, x, noise: n(x, noise).last_hidden_state, **SEEING)
hugging("mgp-str", "MgpstrForSceneTextRecognition", "MgpstrConfig", (1, 3, 32, 128), call=lambda n, x: n(x).logits, hidden_size=128, num_hidden_layers=3, num_attention_heads=4)
hugging("table-transformer", "TableTransformerForObjectDetection", "TableTransformerConfig", (1, 3, 160, 160), call=lambda n, x: n(x, return_dict=False)[:2],
        use_pretrained_backbone=False, use_timm_backbone=True, backbone="resnet18", d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128)
hugging("textnet", "TextNetModel", "TextNetConfig", (1, 3, 160, 160))

SERIES = dict(prediction_length=8, context_length=24, lags_sequence=[1, 2, 3, 7], num_time_features=2, d_model=32)
for series in ("Informer", "Autoformer", "TimeSeriesTransformer"):
    hugging(series.lower(), series + "Model", series + "Config", (1, 31, ), (1, 31, 2), ones(1, 31), (1, 8), (1, 8, 2), **SERIES,
            call=lambda n, past, times, mask, future, future_times: n(past, times, mask, future_values=future, future_time_features=future_times, use_cache=False,
                                                                      return_dict=False)[0])
hugging("patchtsmixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", (1, 128, 4), call=lambda n, x: n(x).prediction_outputs, context_length=128,
        num_input_channels=4, patch_length=16, patch_stride=16, prediction_length=16, d_model=64, num_layers=3)
hugging("timesfm", "TimesFmModel", "TimesFmConfig", (1, 256), lambda: torch.zeros(1, 256, dtype=torch.long), lambda: torch.zeros(1, 1, dtype=torch.long),
        call=lambda n, x, padding, frequency: n(x, padding, frequency).last_hidden_state, head_dim=32, patch_length=32, context_length=256,
        **{key: value for key, value in SMALL.items() if key != "vocab_size"})
