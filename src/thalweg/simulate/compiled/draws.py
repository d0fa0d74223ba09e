"""Random numbers by key and number: the i-th draw of a queue is the same whoever asks, and when.

SplitMix64 (Steele, Lea and Flood 2014) gives 64 bits from a key and a counter; the ziggurat of
Marsaglia and Tsang (2000) makes exponential draws of them, nearly always with one multiplication.
Nothing is remembered between draws, so that it does not matter in which pieces a run is done.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.compiling import kernel, leaf, part

Floats = npt.NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_UNIT = 2.0**-53
_S11, _S27, _S30, _S31 = (np.uint64(bits) for bits in (11, 27, 30, 31))
_LOW_BYTE = np.uint64(255)

# 256 layers of equal area under exp(−x); beyond the last begins the tail.
_TAIL = 7.69711747013104972
_AREA = 0.0039496598225815571993


def _layers() -> tuple[Floats, Floats, Floats]:
    """Right ends of the layers, heights there, and which part of each lies under the curve."""
    right = np.zeros(257)
    right[0], right[1] = _AREA / np.exp(-_TAIL), _TAIL
    for k in range(2, 256):
        right[k] = -np.log(np.exp(-right[k - 1]) + _AREA / right[k - 1])
    return right, np.exp(-right), right[1:] / right[:-1]


_RIGHT, _HEIGHT, _INSIDE = _layers()

DETERMINISTIC, EXPONENTIAL, EMPIRICAL = range(3)


@leaf
def mix(bits: np.uint64) -> np.uint64:
    """64 bits, each of which depends on all of these."""
    bits = (bits ^ (bits >> _S30)) * _FIRST_FACTOR
    bits = (bits ^ (bits >> _S27)) * _SECOND_FACTOR
    return bits ^ (bits >> _S31)


@leaf
def uniform(key: np.uint64, number: int) -> float:
    """The draw of that number, from 0 up to but without 1."""
    return np.float64(mix(key + np.uint64(number) * _GOLDEN) >> _S11) * _UNIT


@leaf
def exponential(key: np.uint64, number: int) -> float:
    """The draw of that number, with the mean 1."""
    bits = mix(key + np.uint64(number) * _GOLDEN)
    layer = np.int64(bits & _LOW_BYTE)
    share = np.float64(bits >> _S11) * _UNIT
    if share < _INSIDE[layer]:
        return share * _RIGHT[layer]
    return _draw_again(bits)


@part
def _draw_again(bits: np.uint64) -> float:
    """One draw in a hundred: close to the curve, or in the tail, which looks like the whole."""
    beyond = 0.0
    while True:
        layer = np.int64(bits & _LOW_BYTE)
        share = np.float64(bits >> _S11) * _UNIT
        value = share * _RIGHT[layer]
        if share < _INSIDE[layer]:
            return beyond + value
        bits = mix(bits + _GOLDEN)
        if layer == 0:
            beyond += _TAIL
        else:
            up = np.float64(bits >> _S11) * _UNIT
            low, high = _HEIGHT[layer], _HEIGHT[layer + 1]
            if low + up * (high - low) < np.exp(-value):
                return beyond + value
        bits = mix(bits + _GOLDEN)


@leaf
def factor(kind: int, key: np.uint64, number: int, values: Floats) -> float:
    """By what the mean time of the service of that number is multiplied."""
    if kind == 1:
        return exponential(key, number)
    if kind == 0:
        return 1.0
    return values[np.int64(uniform(key, number) * values.size)]


@kernel
def draw_factors(kind: int, key: np.uint64, first: int, count: int, values: Floats) -> Floats:
    """So many factors from the one of that number on."""
    found = np.empty(count)
    for i in range(count):
        found[i] = factor(kind, key, first + i, values)
    return found


@kernel
def draw_uniforms(key: np.uint64, first: int, count: int) -> Floats:
    """So many numbers from 0 to 1 from the one of that number on."""
    found = np.empty(count)
    for i in range(count):
        found[i] = uniform(key, first + i)
    return found
