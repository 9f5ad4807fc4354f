"""Random programs of a wide grammar, and those of them that once differed (see the package `programs`)."""

import gc
import re
from pathlib import Path

import numpy as np
import pytest
from conformance.programs.batches import attempt, prepare
from conformance.programs.oracle import has_coarse_world, judge, where_unlike
from conformance.programs.plan import parsed

PROGRAMS = 200
TOGETHER = 20  # programs in one test
FOUND = Path(__file__).with_name("found.txt")


def settle():
    """What is still there now is nobody's litter: the collections of a program have little to look at."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def prepared():
    prepare()
    yield
    gc.unfreeze()
    settle()


@pytest.mark.parametrize("first", range(0, PROGRAMS, TOGETHER))
def test_random_programs(first):
    for seed in range(first, first + TOGETHER):
        settle()
        program, verdict = attempt(seed)
        assert verdict.difference is None, f"seed {seed}: {verdict.difference}\n\n{program}"


def blocks():
    """The programs of `found.txt`, with their titles."""
    for text in re.split(r"(?m)^#: ", FOUND.read_text())[1:]:
        title, _, program = text.partition("\n")
        title, _, why = title.partition(" [")
        marks = [pytest.mark.xfail(reason=why.rstrip("]"), strict=True)] if why else []
        yield pytest.param(program, id=title.replace(" ", "-"), marks=marks)


@pytest.mark.parametrize("text", list(blocks()))
def test_found(text):
    program = parsed(text)
    settle()
    verdict = judge(program)
    assert verdict.difference is None, f"{verdict.difference}\n\n{program}"


def test_no_differences_are_taken_where_the_world_has_single_precision():
    for items, coarse in (([[np.float32(0.5)]], True), ([[0.5, {"a": np.ones(2)}]], False)):
        scope = {"items": items}
        exec("def f(x): return x * items[0][0]", scope)
        assert has_coarse_world(scope["f"]) == coarse


def test_what_rounding_leaves_where_all_cancels_out_is_no_difference():
    assert where_unlike([1.1e-16, 0.0], [0.0, 0.0]) is None
    assert where_unlike([1e-13, 0.0], [0.0, 0.0]) is not None
    assert where_unlike([1e-16, 0.0], [1.0, 0.0]) is not None
