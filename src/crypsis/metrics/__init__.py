"""Pure functions from predictions and truth to numbers; `segmentation` is the door, `METRICS` names conventions."""
