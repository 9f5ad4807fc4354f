"""Every notebook runs from top to bottom in a fresh kernel, and is kept with what it prints."""

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
STORED = (3, 13)  # the version of CPython whose output is kept; others have other bytecode
TIMED = re.compile(r"\d [µm]?s\b")  # a line that tells a time
VARYING = [
    (re.compile(r"(\.\d{8})\d+"), r"\1"),  # last digits, which are the platform's
    (re.compile(r"\b(program[ _])\d+"), r"\1N"),
    (re.compile(r"\b\d+ calls traced"), "N calls traced"),
]


def test_there_are_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, monkeypatch):
    monkeypatch.setenv("WENGERT_JIT", "1")  # as a reader has it
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kept = [printed(cell) for cell in notebook.cells]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Jupyter's own; the kernel is another process
        nbclient.NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
        ).execute()
    if sys.version_info[:2] == STORED:
        assert [printed(cell) for cell in notebook.cells] == kept


def printed(cell: Any) -> list[str]:
    """The lines that a cell prints, without what is another at each run."""
    text = "".join(out.text for out in cell.get("outputs", []) if out.output_type == "stream")
    for pattern, new in VARYING:
        text = pattern.sub(new, text)
    return [line for line in text.splitlines() if not TIMED.search(line)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_as_it_ran(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    outputs = [out for cell in code for out in cell.outputs]
    assert outputs
    assert {out.output_type for out in outputs} <= {"stream", "execute_result", "display_data"}
    assert all(out.name == "stdout" for out in outputs if out.output_type == "stream")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_tells_nothing_of_the_machine_that_it_ran_on(path):
    notebook = nbformat.read(path, as_version=4)
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}
    assert all(not cell.metadata for cell in notebook.cells)
    assert not re.search(r"/(tmp|home|work|usr|root|Users)/|ipykernel", path.read_text("utf-8"))


def test_a_picture_is_kept():
    kinds = {
        kind
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        for out in cell.get("outputs", [])
        for kind in out.get("data", {})
    }
    assert kinds >= {"image/svg+xml", "text/html"}
