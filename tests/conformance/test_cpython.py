"""Ten files of CPython's own tests, plainly and traced: the tables of what is known to differ are exact."""

import sys

import pytest
from conformance import cpython, cpython_known


@pytest.mark.parametrize("file", cpython_known.QUICK)
def test_methods_that_pass_plainly_pass_traced(file):
    if not cpython.available():
        pytest.skip(f"the tests of CPython {sys.version.split()[0]} are not installed")
    found = cpython.run_file(file, "traced", calls=1, limit=20.0)
    print(cpython.line_of(found))
    assert found.traced, found.out_of_reach
    wrong = cpython.surprises(found)
    assert not wrong, "\n".join(wrong)
