"""Places in a notebook are told as IPython itself tells them."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("IPython")


def test_a_cell_is_called_by_its_number():
    program = """
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell.instance()
        shell.run_cell("from wengert import trace", store_history=True)
        shell.run_cell("def f(x):\\n    y = 2.0 * x\\n    return y + 1.0", store_history=True)
        shell.run_cell("print(trace(f, 3.0))", store_history=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "tape of f  # Cell In[2], line 1",
        "  x = input :: float",
        "  y = mul(2.0, x) :: float  # Cell In[2], line 2",
        "  %3 = add(y, 1.0) :: float  # Cell In[2], line 3",
        "  return %3",
    ]
