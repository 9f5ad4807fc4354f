"""Programs over large arrays, where the memory traffic of the arithmetic is what counts."""

import numpy as np

from .program import Program
from .small import generator, layers

# ------------------------------------------------------------------------------------------- classifier


def classifier(w1, b1, w2, b2, w3, b3, images, labels):
    """Two hidden layers of relus; the cross-entropy of its softmax with one-hot labels."""
    hidden = np.maximum(images @ w1 + b1, 0.0)
    hidden = np.maximum(hidden @ w2 + b2, 0.0)
    scores = hidden @ w3 + b3
    peak = np.max(scores, axis=1, keepdims=True)
    norms = np.log(np.sum(np.exp(scores - peak), axis=1)) + peak[:, 0]
    return np.mean(norms - np.sum(scores * labels, axis=1))


def classifier_by_hand(w1, b1, w2, b2, w3, b3, images, labels):
    h1 = images.dot(w1) + b1
    np.maximum(h1, 0.0, out=h1)
    h2 = h1.dot(w2) + b2
    np.maximum(h2, 0.0, out=h2)
    scores = h2.dot(w3) + b3
    peak = np.maximum.reduce(scores, axis=1, keepdims=True)
    d3 = np.exp(scores - peak)
    sums = np.add.reduce(d3, axis=1)
    norms = np.log(sums) + peak[:, 0]
    n = len(images)
    value = np.add.reduce(norms - np.add.reduce(scores * labels, axis=1)) / n
    d3 /= sums[:, None]
    d3 -= labels
    d3 /= n
    d2 = d3.dot(w3.T)
    d2 *= h2 > 0
    d1 = d2.dot(w2.T)
    d1 *= h1 > 0
    return value, (
        images.T.dot(d1),
        np.add.reduce(d1, axis=0),
        h1.T.dot(d2),
        np.add.reduce(d2, axis=0),
        h2.T.dot(d3),
        np.add.reduce(d3, axis=0),
    )


def digits(batch=256, pixels=784, hidden=512, classes=10):
    *parameters, images, _ = layers(batch, (pixels, hidden, hidden, classes))
    return *parameters, images, np.eye(classes)[generator().integers(classes, size=batch)]


# ---------------------------------------------------------------------------------------- elementwise


def chain(x):
    return np.sum(np.tanh(x) * np.exp(-x * x) + np.log1p(x * x))


def chain_by_hand(x):
    square = x * x
    t = np.tanh(x)
    e = np.exp(-square)
    value = np.add.reduce(t * e + np.log1p(square))
    # (1 - t²) e + 2 x (1 / (1 + x²) - t e), each array written over as soon as it is free
    square += 1
    gradient = np.divide(1, square, out=square)
    t_e = t * e
    gradient -= t_e
    gradient *= x
    gradient *= 2
    gradient += e
    t_e *= t
    gradient -= t_e
    return value, gradient


def log_sum_exp(x):
    peak = np.max(x)
    return peak + np.log(np.sum(np.exp(x - peak)))


def log_sum_exp_by_hand(x):
    peak = np.maximum.reduce(x)
    gradient = x - peak
    np.exp(gradient, out=gradient)
    total = np.add.reduce(gradient)
    gradient /= total
    return peak + np.log(total), gradient


def numbers(n=1_000_000):
    return (generator().normal(size=n),)


PROGRAMS = [
    Program(
        "classifier",
        classifier,
        classifier_by_hand,
        digits,
        {"batch": 4, "pixels": 3, "hidden": 5, "classes": 3},
        (0, 1, 2, 3, 4, 5),
        1.05,
    ),
    Program("chain", chain, chain_by_hand, numbers, {"n": 20}, 0, 1.05),
    Program("log-sum-exp", log_sum_exp, log_sum_exp_by_hand, numbers, {"n": 20}, 0, 1.05),
]
