"""Data sets of images with object masks: find them, pair them, read them one at a time, check them."""

from __future__ import annotations

from .masks import Item, MaskDataset, open_masks
from .naming import Cod10kName, parse_cod10k_name
from .validation import Problem, ValidationReport, validate_masks

__all__ = [
    "Cod10kName",
    "Item",
    "MaskDataset",
    "Problem",
    "ValidationReport",
    "open_masks",
    "parse_cod10k_name",
    "validate_masks",
]
