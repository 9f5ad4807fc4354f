"""No rule does work in vain, and there are enough cases to say so."""

import importlib
from pathlib import Path

import pytest
from checker import Table, check_tape, needless

from wengert import pullback, rrule, trace
from wengert.rules.registry import rules

MODULES = sorted(p.stem for p in Path(__file__).parent.glob("test_*.py") if p != Path(__file__))


def cases_of(module):
    """The cases in the table of a test module; none where it is skipped, for want of SciPy."""
    try:
        table = getattr(importlib.import_module(module), "case", None)
    except pytest.skip.Exception:
        return []
    return table.cases if isinstance(table, Table) else []


@pytest.mark.parametrize("module", MODULES)
def test_no_work_in_vain(module):
    failed = []
    for case in cases_of(module):
        try:
            check_tape(case)
        except AssertionError as error:
            failed.append(str(error))
    assert not failed, f"{len(failed)} cases:\n" + "\n\n".join(failed[:5])


def test_there_are_many_cases():
    assert sum(len(cases_of(module)) for module in MODULES) >= 1500


WASTEFUL = {
    "by 1": lambda x, dy: dy * x * 1,
    "by 0": lambda x, dy: dy * x + 0.0 * x,
    "done twice": lambda x, dy: dy * x**3 + x**3,
    "is undone": lambda x, dy: -(-dy) * x,
    "of 0": lambda x, dy: 0 + dy * x,
}


@pytest.mark.parametrize("what", WASTEFUL)
def test_work_in_vain_is_seen(what):
    """As a tape that nobody has simplified."""
    tape = trace(WASTEFUL[what], 2.0, 3.0)
    assert any(what in found for found in needless(tape, set()))


def test_a_wasteful_rule_is_seen():
    def f(x):
        return x * 2.0

    @rrule(f, pure=True)
    def _(x):
        return f(x), lambda dy: (dy * 2.0 + 0.0 * x,)

    try:
        _, back = pullback(f, 3.0)
        assert list(needless(back.tape, set(back.done.tape.ops))) == ["mul by 0.0"]
    finally:
        del rules[f]
