"""Functions of ours, or of the user's own program, written out so that a file needs neither.

Words
-----
public    what can be imported from NumPy, SciPy or the standard library, by a public name if there is one.
helper    any other function in Python: its source is written into the file, without decorators and annotations.
"""

from __future__ import annotations

import ast
import dis
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...tracer.errors import TraceError
from ...tracer.kinds import attribute, isinstance

OURS = __name__.partition(".")[0]
# Where NumPy and SciPy offer what says nothing of where it is from, such as ufuncs and bound methods.
PLACES = (
    "numpy.random",
    "numpy.fft",
    "numpy.linalg",
    "numpy",
    "random",
    "math",
    "cmath",
    "operator",
)
METHODS = (types.MethodType, types.BuiltinMethodType)
FREE = ("numpy", "scipy")  # packages that a file may need


OF_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


class Unwritable(TraceError):
    """Something has no form in a file."""


def top_of(module: Any) -> str:
    return str(module).partition(".")[0]


def is_available(module: Any) -> bool:
    """Whether a file may import from a module: NumPy, SciPy or the standard library."""
    top = top_of(module)
    return top != "__main__" and (top in FREE or top in sys.stdlib_module_names)


def public_name(value: Any) -> tuple[str, str] | None:
    """The module and the name from which something can be imported."""
    module, name = attribute(value, "__module__"), attribute(value, "__name__")
    if not isinstance(name, str) or not name.isidentifier():
        return None
    found: list[str] = []
    if isinstance(module, str) and is_available(module):
        parts = module.split(".")
        found = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
        found.sort(key=lambda path: "._" in path)
    elif not isinstance(module, str):
        others = [x for x in list(sys.modules) if top_of(x) in FREE]
        found = [*PLACES, *sorted(others, key=lambda path: ("._" in path, path))]
    # What a module makes up when it is asked is not asked for: it may be deprecated.
    for path in found:
        known = (attribute(sys.modules.get(path), "__dict__") or {}).get(name)
        if known is value or (type(known) is type(value) in METHODS and known == value):
            return path, name  # two methods are equal that are one of one object
    return None


def definition(fn: types.FunctionType, name: str, refer: Callable[[Any, str], str]) -> str:
    """The source of a helper under a name; ``refer(value, name)`` is how the file calls what it refers to."""
    tree = parsed(fn)
    ours = top_of(fn.__module__) == OURS
    # What is below the decorators is its definition, unless it calls itself, or is what one of them has made of it.
    other = attribute(fn, "__wrapped__") is not None or fn.__name__ in names_in(fn.__code__)
    if tree.decorator_list and other and not ours:
        raise Unwritable(
            f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}: {fn.__qualname__} is decorated, and a file "
            "cannot do without the decorator\nimport it where the file is used, or trace what it does"
        )
    renamed: dict[str, str] = {}
    refuse_changes(fn, tree)
    for known, value in references(fn):
        text = refer(value, known)
        if text != known:
            if known in own_names(fn.__code__):
                raise Unwritable(
                    f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}: {fn.__qualname__} has a variable {known} "
                    f"beside a global of that name\ngive one of them another name"
                )
            renamed[known] = text
    tree.decorator_list = []
    tree.name = name
    return ast.unparse(ast.fix_missing_locations(Plain(renamed, fn.__name__, name).visit(tree)))


def parsed(fn: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function that ``def`` has made."""
    where = f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        raise Unwritable(
            f"{where}: the source of {fn.__qualname__} is not at hand\n"
            "define it in a file or a notebook's cell"
        ) from None
    if not isinstance(tree, ast.FunctionDef):
        raise Unwritable(f"{where}: {fn.__qualname__} has no name\ndefine it with def")
    return tree


def refuse_changes(fn: types.FunctionType, tree: ast.FunctionDef) -> None:
    """Raise where a function sets variables outside of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            outer = node.names if isinstance(node, ast.Global) else fn.__code__.co_freevars
            for name in {*node.names}.intersection(outer):
                raise Unwritable(
                    f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}: {fn.__qualname__} sets {name}, which "
                    "lies outside of it\nreturn what is new, or take it as an argument"
                )


def references(fn: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function refers to by names of its module and of the functions around it."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
    for name in dict.fromkeys(names_in(fn.__code__)):
        if name == fn.__name__:
            continue
        if name in cells:
            yield name, cells[name].cell_contents
        elif name in fn.__globals__:
            yield name, fn.__globals__[name]


def names_in(code: types.CodeType) -> Iterator[str]:
    """The names of globals in a function and in those that it makes, and of what it has captured itself."""
    yield from code.co_freevars
    todo = [code]
    while todo:
        code = todo.pop()
        yield from [x.argval for x in dis.get_instructions(code) if x.opname in OF_GLOBALS]
        todo += [x for x in code.co_consts if isinstance(x, types.CodeType)]


def own_names(code: types.CodeType) -> Iterator[str]:
    """The names of variables of a function's own, and of those that it makes."""
    yield from (*code.co_varnames, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from own_names(constant)


class Plain(ast.NodeTransformer):
    """A function without annotations, with a docstring of one line, and with other names for what it refers to."""

    def __init__(self, renamed: dict[str, str], name: str, new: str) -> None:
        self.renamed = {**renamed, name: new}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        text = ast.get_docstring(node)
        if text is not None:
            node.body[0] = ast.Expr(ast.Constant(text.splitlines()[0]))
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], node.value)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        text = self.renamed.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body


def is_helper(value: Any) -> bool:
    """Whether something is to be written out: a function in Python that nobody else offers."""
    return type(value) is types.FunctionType and public_name(value) is None


def constant(value: Any) -> str | None:
    """A constant as an expression in a file that has ``np``; None where it has none."""
    if isinstance(value, np.ndarray) and type(value) is np.ndarray and value.dtype.kind in "biufc":
        if (value.dtype.kind in "fc" and not np.isfinite(value).all()) or value.size > 5000:
            data = np.ascontiguousarray(value).tobytes().hex()
            text = f"np.frombuffer(bytes.fromhex({data!r}), {value.dtype.str!r})"
            return f"{text}.reshape({value.shape}).copy()"
        return f"np.array({value.tolist()!r}, dtype={value.dtype.str!r}).reshape({value.shape})"
    if isinstance(value, np.dtype):
        return f"np.dtype({value.str!r})" if value.names is None else None
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return f"np.{type(value).__name__}({number(value.item())})"
    if type(value) in (float, complex):
        return number(value)
    if type(value) is range:
        return repr(value)
    if isinstance(value, list) and len(value) > 8 and {*map(type, value)} == {int}:
        numbers = range(value[0], value[-1] + 1)
        if value == [*numbers]:
            return f"list({numbers})"
    try:
        return repr(value) if ast.literal_eval(repr(value)) == value else None
    except (ValueError, SyntaxError, TypeError):
        return None


def number(value: Any) -> str:
    """A number of Python's own, infinite ones and NaN as well."""
    text = repr(value)
    return text if "n" not in text else f"{type(value).__name__}({text!r})"
