"""Where the paper's listing looks for it: `from crypsis.calibration import calibrate_distortion`."""

from .severity.calibration import Calibration, calibrate_distortion, shipped_calibration
from .severity.inverse import AtStrength, degrade_to_strength
from .severity.scale import CommonScale, common_scale

__all__ = [
    "AtStrength",
    "Calibration",
    "CommonScale",
    "calibrate_distortion",
    "common_scale",
    "degrade_to_strength",
    "shipped_calibration",
]
