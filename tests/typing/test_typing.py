"""What type checkers see of the public names."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAM = HERE / "public_names.py"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The packages laid out as they are installed."""
    folder = tmp_path_factory.mktemp("packages")
    package = folder / "wengert"
    package.mkdir()
    for path in [
        *(ROOT / "wengert").iterdir(),
        *(ROOT / x for x in ("rules", "tracer", "transforms")),
    ]:
        (package / path.name).symlink_to(path, target_is_directory=path.is_dir())
    return folder


def test_a_checker_knows_the_types_of_all_that_is_public(installed, tmp_path):
    """``assert_type`` in the program fails for ``Any``, where another type is named."""
    pytest.importorskip("mypy")
    options = [
        "--config-file=",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(PROGRAM)],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(installed), "PATH": ""},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_another_checker_agrees(installed, tmp_path):
    """pyright in its strict mode, where it is installed: it is a program for Node that pip's package fetches."""
    if shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    shutil.copy(PROGRAM, tmp_path / "program.py")
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(installed)], "include": ["."]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        ["pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "npm" in done.stderr + done.stdout:
        pytest.skip("pyright could not be fetched")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_program_has_every_public_name():
    used = {x.id for x in ast.walk(ast.parse(PROGRAM.read_text())) if isinstance(x, ast.Name)}
    assert used.issuperset(wengert.__all__)


def test_the_program_runs():
    import runpy

    runpy.run_path(str(PROGRAM))
