"""Integers from outside that decide on axes and shapes: a program holds for those that it was made with."""

import numpy as np
import pytest

from wengert import jvp, value_and_grad

CUBE = np.arange(27.0).reshape(3, 3, 3) % 11
ROW = np.arange(6.0)
counts = np.array([0])
number = 0.25

BY_COUNT = {
    "max": lambda x, k: (CUBE * x).max(axis=k)[0, 1],
    "prod": lambda x, k: (CUBE * x).prod(axis=k)[0, 1] + (CUBE[:2] * x + 1).prod(axis=k)[1, 1],
    "reshape": lambda x, k: (ROW * x).reshape((k + 1, -1))[0, -1],
    "tile": lambda x, k: np.tile(ROW * x, k + 1).sum(),
    "full": lambda x, k: np.full(k + 1, x).sum(),
    "broadcast_to": lambda x, k: np.broadcast_to(x, (k + 1, 2)).sum(),
    "tensordot": lambda x, k: np.tensordot(CUBE * x, CUBE * x, axes=k).ravel()[1],
    "concatenate": lambda x, k: np.concatenate([ROW.reshape(2, 3) * x] * 2, axis=k % 2).ravel()[4],
    "reduce": lambda x, k: np.logaddexp.reduce(CUBE * x, axis=k)[0, 1],
    "fft": lambda x, k: abs(np.fft.fft(ROW * x, k + 2)[1]),
    "transpose": lambda x, k: (CUBE * x).transpose(k, (k + 1) % 3, (k + 2) % 3)[0, 1, 2],
    "diag": lambda x, k: np.diag(ROW * x, k).shape[0] * x,
    "swapaxes": lambda x, k: np.swapaxes(np.ones((2, 3, 4)) * x, 0, k).shape[0] * x,
    "pad": lambda x, k: np.pad(ROW * x, (k, 0), constant_values=2.0).size * x,
    "pad edge": lambda x, k: np.pad(ROW * x + x, k, mode="edge").sum(),
    "expand_dims": lambda x, k: np.expand_dims(ROW * x, k % 2).shape[0] * x,
    "zeros": lambda x, k: np.zeros(k + 1).size * x,
    "append": lambda x, k: np.append(CUBE * x, CUBE * x, axis=k).shape[0] * x,
    "windows": lambda x, k: np.lib.stride_tricks.sliding_window_view(ROW * x, k + 1).sum(),
    "shape in an array": lambda x, k: np.reshape(ROW * x, 1 + np.array([k, 5 - 3 * k]))[0, -1],
}


def from_array():
    return counts[0]


def from_slice():
    return counts.astype(float).astype(int)[0]


def from_float():
    return int(number)


@pytest.mark.parametrize("read", [from_array, from_slice, from_float])
@pytest.mark.parametrize("name", BY_COUNT)
def test_a_count_that_changes(name, read):
    global number

    def f(x):
        return BY_COUNT[name](x, read())

    h = value_and_grad(f)
    for k in (0, 0, 0, 0, 1, 0, 1, 1):
        counts[0], number = k, k + 0.25
        slope = (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6
        value, found = h(1.3)
        assert np.isclose(value, f(1.3), rtol=1e-12)
        assert np.isclose(found, slope, rtol=1e-5)
        assert np.isclose(jvp(f, (1.3,), (1.0,))[1], slope, rtol=1e-5)
