"""Data sets of images with object masks or boxes: find them, read them one at a time, check them."""

from __future__ import annotations

from .detection import DetectionDataset, DetectionItem, open_detection
from .masks import Item, MaskDataset, open_masks
from .naming import Cod10kName, parse_cod10k_name
from .validation import DetectionReport, Problem, ValidationReport, validate_detection, validate_masks

__all__ = [
    "Cod10kName",
    "DetectionDataset",
    "DetectionItem",
    "DetectionReport",
    "Item",
    "MaskDataset",
    "Problem",
    "ValidationReport",
    "open_detection",
    "open_masks",
    "parse_cod10k_name",
    "validate_detection",
    "validate_masks",
]
