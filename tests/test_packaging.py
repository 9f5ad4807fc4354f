"""What gets installed, and what an import costs."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {
    "wengert": "wengert",
    "rules": "wengert/rules",
    "tracer": "wengert/tracer",
    "transforms": "wengert/transforms",
}
HEAVY = ["click", "matplotlib", "scipy", "tqdm", "hypothesis", "pytest"]


def python(*arguments, cwd=ROOT, **environment):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A checkout: a copy of the project's files."""
    tree = tmp_path_factory.mktemp("tree")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    return tree


@pytest.fixture(scope="module")
def wheel(tree):
    """The project's wheel, built from a copy of its files."""
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.partition(".")[0]) < 77:
        pytest.skip("setuptools is too old to build the project")
    build = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    name = python("-c", build, cwd=tree).split()[-1]
    return tree / name


def test_the_wheel_holds_every_module_and_nothing_generic(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = {name for name in names if ".dist-info/" in name}
    expected = {"wengert/py.typed", "wengert/digits.npz", "wengert/digits.md"}
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            expected.add(f"{package}/{path.relative_to(ROOT / folder).as_posix()}")
    assert names - metadata == expected
    assert any(name.endswith("licenses/LICENSE") for name in metadata)


PROGRAM = (
    "import wengert, wengert.tracer, wengert.rules, wengert.transforms;"
    "print(wengert.__file__); print(wengert.tracer.__file__); print(wengert.grad(lambda x: x * x)(3.0))"
)


def test_a_checkout_is_importable(tree):
    *where, gradient = python("-c", PROGRAM, cwd=tree).split()
    assert all(Path(file).is_relative_to(tree) for file in where)
    assert gradient == "6.0"


def test_the_wheel_works(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    *where, gradient = python("-c", PROGRAM, cwd=ROOT.anchor, PYTHONPATH=str(tmp_path)).split()
    assert all(Path(file).is_relative_to(tmp_path) for file in where)
    assert gradient == "6.0"


@pytest.mark.parametrize("cwd", [ROOT, Path(ROOT.anchor)], ids=["root", "elsewhere"])
def test_the_installed_package_works_from_anywhere(cwd):
    program = "import wengert; print(wengert.grad(lambda x: x * x)(3.0))"
    assert python("-c", program, cwd=cwd).split() == ["6.0"]
    assert python("-m", "wengert", "--help", cwd=cwd).startswith("Usage: wengert")


def test_the_import_is_light():
    program = f"import sys, wengert; print([m for m in {HEAVY} if m in sys.modules])"
    assert python("-c", program).strip() == "[]"


def test_no_generic_name_is_importable():
    program = (
        "import importlib.util as u; names = ['rules', 'tracer', 'transforms'];"
        "print([n for n in names if u.find_spec(n)])"
    )
    assert python("-c", program, cwd=ROOT.anchor).strip() == "[]"


def test_public_names():
    import wengert

    assert wengert.vjp is wengert.pullback
    assert [name for name in wengert.__all__ if not hasattr(wengert, name)] == []
    for error in (wengert.NoRuleError, wengert.CotangentError, wengert.TraceError):
        assert issubclass(error, wengert.WengertError)


def test_importing_the_package_leaves_alone_what_it_does_not_need():
    """The import takes half as long without them."""
    code = "import sys, wengert; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ended.stdout.split()
    assert "numpy.linalg" in loaded
    for name in ("numpy.f2py", "numpy.testing", "click", "scipy", "matplotlib", "unittest"):
        assert name not in loaded
