"""A voice, made of its formants, which detectors of speech take for one."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

RATE = 16000
#: Formants of four vowels, in Hz.
VOWELS = np.array([(730, 1090, 2440), (270, 2290, 3010), (530, 1840, 2480), (300, 870, 2240)], float)


def voice(seconds: float) -> np.ndarray:
    """Return float32 samples of syllables, four a second."""
    time = np.arange(int(seconds * RATE)) / RATE
    pitch = 120 + 25 * np.sin(2 * np.pi * 2.1 * time) + 10 * np.sin(2 * np.pi * 5 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    steps = np.pad(VOWELS[(4 * time).astype(int) % 4], ((400, 399), (0, 0)), "edge")
    glide = np.ones(800) / 800
    formants = [np.convolve(each, glide, "valid") for each in steps.T]
    samples = np.zeros(time.size)
    for harmonic in range(1, 40):
        gain = sum(1 / (1 + ((harmonic * pitch - each) / (60 + 40 * i)) ** 2) for i, each in enumerate(formants))
        samples += gain / np.sqrt(harmonic) * np.sin(harmonic * phase) * (harmonic * pitch < 7500)
    samples *= 0.5 - 0.5 * np.cos(2 * np.pi * 4 * time)
    return (samples / np.abs(samples).max() / 2).astype(np.float32)


def write_recording(file: Path) -> None:
    """Write a WAV file of 16 bits: a second of quiet, then 1.6 of a voice, then two of quiet."""
    quiet = np.random.default_rng(0).normal(0, 1e-3, int(4.6 * RATE))
    samples = quiet + np.concatenate([np.zeros(RATE), voice(1.6), np.zeros(2 * RATE)])
    with wave.open(str(file), "wb") as written:
        written.setparams((1, 2, RATE, samples.size, "NONE", ""))
        written.writeframes((samples * 32767).astype("<i2").tobytes())
