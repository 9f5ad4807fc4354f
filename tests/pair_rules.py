"""Rules that are not pure, for the tests of the pair contract; what they do is seen in ``log``."""

import random

import numpy as np

from wengert import custom_rule

TIMES = range(6)  # traced, traced again, with the sweep inside, and answered by the program
log: list = []


@custom_rule
def noisy(x):
    r = random.random()
    return x * r, lambda d: (d * r,)


@custom_rule
def clipped(x):
    log.append("value")

    def back(d):
        log.append("pullback")
        return (np.clip(d, -1.0, 1.0),)

    return x, back


@custom_rule
def square(x):
    log.append("square")

    def back(d):
        return (2 * x * d,)

    return x * x, back


class Meter:
    def __init__(self):
        self.total = 0.0
        self.calls = 0
