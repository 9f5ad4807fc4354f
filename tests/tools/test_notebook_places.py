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


def test_messages_tell_the_cell_as_listings_do():
    """Not the file in a temporary folder that IPython compiles a cell as."""
    program = """
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell.instance()
        shell.run_cell("from wengert import NonFiniteError, explain, grad, profile, why\\nimport numpy as np", True)
        shell.run_cell("def f(x):\\n    return np.sqrt(round(x))", store_history=True)
        shell.run_cell("print(why(f, 1.4)); print(profile(f, 1.4)); slope = grad(f)", True)
        shell.run_cell("slope(1.4); print(slope, explain(slope))", True)
        shell.run_cell(
            "try:\\n    grad(f, debug=True)(-1.0)\\nexcept NonFiniteError as error:\\n    print(error)", True
        )
        shell.run_cell("async def g(x):\\n    return x", store_history=True)
        shell.run_cell("try:\\n    grad(g)(1.0)\\nexcept Exception as error:\\n    print(error)", True)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout
    assert "Cell In[2], line 2, in f: return np.sqrt(round(x))" in told
    assert "f  # Cell In[2], line 1" in told
    assert "Cell In[2], line 2, in f: sqrt gives nan, in f (Cell In[2], line 1)" in told
    assert "Cell In[6], line 1: g is an async function" in told
    assert "ipykernel" not in told and ".py" not in told and "ipython-input" not in told
