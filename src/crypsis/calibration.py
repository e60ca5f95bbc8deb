"""Where the paper's listing looks for it: `from crypsis.calibration import calibrate_distortion`."""

from .severity.calibration import Calibration, calibrate_distortion, shipped_calibration

__all__ = ["Calibration", "calibrate_distortion", "shipped_calibration"]
