"""The 80 classes of COCO (2014 to 2017), and the numbers that COCO gives them."""

from __future__ import annotations

__all__ = ["CATEGORY_IDS", "CLASSES"]

CLASSES: tuple[str, ...] = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "dining table", "toilet",
    "tv", "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink",
    "refrigerator", "book", "clock", "vase", "scissors", "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
"""Names in the order of COCO's annotation files, which YOLO and RT-DETR count from 0."""

_UNUSED = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83}

CATEGORY_IDS: tuple[int, ...] = tuple(i for i in range(1, 91) if i not in _UNUSED)
"""`category_id` of each class; ten numbers between 1 and 90 are not used."""
