"""Random scalar programs, and that the comparison sees what it is there for.

In the environment variable WENGERT_FOLD_PROGRAMS stands how many programs are tried, where there is time for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from fold.random_programs import PRELUDE, Module, Outcome, Writer, judge
from wengert import clear_cache

PROGRAMS = int(os.environ.get("WENGERT_FOLD_PROGRAMS", "60"))
TOGETHER = 10  # programs in one test


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
def test_random_programs(first: int) -> None:
    compared = 0
    for seed in range(first, min(first + TOGETHER, PROGRAMS)):
        source = Writer(seed).source()
        verdict = judge(source, seed)
        assert verdict.word in ("right", "refused", "too long"), (
            f"seed {seed}: {verdict.word}: {verdict.difference}\n\n{source.removeprefix(PRELUDE)}"
        )
        compared += verdict.gradients
    assert compared > TOGETHER  # most programs run to their end


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_on_flat_tapes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_FOLD", "0")
    source = Writer(seed).source()
    verdict = judge(source, seed)
    assert verdict.word in ("right", "refused", "too long"), verdict.difference


ON_THE_WAY_OUT = (
    PRELUDE
    + """
def h0(p, q, n):
    z = p - 0.5 * q
    for i in range(min(n // 2, 3)):
        q = p
        p = p + z ** 2
    return p + z

def h1(p, q, n, depth=2):
    z, m = p * q, depth
    if depth <= 0:
        return p
    i = -1
    while True:
        i += 1
        if i > 3 or (h0(q, p, n) <= 0.5 or (depth // 2) % 2):
            break
        m = (n ^ 1) % 8
        if max(p, z) > 0.1:
            continue
    return h1(0.7 * z, p, n, depth - 1) + m

def f(x, y, n):
    for k in range(4):
        y = max(x, h1(y, x, n), 0.1)
    return y
"""
)


def test_a_loop_on_the_way_out_of_another_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_FOLD", "0")
    for seed in range(5):
        verdict = judge(ON_THE_WAY_OUT, seed)
        assert verdict.word == "right", verdict.difference


SOURCE = PRELUDE + "def f(x, y, n):\n    log.append(x)\n    return x / (n - 1) * y\n"


def test_a_right_program_is_right() -> None:
    verdict = judge(SOURCE, 0)
    assert verdict.word == "right" and 0 < verdict.gradients < 8  # n may be one


@pytest.mark.parametrize(
    "word, change",
    [
        ("kept value", {"value": "0.5"}),
        ("kept value", {"error": "ZeroDivisionError: by something else"}),
        ("kept value", {"world": "(['twice', 'twice'], 0.25, 0.5)"}),
        ("gradient", {"gradient": (1e3, 0.0)}),
        ("gradient", {"gradient": (float("nan"), 0.0)}),
        ("refusals", {"refused": True, "error": "TraceError: only where programs are kept"}),
    ],
)
def test_a_wrong_answer_is_seen(
    monkeypatch: pytest.MonkeyPatch, word: str, change: dict[str, Any]
) -> None:
    right = Module.asked

    def asked(self: Module, args: tuple[Any, ...], on: bool) -> Outcome:
        found = right(self, args, on)
        if on:
            vars(found).update(change)
        return found

    monkeypatch.setattr(Module, "asked", asked)
    assert judge(SOURCE, 0).word == word


def test_a_program_without_end_is_left_out() -> None:
    endless = PRELUDE + "def f(x, y, n):\n    while True:\n        x = x * y\n"
    assert judge(endless, 0).word == "too long"
