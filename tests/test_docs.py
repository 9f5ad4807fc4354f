"""The examples in the documentation run."""

import contextlib
import io
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "CONTRIBUTING.md"]
PAGES += [
    f"docs/{name}.md" for name in ("asking", "conventions", "errors", "jit", "tapes-as-objects")
]
DOCTESTS = """
import doctest, importlib, pkgutil, sys, wengert
failed = 0
modules = [  # in a checkout other folders lie beside those of the package
    module
    for name in ("", ".rules", ".tracer", ".transforms", ".transforms.tools")
    for package in [importlib.import_module("wengert" + name)]
    for module in pkgutil.iter_modules(package.__path__[:1], package.__name__ + ".")
]
assert len(modules) > 100
for module in modules:
    if module.name in ("wengert.__main__", "wengert.cli", "wengert.demo"):
        continue
    try:
        loaded = importlib.import_module(module.name)
    except ModuleNotFoundError as missing:  # of a library that is not installed, where it is asked for
        if missing.name.startswith("wengert"):
            raise
        continue
    failed += doctest.testmod(loaded).failed
sys.exit(failed > 0)
"""


@pytest.mark.parametrize("page", PAGES)
def test_examples(page, tmp_path, monkeypatch):
    """Each block of Python runs after those before it, on README alone; `# prints` says what it shows."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    names = {"__name__": "__main__"}
    for number, block in enumerate(blocks):
        file = tmp_path / f"block{number}.py"
        file.write_text(block)
        shown = io.StringIO()
        if page == "README.md":
            names = {"__name__": "__main__"}
        with contextlib.redirect_stdout(shown), wengert.jit(True):
            exec(compile(block, str(file), "exec"), names)
        expected = re.findall(r"# prints (.*)", block)
        if expected:
            assert shown.getvalue().splitlines() == expected


@pytest.mark.parametrize("name", ["tape", "works"])
def test_listings(name, tmp_path, monkeypatch):
    """Each block of Python, in a file of its own, prints the block of text below it."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / f"docs/{name}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n(?:```text\n(.*?)```)?", page, re.DOTALL)
    assert len(blocks) == page.count("```python") > page.count("```text") > 5 or name == "tape"
    names = {"__name__": "__main__"}
    for block, expected in blocks:
        linecache.clearcache()
        (tmp_path / "demo.py").write_text(block)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), wengert.jit(True):
            exec(compile(block, "demo.py", "exec"), names)
        if "while " not in block or sys.version_info < (3, 14):  # see tests/tools/test_listing.py
            assert shown.getvalue() == expected


def test_doctests():
    """In a process of its own, since examples may register rules."""
    done = subprocess.run(
        [sys.executable, "-c", DOCTESTS],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "WENGERT_JIT": "1"},  # as a reader has it
    )
    assert done.returncode == 0, done.stdout + done.stderr
