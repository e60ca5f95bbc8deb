"""Tiny randomly initialized observers' networks, built from configurations and saved as users save theirs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

WORDS = ("frog", "owl", "snow", "leopard", "sea", "dragon", "a", "photo", "of", "red")


def save(kind: str, folder: Path) -> Path:
    """Save a network of a kind with its tokenizer and image processor; always the same weights."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(5)
        BUILDERS[kind](folder)
    return folder


def _bert_tokenizer() -> Any:
    """Return a tokenizer that has BERT's special tokens where Grounding DINO looks for them."""
    import transformers

    words = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1012: ".", 1029: "?"}
    words |= {2000 + place: word for place, word in enumerate(WORDS)}
    vocabulary = {words.get(place, f"[unused{place}]"): place for place in range(2050)}
    return transformers.BertTokenizerFast(vocab=vocabulary, model_max_length=256)


def _clip_tokenizer() -> Any:
    """Return a tokenizer of bytes: a token a letter, so that long names are soon too long."""
    import transformers
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = list(bytes_to_unicode().values())
    names = ["!", *(letter for letter in letters if letter != "!")]
    names += [f"{letter}</w>" for letter in letters] + ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {name: place for place, name in enumerate(names)}
    return transformers.CLIPTokenizerFast(vocab=vocabulary, merges=[], pad_token="!")


def _grounding_dino(folder: Path, prefix: str = "") -> None:
    import transformers

    tokenizer = _bert_tokenizer()
    configuration = getattr(transformers, f"{prefix}GroundingDinoConfig")(
        backbone_config=transformers.SwinConfig(
            image_size=64, embed_dim=16, depths=[1, 1, 1, 1], num_heads=[1, 1, 2, 2], window_size=4,
            out_features=["stage2", "stage3", "stage4"],
        ),
        text_config=transformers.BertConfig(
            vocab_size=2050, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        ),
        d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, num_queries=20, encoder_n_points=2, decoder_n_points=2,
        fusion_dropout=0.0, fusion_droppath=0.0,
    )  # fmt: skip
    getattr(transformers, f"{prefix}GroundingDinoForObjectDetection")(configuration).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size = {"shortest_edge": 72, "longest_edge": 120}
    transformers.GroundingDinoImageProcessorPil(size=size).save_pretrained(folder)


def _owlv2(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    configuration = transformers.Owlv2Config(
        text_config={
            **sizes, "vocab_size": len(tokenizer), "max_position_embeddings": 24, "bos_token_id": len(tokenizer) - 2,
            "eos_token_id": len(tokenizer) - 1, "pad_token_id": 0,
        },
        vision_config={**sizes, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )  # fmt: skip
    network = transformers.Owlv2ForObjectDetection(configuration).eval()
    network.layer_norm.weight.data *= 0.1  # else scores are 0 or 1, and boxes of half the image
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    transformers.Owlv2ImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(folder)


_DECODER = {
    "hidden_size": 32, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "attention_downsample_rate": 2,
    "iou_head_hidden_dim": 16, "iou_head_depth": 2,
}  # fmt: skip


def _sam1(folder: Path) -> None:
    import transformers

    configuration = transformers.SamConfig(
        vision_config={
            "hidden_size": 32, "output_channels": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "image_size": 128, "patch_size": 16, "mlp_dim": 32, "window_size": 4, "global_attn_indexes": [1],
            "num_pos_feats": 16,
        },
        prompt_encoder_config={
            "hidden_size": 32, "image_size": 128, "patch_size": 16, "mask_input_channels": 4,
            "image_embedding_size": 8,
        },
        mask_decoder_config=_DECODER,
    )  # fmt: skip
    transformers.SamModel(configuration).eval().save_pretrained(folder)
    transformers.SamImageProcessorPil(
        size={"longest_edge": 128}, pad_size={"height": 128, "width": 128},
        mask_size={"longest_edge": 32}, mask_pad_size={"height": 32, "width": 32},
    ).save_pretrained(folder)  # fmt: skip


def _sam2(folder: Path) -> None:
    import transformers

    configuration = transformers.Sam2Config(
        vision_config={
            "backbone_config": {
                "model_type": "sam2_hiera_det_model", "hidden_size": 16, "num_attention_heads": 1,
                "image_size": [128, 128], "blocks_per_stage": [1, 1, 2, 1], "embed_dim_per_stage": [16, 32, 64, 128],
                "num_attention_heads_per_stage": [1, 2, 4, 8], "window_size_per_stage": [4, 4, 4, 2],
                "global_attention_blocks": [3],
            },
            "backbone_channel_list": [128, 64, 32, 16],
            "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]],
            "fpn_hidden_size": 32,
        },
        prompt_encoder_config={"hidden_size": 32, "image_size": 128, "patch_size": 16, "mask_input_channels": 4},
        mask_decoder_config=_DECODER,
    )  # fmt: skip
    transformers.Sam2Model(configuration).eval().save_pretrained(folder)


_SAM3_VISION = {
    "backbone_config": {
        "model_type": "sam3_vit_model", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 2, "image_size": 112, "pretrain_image_size": 112, "patch_size": 14, "window_size": 4,
        "global_attn_indexes": [1],
    },
    "fpn_hidden_size": 32,
    "backbone_feature_sizes": [[32, 32], [16, 16], [8, 8]],
}  # fmt: skip


def _sam3(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    layers = {
        "hidden_size": 32, "num_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "dropout": 0.0,
    }  # fmt: skip
    configuration = transformers.Sam3Config(
        vision_config=_SAM3_VISION,
        text_config={
            "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "vocab_size": len(tokenizer), "max_position_embeddings": 32, "projection_dim": 32,
            "bos_token_id": len(tokenizer) - 2, "eos_token_id": len(tokenizer) - 1, "pad_token_id": 0,
        },
        geometry_encoder_config=layers,
        detr_encoder_config=layers,
        detr_decoder_config={**layers, "num_queries": 10},
        mask_decoder_config={"hidden_size": 32, "num_upsampling_stages": 3, "num_attention_heads": 2},
    )  # fmt: skip
    transformers.Sam3Model(configuration).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _sam3_tracker(folder: Path) -> None:
    import transformers

    configuration = transformers.Sam3TrackerConfig(
        vision_config={"model_type": "sam3_vision_model", **_SAM3_VISION},
        prompt_encoder_config={"hidden_size": 32, "image_size": 112, "patch_size": 14, "mask_input_channels": 4},
        mask_decoder_config=_DECODER,
    )  # fmt: skip
    transformers.Sam3TrackerModel(configuration).eval().save_pretrained(folder)


BUILDERS: dict[str, Callable[[Path], None]] = {
    "grounding-dino": _grounding_dino,
    "mm-grounding-dino": lambda folder: _grounding_dino(folder, "MM"),
    "owlv2": _owlv2,
    "sam1": _sam1,
    "sam2": _sam2,
    "sam3": _sam3,
    "sam3-tracker": _sam3_tracker,
}
