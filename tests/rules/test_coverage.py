"""Every public name of NumPy has a status, and the page about it is up to date."""

import re
from pathlib import Path

import numpy as np
import pytest

from wengert.rules import coverage

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coverage.md"
VERSION = tuple(map(int, coverage.release(np).split(".")))

pytestmark = pytest.mark.skipif(VERSION < (2, 0), reason="the lists are those of NumPy 2")


@pytest.mark.parametrize("space", coverage.SPACES)
def test_every_name_of_numpy_has_a_status(space):
    missing = [name for name in coverage.names(space) if coverage.status(space, name) is None]
    assert not missing, f"give {space}.{missing} a rule, or a line in rules/coverage.py"


@pytest.mark.parametrize("space", coverage.SPACES)
def test_every_name_of_the_tables_is_one_of_numpy(space):
    there = set(coverage.names(space))
    for name in coverage.known(space):
        since, before = coverage.SPANS.get(f"{space}.{name}", ("", ""))
        expected = all(
            VERSION >= number(since) if end == 0 else VERSION < number(before)
            for end, text in enumerate((since, before))
            if text
        )
        assert (name in there) == expected, f"{space}.{name}"
        if expected and space != "ufunc":
            rule = coverage.lookup(getattr(coverage.SPACES[space], name))
            assert rule is None, f"{space}.{name} has a rule and needs no line"


def number(release):
    return tuple(map(int, release.split(".")))


def test_what_is_traced_is_tested():
    sources = "".join(path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")))
    for space, listed in coverage.TRACED.items():
        prefix = {"numpy": "np", "ndarray": ""}.get(space, space.replace("numpy", "np"))
        for name in listed.split():
            assert re.search(rf"{re.escape(prefix)}\.{name}\b", sources), f"{space}.{name}"


def test_every_ufunc_method_with_a_derivative_has_a_rule():
    for name in coverage.ufuncs():
        for method in coverage.METHODS:
            assert coverage.of_method(name, method) != "unsupported", f"{name}.{method}"


@pytest.mark.parametrize("package", ["NumPy", "SciPy"])
def test_the_page_is_up_to_date(package):
    """Where the same release of the package is installed as when the page was made."""
    written = coverage.sections(PAGE.read_text())[package]
    now = coverage.numpy_section() if package == "NumPy" else coverage.scipy_section()
    if now is None or now.partition("\n")[0] != written.partition("\n")[0]:
        pytest.skip(f"the page is about another {package}")
    assert written.split("\n") == now.rstrip("\n").split("\n") + [""]


def test_the_section_of_a_package_that_is_absent_stays(monkeypatch):
    monkeypatch.setattr(coverage, "scipy_section", lambda: None)
    page = coverage.page("\n## SciPy 1.0\n\nas it was\n")
    assert coverage.sections(page)["SciPy"] == "## SciPy 1.0\n\nas it was\n"
