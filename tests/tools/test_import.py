"""The tools are there when they are asked for, and cost `import wengert` nothing."""

import subprocess
import sys

import pytest

import wengert

PROGRAM = """
import sys, wengert
tools = [name for name in sys.modules if name.startswith("wengert.transforms.tools")]
assert not tools, tools
from wengert import why
assert "wengert.transforms.tools.why" in sys.modules and why is wengert.why
assert "wengert.transforms.tools.profiling" not in sys.modules
"""


def test_tools_are_imported_on_demand():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)


@pytest.mark.parametrize("name", wengert.ON_DEMAND)
def test_they_are_public_names(name):
    assert name in wengert.__all__
    assert getattr(wengert, name).__name__ == name
    assert name in vars(wengert)


def test_other_names_are_missing():
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        _ = wengert.nosuch
