"""What a degradation does to an image, in numbers that do not depend on the random field."""

from __future__ import annotations

import numpy as np

NAMES = (
    "psnr",
    *(f"{what} {channel}" for what in ("mean", "deviation") for channel in "RGB"),
    "change of R and G",
    "change of G and B",
    *(f"energy of the change in octave {octave}" for octave in range(4)),
)


def change_statistics(clean: np.ndarray, degraded: np.ndarray) -> np.ndarray:
    """Return the numbers of `NAMES`: PSNR, moments of channels, correlation of changes, their spatial spectrum."""
    after = degraded.astype(float)
    change = after - clean
    flat = change.reshape(-1, 3)
    between = np.corrcoef(flat.T)
    luma = change.mean(axis=2)
    power = np.abs(np.fft.fft2(luma - luma.mean())) ** 2 / luma.size
    frequency = np.hypot(np.fft.fftfreq(len(luma))[:, None], np.fft.fftfreq(luma.shape[1]))
    octave = np.clip(np.floor(-np.log2(np.maximum(frequency, 1e-9))) - 1, 0, 3)
    energy = [np.log10(power[octave == o].mean() + 1e-3) for o in range(4)]
    psnr = 10 * np.log10(255**2 / (change**2).mean())
    channels = after.reshape(-1, 3)
    return np.array([psnr, *channels.mean(axis=0), *channels.std(axis=0), between[0, 1], between[1, 2], *energy])
