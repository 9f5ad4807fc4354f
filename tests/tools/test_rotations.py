"""Loops that hand one variable on to another, ``a, b = b, a + b``: how they read, and what their source computes."""

import math
import random

import pytest

from wengert import pullback, trace


def fibonacci(x):
    a, b = x, 1.0
    for _ in range(10):
        a, b = b, a + b
    return a * x


def three(x):
    a, b, c = x, x * x, 1.0 + x
    for _ in range(9):
        a, b, c = b, c, a * b + c
    return a + b


def alternating(x, n):
    a = b = d = 0.5
    c = 2.0 + x
    s = 0.0
    for _ in range(n):
        a, b, c, d = b, c, 0.3 * d + b * 0.2, d * 0.5 - b * x * 0.1
        s = s + a * b
    return s + b + c + d


def test_what_follows_another_value_reads_as_that():
    text = str(trace(fibonacci, 1.5))
    assert "carrying %2 = x, b = 1.0" in text
    assert "b.4 = add(%2, b)" in text
    assert "next %2 = b, b = b.4" in text
    assert "%5 = mul(%2, x)" in text


def test_values_that_follow_each_other_are_handed_on_in_their_order():
    assert "next %4 = %5, %5 = c.6, c.6 = c.8" in str(trace(three, 0.3))
    source = trace(three, 0.3).source()
    names = {}
    exec(source, names)
    assert names["three"](0.3) == three(0.3)
    assert "[" not in source  # nothing is looked up in lists of earlier values


def test_two_passes_may_agree_by_accident():
    def twice(x):
        a, b = x, 1.0
        for _ in range(2):
            a, b = b, a + b
        return a * b

    assert "carrying b = 1.0" in str(trace(twice, 1.5))


@pytest.mark.parametrize("n", [3, 5, 8, 13])
def test_a_value_that_is_one_of_several_where_it_is_not_carried(n):
    """``p if … else q`` is one operand of another ``if``: without parentheses the gradient was another one."""
    names = {}
    value, back = pullback(alternating, 0.3, n)
    exec(back.source(), names)
    assert names["back"](0.3, n, 1.0)[0] == back(1.0)[0]
    step = 1e-6
    differences = (alternating(0.3 + step, n) - alternating(0.3 - step, n)) / (2 * step)
    assert back(1.0)[0] == pytest.approx(differences, rel=1e-7)
    assert value == alternating(0.3, n)


BEGINNINGS = ("x", "1.0", "x*x", "2.0 + x", "0.5", "x*0.25")


def program(rng):
    """The source of a function with a loop that hands variables around."""
    names = "abcd"[: rng.choice([2, 3, 4])]
    lines = ["def f(x, n):", *[f"    {v} = {rng.choice(BEGINNINGS)}" for v in names], "    s = 0.0"]

    def computed():
        a, b, c = (rng.choice(names) for _ in range(3))
        forms = (f"0.3*{a} + {b}*0.2", f"{a}*0.5 - {b}*x*0.1", f"math.sin({a}) + {b}*0.1")
        return rng.choice((*forms, f"({b} + {c})*0.4/(k + 1.0)", f"{a}*0.9"))

    def rotation(pad):
        given = [*names[1:], None]
        if rng.random() < 0.3:
            rng.shuffle(given)
        elif rng.random() < 0.3:
            given = [rng.choice([*names, None]) for _ in names]
        texts = [computed() if v is None or rng.random() < 0.15 else v for v in given]
        lines.append(f"{pad}{', '.join(names)} = {', '.join(texts)}")

    pad = "    "
    if rng.random() < 0.3:
        lines.append(f"    for j in range({rng.choice([2, 3])}):")
        pad += "    "
        if rng.random() < 0.5:
            lines.append(f"{pad}{names[0]} = x*0.5 + {names[-1]}*0.1")
    lines.append(f"{pad}for k in range(n):")
    pad += "    "
    if rng.random() < 0.35:
        decision = rng.choice(["k % 2 == 0", "k > 2", f"{names[0]} > 0.5", f"{names[-1]} < x"])
        lines.append(f"{pad}if {decision}:")
        rotation(pad + "    ")
        if rng.random() < 0.6:
            lines.append(f"{pad}else:")
            rotation(pad + "    ")
    else:
        rotation(pad)
    if rng.random() < 0.5:
        lines.append(f"{pad}s = s + {rng.choice(names)}*{rng.choice(names)}")
    if rng.random() < 0.3:
        lines.append(f"{pad}if s > 5.0: break")
    lines.append(f"    return s + {' + '.join(rng.sample(names, rng.randint(1, len(names))))}")
    return "\n".join(lines)


@pytest.mark.parametrize("start", range(0, 240, 40))
def test_the_source_of_random_rotations(start):
    for seed in range(start, start + 40):
        rng = random.Random(seed)
        text = program(rng)
        made = {"math": math}
        exec(text, made)
        f, x, n = made["f"], rng.uniform(-1.0, 1.0), rng.choice([1, 2, 3, 5, 8, 13])
        again, reverse = {}, {}
        exec(trace(f, x, n).source(), again)
        value, back = pullback(f, x, n)
        exec(back.source(), reverse)
        assert again["f"](x, n) == value == f(x, n), text
        if "dy" in back.source():  # else it is a constant
            assert reverse["back"](x, n, 1.0)[0] == back(1.0)[0], text
