"""How strong a degradation is, measured, and the scales made of that.

`strength` measures clean against degraded pixels; `calibration` turns the measurements of a few images into the
strength of an entry's five levels, and into five levels evenly spaced in strength.
"""
