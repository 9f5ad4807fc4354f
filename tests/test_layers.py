"""Imports run one way: rules, tracer, transforms, the package; and inside of each. No two modules need each other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ["rules", "tracer", "transforms", "wengert"]  # each may import those before it


def path_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules() -> list[str]:
    found = []
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found


def imported(module: str, known: set[str]) -> Iterator[str]:
    """The modules of the project that a module imports, in functions and for types too."""
    path = path_of(module)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
        base = [x for x in base if x]
        if len(base) > 1 and base[0] == "wengert":  # the other packages lie in this one
            base = base[1:]
        for name in node.names:
            whole = ".".join([*base, name.name])
            found = whole if whole in known else ".".join(base)
            if found in known and found != module:
                yield found


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    known = {*modules()}
    return {module: {*imported(module, known)} for module in known}


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    found, todo = set(), [start]
    while todo:
        new = graph[todo.pop()] - found
        found |= new
        todo += new
    return found


def test_packages_import_one_way(graph):
    rank = {layer: i for i, layer in enumerate(LAYERS)}
    wrong = [
        (module, other)
        for module, others in graph.items()
        for other in others
        if rank[other.split(".")[0]] > rank[module.split(".")[0]]
    ]
    assert not wrong


def test_modules_import_one_way(graph):
    ways = {module: reached(graph, module) for module in graph}
    circles = {frozenset(x for x in ways[m] if m in ways[x]) for m in graph if m in ways[m]}
    assert not circles
