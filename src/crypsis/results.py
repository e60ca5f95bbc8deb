"""What a run leaves behind: the schema of its rows.

One row is one (image, condition, model). A row holds scores and the small counts they pool from, so that every
dataset-level number (pooled calibration error, maximum of an averaged curve, any threshold) is a group-by.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = ["RECORD_SCHEMA", "SCORES"]

SCORES = (
    "dice", "iou", "mae", "boundary_f1", "ece", "s_measure", "weighted_f",
    "e_adaptive", "e_mean", "f_adaptive", "f_mean",
)  # fmt: skip
"""Per-image scores, float64, by column name; `crypsis.metrics` defines each."""

RECORD_SCHEMA = pa.schema(
    [
        ("image", pa.string()),
        ("model", pa.string()),
        ("entry", pa.string()),
        ("severity", pa.int8()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("species", pa.string()),
        ("super_class", pa.string()),
        ("image_bytes", pa.int64()),
        ("mask_bytes", pa.int64()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("foreground", pa.int64()),
        *((name, pa.float64()) for name in SCORES),
        ("ece_count", pa.list_(pa.int32())),
        ("ece_confidence", pa.list_(pa.float64())),
        ("ece_correct", pa.list_(pa.int32())),
        ("histogram_object", pa.list_(pa.int32())),
        ("histogram_background", pa.list_(pa.int32())),
    ]
)
"""Columns of a part. `entry` is `clean` with severity 0, or a catalog name with severity 1..5. `status` is `ok`
or `failed`; a failed row has `error` and null scores. The three `ece_*` lists have 15 bins; the two histograms
have 256 bins of floor(255·p) over object and background pixels."""
