"""Making a program that differs smaller, as long as it differs in the same way.

What is tried: steps of the plan are left out, then statements, half of them at once and one by one; a compound
statement becomes what is inside of it; a parameter of `f` goes; an expression becomes one of its parts, or a number.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from .plan import Program, Step

Check = Callable[[Program], bool]


def shrink(program: Program, differs: Check, seconds: float = 60.0) -> Program:
    """The smallest program that was found within the time."""
    limit = time.process_time() + seconds

    def check(candidate: Program) -> bool:
        if time.process_time() > limit:
            return False
        try:
            return differs(candidate)
        except Exception:
            return False

    plain = dataclasses.replace(program, source=ast.unparse(ast.parse(program.source)) + "\n")
    if check(plain):
        program = plain
    for _ in range(4):
        before = program
        for candidates in (
            fewer_steps,
            fewer_definitions,
            fewer_statements,
            fewer_parameters,
            simpler_steps,
            simpler_expressions,
        ):
            program = reduce(program, candidates, check)
        if program == before or time.process_time() > limit:
            break
    return program


def reduce(
    program: Program, candidates: Callable[[Program], Iterator[Program]], check: Check
) -> Program:
    """Take the first candidate that still differs, until none does."""
    start = 0
    while True:
        for number, candidate in enumerate(candidates(program)):
            if number >= start and check(candidate):
                program, start = candidate, number
                break
        else:
            if start == 0:
                return program
            start = 0
            # Once more from the beginning: what did not work before may work now.
            for candidate in candidates(program):
                if check(candidate):
                    program = candidate
                    break
            else:
                return program


def chunks(items: list[Any]) -> Iterator[tuple[int, int]]:
    """Intervals of a list, the long ones first, the last ones first."""
    size = len(items)
    while size:
        for stop in range(len(items), 0, -size):
            yield max(0, stop - size), stop
        size //= 2


def fewer_steps(program: Program) -> Iterator[Program]:
    plan = [*program.plan]
    for start, stop in chunks(plan):
        yield dataclasses.replace(program, plan=tuple(plan[:start] + plan[stop:]))


def blocks_of(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a tree: those of `f` first, then the outer ones first."""
    last = tree.body[-1:]
    for node in [
        *[n for s in last for n in ast.walk(s)],
        *ast.walk(ast.Module(tree.body[:-1], [])),
        tree,
    ]:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block


def with_source(program: Program, tree: ast.Module) -> Program | None:
    for node in ast.walk(tree):
        for name in ("body",):
            block = getattr(node, name, None)
            if isinstance(block, list) and not block and not isinstance(node, ast.Module):
                block.append(ast.Pass())
        if isinstance(node, ast.Try | ast.TryStar) and not node.handlers and not node.finalbody:
            node.finalbody = [ast.Pass()]
    try:
        return dataclasses.replace(program, source=ast.unparse(tree) + "\n")
    except Exception:
        return None


def variants(
    program: Program, changes: Callable[[ast.Module], Iterator[Callable[[], None]]]
) -> Iterator[Program]:
    """The program after each of several changes to its tree, which are numbered and made on copies."""
    count = sum(1 for _ in changes(ast.parse(program.source)))
    for number in range(count):
        tree = ast.parse(program.source)
        for i, change in enumerate(changes(tree)):
            if i == number:
                change()
                break
        made = with_source(program, tree)
        if made is not None and made.source != program.source:
            yield made


def fewer_definitions(program: Program) -> Iterator[Program]:
    """Without what is defined and not mentioned any more."""
    tree = ast.parse(program.source)
    kept = used(tree, program.plan)
    while (now := used(tree, program.plan, kept)) != kept:
        kept = now
    made = with_source(program, tree)
    if made is not None and made.source != program.source:
        yield made


def used(tree: ast.Module, plan: tuple[Step, ...], before: set[str] | None = None) -> set[str]:
    """The names that a program mentions; what defines no such name is taken out of the tree."""
    text = "\n".join(step.text for step in plan)
    names = set(re.findall(r"\w+", text)) | {"f"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names |= {node.attr}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"\w+", node.value))
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef)]:
        node.body[:] = [s for s in node.body if defines(s) is None or defines(s) & names]
    return names


def defines(statement: ast.stmt) -> set[str] | None:
    """The names that a statement does nothing but define, if so."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return None if statement.name.startswith("__") else {statement.name}
    if isinstance(statement, ast.Import):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Assign):
        stored = [n for n in ast.walk(statement) if isinstance(getattr(n, "ctx", None), ast.Store)]
        if all(isinstance(n, ast.Name | ast.Tuple) for n in stored):
            return {n.id for n in stored if isinstance(n, ast.Name)}
    return None


def fewer_statements(program: Program) -> Iterator[Program]:
    yield from fewer_definitions(program)

    def changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
        for block in [*blocks_of(tree)]:
            for start, stop in chunks(block):
                if len(block) == 1 and isinstance(block[0], ast.Pass):
                    continue
                yield lambda b=block, i=start, j=stop: b.__delitem__(slice(i, j))
            for i, statement in enumerate(block):
                inner = [s for part in blocks_inside(statement) for s in part]
                if inner and not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                    yield lambda b=block, i=i, inner=inner: b.__setitem__(slice(i, i + 1), inner)
                if isinstance(statement, ast.Try) and statement.handlers:
                    yield lambda s=statement: s.handlers.pop()
                if getattr(statement, "orelse", None):
                    yield lambda s=statement: s.orelse.clear()
                if getattr(statement, "decorator_list", None):
                    yield lambda s=statement: s.decorator_list.pop()
                if isinstance(statement, ast.Import) and len(statement.names) > 1:
                    for k in range(len(statement.names)):
                        yield lambda s=statement, k=k: s.names.pop(k)

    yield from variants(program, changes)


def blocks_inside(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield [s for s in block if not isinstance(s, ast.Global | ast.Nonlocal)]
    for case in getattr(statement, "cases", ()):
        yield case.body


def fewer_parameters(program: Program) -> Iterator[Program]:
    """Without one of the parameters of `f`, in the module and in every call."""
    tree = ast.parse(program.source)
    functions = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == "f"]
    if not functions:
        return
    parameters = functions[0].args
    for i in range(len(parameters.args)):
        new = copy.deepcopy(tree)
        f = next(s for s in new.body if isinstance(s, ast.FunctionDef) and s.name == "f")
        defaults = len(f.args.args) - len(f.args.defaults)
        if i >= defaults:
            del f.args.defaults[i - defaults]
        removed = f.args.args.pop(i)
        plan = [
            without_argument(step, i, removed.arg) if step.kind == "call" else step
            for step in program.plan
        ]
        yield dataclasses.replace(program, source=ast.unparse(new) + "\n", plan=tuple(plan))


def without_argument(step: Step, i: int, name: str) -> Step:
    call = ast.parse(f"f({step.text})", mode="eval").body
    assert isinstance(call, ast.Call)
    if i < len(call.args):
        call.args.pop(i)
    call.keywords = [k for k in call.keywords if k.arg != name]
    return dataclasses.replace(step, text=ast.unparse(call)[2:-1])


def simpler_steps(program: Program) -> Iterator[Program]:
    for i, step in enumerate(program.plan):
        if step.kind == "call":
            others = [s.text for s in program.plan[:i] if s.kind == "call" and s.text != step.text]
            texts = [*others[:1], *simpler_arguments(step.text)]
            steps = [dataclasses.replace(step, text=text) for text in texts]
            if step.way not in ("pullback", "value_and_grad"):
                steps.append(dataclasses.replace(step, way="pullback"))
        else:
            tree = ast.parse(step.text)
            steps = []
            if len(tree.body) > 1:
                for k in range(len(tree.body)):
                    rest = tree.body[:k] + tree.body[k + 1 :]
                    steps.append(dataclasses.replace(step, text=ast.unparse(ast.Module(rest, []))))
        for new in steps:
            yield dataclasses.replace(
                program, plan=(*program.plan[:i], new, *program.plan[i + 1 :])
            )


def simpler_arguments(text: str) -> Iterator[str]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    for i, argument in enumerate(call.args):
        if isinstance(argument, ast.Constant | ast.Name):
            continue
        for part in [*ast.iter_child_nodes(argument)]:
            if isinstance(part, ast.expr):
                new = copy.deepcopy(call)
                new.args[i] = part
                yield ast.unparse(new)[2:-1]


def simpler_expressions(program: Program) -> Iterator[Program]:
    def changes(tree: ast.Module) -> Iterator[Callable[[], None]]:
        for parent in [*ast.walk(tree)]:
            for name, value in ast.iter_fields(parent):
                if isinstance(value, ast.expr) and is_replaceable(value):
                    for new in simpler(value):
                        yield lambda p=parent, n=name, new=new: setattr(p, n, new)
                elif isinstance(value, list):
                    for i, item in enumerate(value):
                        if isinstance(item, ast.expr) and is_replaceable(item):
                            for new in simpler(item):
                                yield lambda v=value, i=i, new=new: v.__setitem__(i, new)
                            if name in ("args", "elts") and len(value) > 1:
                                yield lambda v=value, i=i: v.__delitem__(i)

    yield from variants(program, changes)


def is_replaceable(node: ast.expr) -> bool:
    plain = isinstance(node, ast.Constant | ast.Name)
    return not plain and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def simpler(node: ast.expr) -> Iterator[ast.expr]:
    yield ast.Constant(1.5)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not isinstance(child, ast.Starred | ast.Slice):
            yield child
        elif isinstance(child, ast.Starred | ast.keyword):
            yield child.value
