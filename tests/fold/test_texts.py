"""Texts that are made of numbers: they are keys, messages and items, and have no derivative."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fold.comparing import followed
from wengert import value_and_grad
from wengert.tracer.errors import TraceError
from wengert.transforms import cache

pytestmark = pytest.mark.usefixtures("folding_at_once")


class Bad(ValueError):
    pass


def messages(x: float, n: int) -> float:
    total = x
    for i in range(n):
        try:
            if total > 1.5:
                raise Bad(f"{total!r:>20} at {i:02d}")
            total = total * 1.3
        except Bad as error:
            total = total * 0.5 + len(str(error)) * 0.01
    return total


def keys(x: float, n: int) -> float:
    held = {}
    for i in range(n):
        held[f"{i % 3}:{x > 1}"] = x * i
        if f"{x:.0f}" == "1":
            x = x * 1.1
    name = "k" + str(n % 3)
    other = {"k0": x, "k1": x * x, "k2": 1.0}[name]
    return sum(held.values()) + other


def parts(x: float, n: int) -> float:
    width, found = 3, []
    for i in range(n):
        found.append(f"{x:{width}.{i}f}" + "!")
    text = ",".join(str(i) for i in range(n)) + " ".join(found)
    return x * len(text) + len(str(True)) + (x if str(x) > "1" else 0.0)


def asserted(x: float, n: int) -> float:
    assert x > 0.0, f"{x} is not positive"
    log = []
    for i in range(n):
        x = 0.5 * x + i
        log.append(f"{i}: {x:.3f} {repr(x)}")
    return x * len(log)


@pytest.mark.parametrize("f", [messages, keys, parts, asserted])
def test_folded(f: Callable[..., float]) -> None:
    followed(f)


@pytest.mark.parametrize(
    "read",
    [
        "float(f'{x * n:.3f}')",
        "float(str(x))",
        "float('0' + repr(x))",
        "'0123456789'.find(str(x)[0])",
    ],
)
def test_a_number_that_is_read_out_of_a_text(read: str) -> None:
    space: dict[str, Callable[..., float]] = {}
    exec(f"def f(x, n):\n    return {read} + x", space)
    both = value_and_grad(space["f"])
    for n in range(1, 6):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            both(0.5 * n, n)
    (entry,) = cache.entries.values()
    assert not entry.folding.programs
