"""The two axes of the taxonomy and its twelve groups.

Source: Becker, Weiss, Huebner, Arens, "A Causally Grounded Taxonomy for Image Degradation Robustness
Evaluation" (2026), section III.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["TEMPORAL_SUBTYPES", "Cause", "Effect", "Group"]


class _Described(Enum):
    """An enum whose members carry a code (the value), a title and a sentence."""

    title: str
    meaning: str

    def __new__(cls, code: str, title: str, meaning: str) -> _Described:
        member = object.__new__(cls)
        member._value_ = code
        member.title = title
        member.meaning = meaning
        return member

    @property
    def code(self) -> str:
        """The short code, as in the paper."""
        return str(self.value)

    def __str__(self) -> str:
        return self.code


class Cause(_Described):
    """Where in the imaging chain a degradation arises."""

    ENVIRONMENT = ("E", "Environment", "The scene or the medium between it and the lens.")
    SENSOR = ("S", "Sensor/Optics", "The lens, the exposure and the sensor.")
    RENDERING = ("R", "ISP/Renderer/Codec", "Processing inside the camera or after it.")
    TRANSFER = ("T", "Transfer/System", "Boards, buses, memory and transmission.")


class Effect(_Described):
    """What one sees in the final image."""

    NOISE = ("N", "Noise", "Random variation of pixel values.")
    BLUR = ("B", "Blur", "Loss of fine detail by averaging.")
    WEATHER = ("WX", "Weather/Medium", "Visible weather, or a veil between scene and lens.")
    COMPRESSION = ("CP", "Compression/Quantization", "Blocks, rings or bands of coarse coding.")
    COLOR = ("CL", "Color/White balance", "Wrong or shifted color.")
    ILLUMINATION = ("IL", "Illumination/Exposure", "Too dark, too bright, or unevenly lit.")
    GEOMETRY = ("GD", "Geometry/Spatial", "Pixels in the wrong place.")
    RESOLUTION = ("RZ", "Resolution/Sampling", "Too few samples.")
    OCCLUSION = ("OC", "Occlusion/Obstruction", "Something in front of the scene.")
    TEXTURE = ("TX", "Texture/Sharpness/Contrast", "Changed contrast, sharpness or texture.")
    TEMPORAL = ("TV", "Temporal/Video", "Changes over time.")


class Group(_Described):
    """The canonical groups of cause × effect; an entry may differ from its group's usual cause."""

    G1 = ("G1", "Noise", "Noise that arises at the sensor (S × N).")
    G2 = ("G2", "Blur", "Blur from optics or motion during exposure (S × B).")
    G3 = ("G3", "Resolution/Sampling", "Lost samples in processing (R × RZ).")
    G4 = ("G4", "Compression/Quantization", "Coding losses (R × CP).")
    G5 = ("G5", "Color/White balance", "Color errors of processing (R × CL).")
    G6 = ("G6", "Brightness/Exposure", "Brightness errors of processing (R × IL).")
    G7 = ("G7", "Geometry/Spatial", "Displaced pixels (R × GD).")
    G8 = ("G8", "Weather/Medium", "Weather and the medium (E × WX).")
    G9 = ("G9", "Occlusion/Obstruction", "Things in front of the scene (E × OC).")
    G10 = ("G10", "Sharpness/Contrast/Texture", "Contrast and sharpness (R × TX).")
    G11 = ("G11", "System/Transfer/Board", "Failures of boards, buses and memory (T × any).")
    G12 = ("G12", "Temporal/Video", "Effects over time (any × TV); no still-image operator fills it.")


TEMPORAL_SUBTYPES = (
    "flicker",
    "white-balance oscillation",
    "rolling-shutter wobble",
    "autofocus hunting",
    "image-stabilizer jitter",
    "ghosting",
    "stabilization jitter",
    "variable frame rate",
    "frame drop or repeat",
    "desynchronization",
    "lost groups of pictures or slices",
    "sequential transforms",
)
"""What belongs to G12. They need more than one frame, so that no row of the catalog fills them."""
