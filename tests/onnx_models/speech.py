"""Generated sound for detectors of speech: vowels and fricatives of a synthesiser, noise, silence.

``python -m tests.onnx_models.speech FOLDER`` writes frames for the detector of the package
``silero-vad``: ``calibration.npz`` and ``speech.npz``, arrays ``input`` of frames x 576 samples (64
of the frame before, and 512).
"""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

RATE = 16_000
#: Samples of a frame, and those of the frame before that it begins with.
_FRAME, _BEFORE = 512, 64
#: Frequencies of the first three formants of vowels, in Hz (Peterson and Barney, 1952, men).
_VOWELS = (
    (730, 1090, 2440),
    (270, 2290, 3010),
    (300, 870, 2240),
    (530, 1840, 2480),
    (660, 1720, 2410),
)
_BANDWIDTHS = (80, 100, 140)

Sound = NDArray[np.float64]


def _resonated(values: Sound, frequency: float, bandwidth: float) -> Sound:
    """A resonator of the second order."""
    radius = np.exp(-np.pi * bandwidth / RATE)
    angle = 2 * np.pi * frequency / RATE
    feedback = [1, -2 * radius * np.cos(angle), radius * radius]
    found: Sound = lfilter([sum(feedback)], feedback, values)
    return found


def _vowel(random: np.random.Generator, length: int) -> Sound:
    """A vowel with a falling pitch."""
    pitch = random.uniform(90, 220) * np.linspace(1.1, 0.85, length)
    pitch *= 1 + 0.02 * np.sin(2 * np.pi * 5 * np.arange(length) / RATE)
    phase = np.cumsum(pitch / RATE)
    pulses = np.diff(np.floor(phase), prepend=0.0)
    found: Sound = lfilter([1], [1, -0.96], pulses) + 0.003 * random.normal(size=length)
    for frequency, bandwidth in zip(random.choice(_VOWELS), _BANDWIDTHS, strict=True):
        found = _resonated(found, frequency, bandwidth)
    return np.diff(found, prepend=0.0)


def _fricative(random: np.random.Generator, length: int) -> Sound:
    return 0.3 * _resonated(random.normal(size=length), random.uniform(3000, 6000), 800)


def sound(seconds: float, seed: int) -> Sound:
    """Words of vowels and fricatives, with pauses, over noise of changing level; up to 1."""
    random = np.random.default_rng(seed)
    parts: list[Sound] = []
    while sum(map(len, parts)) < seconds * RATE:
        if random.random() < 0.35:
            parts.append(np.zeros(int(random.uniform(0.2, 0.9) * RATE)))
        level = random.uniform(0.05, 0.9)
        for _ in range(random.integers(1, 5)):
            for make, least, most in ((_fricative, 0.04, 0.12), (_vowel, 0.1, 0.3)):
                length = int(random.uniform(least, most) * RATE)
                part = make(random, length) * np.hanning(length) ** 0.3
                parts.append(level * part / max(np.abs(part).max(), 1e-9))
    found = np.concatenate(parts)[: int(seconds * RATE)]
    noise = 10 ** np.interp(
        np.arange(len(found)), np.linspace(0, len(found), 8), random.uniform(-4, -1.7, 8)
    )
    found = found + noise * random.normal(size=len(found))
    return found / np.abs(found).max()


def frames(count: int, seed: int) -> NDArray[np.float32]:
    """So many frames of sound: frames x 576 samples."""
    samples = sound((count * _FRAME + _FRAME) / RATE, seed)
    padded = np.concatenate([np.zeros(_BEFORE), samples])
    held = [padded[n * _FRAME : n * _FRAME + _BEFORE + _FRAME] for n in range(count)]
    return np.stack(held).astype(np.float32)


def main() -> None:
    """Write the frames."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "calibration.npz", input=frames(100, seed=1))
    np.savez(folder / "speech.npz", input=frames(200, seed=2))


if __name__ == "__main__":
    main()
