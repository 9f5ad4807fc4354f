"""A tape as a page: Python that runs with nothing but NumPy, and SciPy where the function uses it.

Words
-----
page     the text of a file: imports, helpers, constants, and one function.
helper   a function of ours that the tape calls: it is written out (see ``inline``), since a file imports nothing of us.
check    a statement that raises ValueError where the page does not hold: a decision, the structure of an argument, the
         shape and dtype of an array, and in a file the type of a number.
"""

from __future__ import annotations

import enum
import functools
import itertools
import keyword
import re
import types
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ...rules.numpy_random import Draw
from ...rules.registry import rules
from ...rules.words import with_article
from ...tracer import frames
from ...tracer.errors import TraceError
from ...tracer.kinds import attribute, is_one_of, isinstance, mro_of, own_dict
from ...tracer.loops import Carry
from ...tracer.pairs import Pair
from ...tracer.source import BUILTINS, Writer
from ...tracer.structure import Branch, Leaf, Sealed
from ...tracer.tape import External, Input, Op, Tape, fn_name, ops_in, type_name
from ...tracer.traits import CAPTURING, is_attribute, is_captured, walk
from ...tracer.write_back import Lost
from .. import asking
from ..checkpoint import OtherShape, Segment, SegmentWriter
from ..columns import (
    Column,
    add_columns,
    fill_column,
    join_columns,
    make_column,
    take_column,
)
from ..loops import LoopFunction, Miss
from ..numeric import Slopes, differences
from ..shapes import has_free_shape, shape_in_words, shapes_of
from .folding import Item, Line
from .forms import PairOf
from .inline import Unwritable, constant, definition, is_helper, own_names, public_name
from .looped import LONG, History, Looped, lines_in, wrapped
from .playing import decision, subject_of
from .signature import Parameter, listed, rest_of, text_of
from .telling import STREAMS, differs

WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")  # a name that stands on its own


class Page(Looped):
    """Writes a tape as a page. What it cannot write it refuses; a ``strict`` one checks types of arguments too."""

    def __init__(self, tape: Tape, strict: bool) -> None:
        super().__init__(tape)
        self.strict = strict
        self.imports: dict[str, None] = {}
        self.helpers: list[str] = []
        self.constants: list[str] = []
        self.given: set[int] = set()  # ids of objects among the arguments
        self.shadowing: dict[str, str] = {}  # parameters that are called otherwise in the text
        self.taken.update(p.name for p in tape.parameters or [])

    # Names of what a page refers to

    def named(self, value: Any, hint: str) -> str:
        """The name that stands for an object; it is imported, written out, or a constant."""
        name = self.known.get(id(value))
        if name is None:
            name = self.known[id(value)] = self.refer(value, hint)
            self.namespace[name] = value  # which keeps it alive, so that its id is its own
        return name

    def refer(self, value: Any, hint: str) -> str:
        if isinstance(value, types.ModuleType):
            name = self.fresh(hint)
            self.imports[f"import {value.__name__}" + self.renamed(value.__name__, name)] = None
            return name
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"np.{value.__name__}"
        found = public_name(value)
        if found is not None:
            name = self.fresh(found[1])
            self.imports[f"from {found[0]} import {found[1]}" + self.renamed(found[1], name)] = None
            return name
        loop: Any = getattr(value, "__self__", value)  # or what it comes to where it is careful
        if isinstance(loop, LoopFunction):
            return self.loop(loop)
        if isinstance(value, Segment):
            return self.segment(value)
        if id(value) in COLUMNS:
            self.helpers.append(COLUMNS[id(value)])
            return self.fresh(hint)
        if is_helper(value):
            return self.helper(value)
        if isinstance(value, Slopes):
            by, of = self.function(differences), self.function(value.fn)
            name = self.fresh(f"differences_of_{attribute(value.fn, '__name__', 'fn')}")
            self.imports["import functools"] = None
            self.helpers.append(f"{name} = functools.partial({by}, {of})")
            return name
        if isinstance(value, PairOf):
            raise Unwritable(
                f"{value.__name__} calls a rule, which a file cannot take along\n"
                'the source of reverse(tape, form="naive") has the pullbacks written out'
            )
        if value is type(None):
            return "type(None)"
        if isinstance(value, type) and frames.is_namedtuple(value):
            name = self.fresh(value.__name__)
            self.imports["import collections"] = None
            fields = getattr(value, "_fields", ())
            self.constants.append(f"{name} = collections.namedtuple({value.__name__!r}, {fields})")
            return name
        if isinstance(value, enum.Enum):
            return f"{self.function(type(value))}.{value.name}"
        text = constant(value) or self.container(value)
        if text is not None:
            name = self.fresh(hint)
            self.constants.append(wrapped(f"{name} = {text}"))
            return name
        of = attribute(value, "__self__")
        thing = value if of is None else of
        raise Unwritable(
            f"{described(thing)} cannot be written down in a file\n{advice_for(thing)}"
        )

    def loop(self, fn: LoopFunction) -> str:
        """Write a loop as the function that the engine makes of it."""
        name = self.fresh("loop")
        writer = asking.writer(fn)
        message = f"{fn.family.site}: a decision in this loop is not the one of the traced run"
        self.engine(
            writer, writer.write(name), {id(Miss): f"ValueError({message!r})", id(Column): "list"}
        )
        return name

    def segment(self, fn: Segment) -> str:
        """Write what a checkpointed call computes as a function."""
        name = self.fresh(fn.__name__)
        writer = SegmentWriter(fn)
        self.engine(writer, writer.write(name), {id(OtherShape): "ValueError"})
        return name

    def engine(self, writer: Writer, text: str, written: dict[int, str]) -> None:
        """A function that the engine has made, and before it what that refers to, if it is not ``written`` already."""
        words = {*WORD.findall(text)}
        given = {k: x for k, x in writer.namespace.items() if k in words - {"np", "math"}}
        own = words - {*given}
        new = {k: written.get(id(x)) or self.referred(x, k, own) for k, x in given.items()}
        text = WORD.sub(lambda found: new.get(found[0], found[0]), text)
        self.helpers.append(text.rstrip("\n"))

    def container(self, value: Any) -> str | None:
        """A collection of things that have names of their own, such as types."""
        if is_one_of(type(value), (list, tuple, set, frozenset)):
            parts = ", ".join([self.referred(x, "c1") for x in value])
            return f"{type(value).__name__}([{parts}])"
        if type(value) is dict:
            parts = ", ".join(
                [f"{self.referred(k, 'c1')}: {self.referred(x, 'c1')}" for k, x in value.items()]
            )
            return f"{{{parts}}}"
        return None

    def helper(self, fn: Any) -> str:
        """Write a helper out, and before it what it refers to."""
        name = self.known[id(fn)] = self.fresh(fn.__name__)  # it may refer to itself
        self.namespace[name] = fn
        rule = rules.get(fn)
        if rule is not None and rule.custom:  # it is the value of what it was made of
            made = self.function(fn.__wrapped__)
            self.helpers.append(
                f"def {name}(*args, **kwargs):\n    return {made}(*args, **kwargs)[0]"
            )
            return name
        refer = functools.partial(self.referred, own={*own_names(fn.__code__)})
        self.helpers.append(definition(fn, name, refer))
        return name

    def referred(self, value: Any, name: str, own: Collection[str] = ()) -> str:
        """How a helper with variables of its ``own`` calls what it calls ``name``."""
        self.taken.update(own)
        text = self.reference(value, name)
        if text not in own:
            return text
        other = self.fresh(text)
        self.helpers.append(f"{other} = {text}")
        return other

    def reference(self, value: Any, name: str) -> str:
        if BUILTINS.get(name) is value:
            return name
        if is_one_of(type(value), (bool, int, str, float, type(None))):
            return f"({self.constant(value, name)})"
        return self.function(value) if callable(value) else self.constant(value, name)

    @staticmethod
    def renamed(name: str, new: str) -> str:
        return "" if name == new else f" as {new}"

    def function(self, fn: Any) -> str:
        owner: Any = attribute(fn, "__objclass__")
        name = str(attribute(fn, "__name__"))
        kind = str(attribute(owner, "__name__"))
        if owner is not None and BUILTINS.get(kind) is owner:
            return f"{kind}.{name}"
        if isinstance(owner, type) and issubclass(owner, (np.generic, np.ndarray, np.ufunc)):
            return f"np.{owner.__name__}.{name}"
        if isinstance(owner, type) and public_name(owner) is not None:
            return f"{self.function(owner)}.{name}"
        held = self.known.get(id(attribute(fn, "__self__")))
        return super().function(fn) if held is None else f"{held}.{name}"

    def expression(self, op: Op) -> str:
        """As everywhere; a method of an object that has a name is called on that."""
        method = self.method(op)
        if method is None:
            return super().expression(op)
        given = [self.argument(x) for x in op.args[1:]]
        given += [f"{k}={self.argument(x)}" for k, x in op.kwargs.items()]
        return f"{method}({', '.join(given)})"

    def method(self, op: Op) -> str | None:
        """What is called, where that is a method of an argument or of a generator that a module offers."""
        of, name = op.args[0] if op.args else None, attribute(op.fn, "__name__")
        if isinstance(op.fn, Draw):
            raise Unwritable(
                f"a draw from {name} whose parameters depend on the arguments cannot be written down in a file\n"
                "draw a standard number, and make of it what they say: loc + scale * rng.standard_normal()"
            )
        if isinstance(of, Op) and isinstance(of.value, STREAMS):  # another in each pass of a loop
            return f"{self.operand(of)}.{name}"
        if not (id(of) in self.known or isinstance(of, STREAMS)):
            return None
        if not any(own_dict(cls).get(name) is op.fn for cls in mro_of(type(of))):
            return None
        if id(of) in self.known:
            return f"{self.known[id(of)]}.{name}"
        bound = op.fn.__get__(of)
        return None if public_name(bound) is None else self.function(bound)

    def is_given(self, value: Any) -> bool:
        return id(value.value if type(value) is External else value) in self.given

    def argument(self, tree: Any) -> str:
        if type(tree) is External:
            held = self.known.get(id(tree.value))
            if held is None:
                raise Unwritable(f"{outsider(tree)} is changed, which a file cannot do\n{OUTSIDE}")
            return held
        if type(tree) is Lost:
            raise Unwritable(
                f"{self.tape.name} cannot be written down: there is {with_article(tree.kind)} in its result\n"
                "return numbers, arrays and constants, and make of them outside what else there is"
            )
        return super().argument(tree)

    # The function

    def text(self, name: str) -> str:
        """The whole page."""
        names, unpacked = self.signature()
        self.outside()
        body = [*unpacked, *self.body()]
        answer = f"    return {self.argument(self.tape.result)}"
        told = f'    """{self.origin()}"""'
        head, tail = [f"def {name}({', '.join(names)}):", told], [answer]
        if self.shadowing:  # the text needs what they are the names of
            own = {new: old for old, new in self.shadowing.items()}
            outer = [own.get(x, x) for x in names]
            inner, given = self.fresh(name), [x for x in names if x != "*"]
            head = [f"def {inner}({', '.join(given)}):"]
            call = f"    return {inner}({', '.join([own.get(x, x) for x in given])})"
            tail = [answer, "", "", f"def {name}({', '.join(outer)}):", told, call]
        function = "\n".join([*head, *body, *tail]) + "\n"
        used = function + "\n".join([*self.helpers, *self.constants])
        imports = list(self.imports)
        imports += ["import inspect"] if re.search(r"\binspect\.", used) else []
        imports += ["import math"] if re.search(r"\bmath\.", used) else []
        imports += ["import numpy as np"] if re.search(r"\bnp\.", used) else []
        imports.sort(
            key=lambda line: (line.split()[1].partition(".")[0] in ("numpy", "scipy"), line)
        )
        parts = ["\n".join(imports)] if imports else []
        parts += ["\n".join(self.constants)] if self.constants else []
        parts = ["\n\n".join(parts)] if parts else []
        return "\n\n\n".join([*parts, *self.helpers, function])

    def origin(self) -> str:
        """Where the page comes from: the function, its file and line, and the types of the arguments."""
        tape = self.tape
        place = f" ({tape.site})" if tape.site.filename else ""
        arguments = [f"{p.name}: {kind_of(p)}" for p in tape.parameters or []]
        arguments += [f"{op.name}: {op.type}" for op in rest_of(tape)]
        given = f", traced for {', '.join(arguments)}" if arguments else ""
        return f"{tape.name}{place}{given}.".replace("\\", "/").replace('"""', "'''")

    def signature(self) -> tuple[list[str], list[str]]:
        """The parameters of the function, and the lines that take them apart."""
        names: list[str] = []
        given: list[str] = []
        lines: list[str] = []
        parameters: list[Parameter] = self.tape.parameters or []
        for parameter in parameters:
            name = parameter.name
            if parameter.keyword and "*" not in names:
                names.append("*")
            if not name.isidentifier() or keyword.iskeyword(name):
                name = self.fresh(name)
            elif is_needed(name):
                self.shadowing[name] = self.fresh(name)
                name = self.shadowing[name]
            self.taken.add(name)
            names.append(name)
            given.append(name)
            lines += self.taken_apart(parameter, name)
        lines += self.tied(parameters, dict(zip([p.name for p in parameters], given, strict=True)))
        for op in rest_of(self.tape):
            free = op.name.isidentifier() and op.name not in self.taken and not is_needed(op.name)
            self.names[op] = op.name if free else self.fresh(op.name)
            self.taken.add(self.names[op])
            place = names.index("*") if "*" in names else len(names)
            names.insert(place, self.names[op])
            lines += self.check_of(op, self.names[op], op.name)
        return names, lines

    def tied(self, parameters: list[Parameter], given: dict[str, str]) -> list[str]:
        """The check that the arguments lie to one another, and in memory, as they did."""
        lines = []
        named = {p.key(parameters): given[p.name] for p in parameters}
        for ask, places, was, why in () if self.tape.ties is None else self.tape.ties.asked():
            texts = ", ".join([text_of(named[key], path) for key, path in places])
            lines += self.check(
                f"{self.function(ask)}([{texts}]) != {was!r}",
                f"{why}: {listed(named, places)}, {self.when}",
            )
        return lines

    def taken_apart(self, parameter: Parameter, name: str) -> list[str]:
        """The lines that find the inputs in a structure."""
        lines = []
        for path, part in walk(parameter.tree):
            text = text_of(name, path)
            if isinstance(part, Sealed) and (part.ops or part.leaf):
                raise Unwritable(f"{text} is {part.name}, which a file cannot take\n{part.advice}")
            elif isinstance(part, Branch):
                items = [key for key in part.parts if not is_attribute(part.kind, key)]
                kind = frames.native(part.kind)
                lines += self.classed(part, text, is_captured(path))
                if kind is not None and issubclass(kind, dict):
                    for key in items:
                        self.literal(((part.kind, key),))
                    lines += self.check(
                        f"[*{text}] != {items!r}",
                        f"{text} must {have_in_order('keys', map(repr, items))}",
                    )
                elif kind is not None:
                    self.literal(path)
                    lines += self.check(
                        f"len({text}) != {len(items)}", f"{text} must have {len(items)} items"
                    )
        self.known.update({id(was): text_of(name, path) for path, was in parameter.used})
        self.given.update(id(was) for _, was in parameter.used)
        inputs = list(parameter.inputs())
        numbered = enumerate(inputs)
        for (_, stem, _), group in itertools.groupby(numbered, lambda x: row_of(name, x[0], *x[1])):
            row = [x for _, x in group]
            if stem is not None and len(row) >= LONG:  # the items of a list
                within = row[0][0][:-1]
                if any(within[: len(at)] == at for at, _ in parameter.used):  # it may be changed
                    copied = self.fresh(stem)
                    lines.append(f"    {copied} = [*{stem}]")
                    stem = copied
                self.names.update({op: f"{stem}[{path[-1][1]}]" for path, op in row})
                lines += self.checks_of(row, stem)
                continue
            for path, op in row:
                text = text_of(name, path)
                self.literal(path)
                self.names[op] = self.fresh(op.name) if path else name
                lines += [f"    {self.names[op]} = {text}"] if path else []
                lines += self.check_of(op, self.names[op], text)
        for path, trait in parameter.fixed:
            text = text_of(name, path)
            fails = differs(text, trait, self.strict, described)
            lines += self.check(fails, f"{text} was {described(trait.value)} {self.when}")
        return lines

    @property
    def when(self) -> str:
        return "when this file was written" if self.strict else "in the traced run"

    def classed(self, part: Branch, text: str, captured: bool) -> list[str]:
        """The check that a structure is of the class that it had, and has the same attributes."""
        kind = part.kind
        if issubclass(kind, CAPTURING):
            return []
        if kind.__module__ == "builtins":
            lines = self.check(
                f"type({text}) is not {kind.__name__}",
                f"{text} must be {with_article(kind.__name__)}",
            )
        else:
            lines = self.check(
                f"type({text}).__name__ != {kind.__name__!r}",
                f"{text} must be {with_article(kind.__name__)}",
            )
        own = [str(key).lstrip(".") for key in part.parts if is_attribute(kind, key)]
        if not captured and frames.native(kind) is None and kind.__dictoffset__:
            members = {name: x for base in reversed(kind.__mro__) for name, x in vars(base).items()}
            slots = {name for name, x in members.items() if type(x) is types.MemberDescriptorType}
            names = [name for name in own if name not in slots]  # which vars() has not
            lines += self.check(
                f"[*vars({text})] != {names!r}",
                f"{text} must {have_in_order('attributes', names)}",
            )
        return lines

    def literal(self, path: Any) -> None:
        """Raise where a key cannot be written down."""
        for kind, key in path:
            if not is_attribute(kind, key) and constant(key) is None:
                raise Unwritable(
                    f"the key {key!r} cannot be written down in a file\nlet keys be numbers and texts"
                )

    def checks_of(self, row: Sequence[tuple[Any, Op]], stem: str) -> list[str]:
        """The check that items of a list are of the type that they had."""
        item, first, last = self.fresh("item"), *[path[-1][1] for path, _ in (row[0], row[-1])]
        items = f"{stem}[{first}:{last + 1}]"
        check = self.check_of(row[0][1], item, f"each of {items}")
        return check and [f"    for {item} in {items}:", *["    " + x for x in check]]

    def check_of(self, op: Op, name: str, text: str) -> list[str]:
        """The check that an argument is of the type that it had; an array alone, where the page is no file."""
        was = op.value
        if not (self.strict or isinstance(was, np.ndarray)):
            return []
        if isinstance(was, np.ndarray):
            found = f"np.shape({name}) != {was.shape} or getattr({name}, 'dtype', None) != {str(was.dtype)!r}"
        elif isinstance(was, np.generic):
            found = f"not isinstance({name}, np.{type(was).__name__})"
        else:
            found = f"not isinstance({name}, {type(was).__name__})"
        return self.check(found, f"{text} must be {with_article(type_name(was))}, as {self.when}")

    def check(self, fails: str, message: str) -> list[str]:
        for own, new in self.shadowing.items():
            message = re.sub(rf"\b{new}\b", own, message)
        return [f"    if {fails}:", f"        raise ValueError({message!r})"]

    def outside(self) -> None:
        """Inputs from outside are constants of the page, with the values that they had."""
        used = {x for op in self.tape.ops for x in op.operands()} | {*ops_in(self.tape.result)}
        for op in self.tape.inputs:
            if op not in self.names and op in used:
                text = constant(op.value)
                if text is None:
                    raise Unwritable(
                        f"{op.name} is {described(op.value)}, which cannot be written down in a file\n"
                        "let it be numbers, arrays, texts, and lists, tuples and dicts of them"
                    )
                self.names[op] = self.fresh(op.name)
                self.constants.append(wrapped(f"{self.names[op]} = {text}"))

    def body(self) -> list[str]:
        """The statements. Those of a reverse sweep do not warn, as they do not in the engine."""
        items = self.items()
        swept = next((i for i, x in enumerate(items) if self.is_swept(x)), len(items))
        lines = self.written(items[:swept], "    ")
        reverse = self.written(items[swept:], "        ")
        if reverse:
            lines += ['    with np.errstate(all="ignore"):', *reverse]
        self.name_results()
        return self.finished(lines)

    def is_swept(self, item: Item) -> bool:
        """Whether an item has to do with a reverse sweep, in a page that tells that apart."""
        first = self.tape.forward
        if first is None or not self.strict:
            return False
        ops = itertools.chain(*[x.ops for x in lines_in(item)])
        return any(op not in first and not isinstance(op, Input) for op in ops)

    def line(self, line: Line, pad: str) -> list[str | History]:
        try:
            return [*super().line(line, pad), *self.fits(line, pad)]
        except Unwritable as error:
            site = line.ops[0].site
            raise Unwritable(f"{site}: {error}" if site.filename else str(error)) from None

    def fits(self, line: Line, pad: str) -> list[str]:
        """The check that an array whose shape the data decide has that of the traced run."""
        free = [op for op in line.ops if has_free_shape(op)]
        if not free or self.is_item(line):
            return []
        name, was = self.variable(line), {p: shapes_of(op.value) for p, op in enumerate(line.ops)}
        shape = f"[np.shape(x) for x in {name}]" if isinstance(was[0], list) else f"{name}.shape"
        text = self.varying(was, line.block)
        check = self.check(f"{shape} != {text}", f"{shape_in_words(free[0])}, and has another here")
        return [f"{pad[4:]}{x}" for x in check]

    def lines(self, op: Op) -> list[str]:
        if op.kind == "guard":
            return self.guard(op)
        target = op.args[0] if op.fn in (setattr, delattr) and op.kind == "effect" else None
        if target is not None and not isinstance(target, Op) and id(target) not in self.known:
            owner = with_article(type(op.args[0]).__name__)
            advice = advice_for(op.args[0]) if isinstance(op.args[0], STREAMS) else OUTSIDE
            raise Unwritable(f"{op.args[1]} of {owner} is set, which a file cannot do\n{advice}")
        if op.kind == "effect":
            return [f"    {self.expression(op)}"]
        if isinstance(op.fn, (Pair, Carry)):  # identities: a rule's value, and a mark in a loop
            same = op.args[-1] if type(op.fn) is Pair else op.args[0]
            return [f"    {self.name_of(op)} = {self.argument(same)}  # {fn_name(op.fn)}"]
        return self.statement(op)

    def guard(self, op: Op) -> list[str]:
        """The check that a decision is the traced one."""
        subject, was = self.argument(op.args[0]), op.value
        if isinstance(was, Op):  # which is not the same in each pass of a loop
            expected, many = self.argument(was), was.value
            fails = f"{subject} != {expected}"
            if isinstance(many, (float, np.floating)):
                fails += f" and ({subject} == {subject} or {expected} == {expected})"
            return self.check(
                fails, f"{subject_of(op)} was another in this pass of the loop in the traced run"
            )
        if type(was) is bool or type(was) is np.bool_:
            fails = f"not {subject}" if was else subject
        elif was != was:
            fails = f"{subject} == {subject}"
        else:
            fails = f"{subject} != {self.argument(was)}"
        return self.check(fails, f"{decision(op)}, and is not for these arguments")


def is_needed(name: str) -> bool:
    """Whether a text may mean something of its own by a name."""
    return name in BUILTINS or name in ("np", "math", "inspect")


def have_in_order(what: str, names: Iterable[str]) -> str:
    """What something must have, in words: these keys or attributes, or none."""
    told = ", ".join(names)
    return f"have the {what} {told}, in this order" if told else f"have no {what}"


# What handles columns, one value for each iteration of a loop: lists, in a file.
COLUMNS = {
    id(add_columns): "def add_columns(x, y):\n    return [a + b for a, b in zip(x, y)]",
    id(take_column): "def take_column(column, part):\n    return column[part]",
    id(make_column): (
        "def make_column(values):\n"
        "    flat = isinstance(values, np.ndarray) and values.ndim == 1\n"
        "    return values.tolist() if flat else list(values)"
    ),
    id(fill_column): "def fill_column(value, count):\n    return [value] * count",
    id(join_columns): "def join_columns(*parts):\n    return [x for part in parts for x in part]",
}


def row_of(name: str, i: int, path: Any, op: Input) -> tuple[str, str | None, int]:
    """What those inputs have in common that are items of one list, one after the other, and alike."""
    kind, key = path[-1] if path else (None, None)
    if kind is not None and frames.native(kind) in (list, tuple) and type(key) is int:
        return op.type, text_of(name, path[:-1]), key - i
    return op.name, None, 0


def outsider(outside: External) -> str:
    """What is changed outside, in words."""
    if outside.name == "globals":
        return "a global variable"
    return outside.name or with_article(type(outside.value).__name__)


def advice_for(value: Any) -> str:
    """What to do about an object that has no form in a file."""
    if isinstance(value, STREAMS):
        return (
            "take the generator as an argument, or draw with the functions of np.random and random themselves "
            "(normalvariate, for gauss keeps a number)"
        )
    return "it takes numbers, arrays, texts, and lists, tuples and dicts of them, and objects as arguments"


OUTSIDE = "return what is new, or take what is changed as an argument"


def described(value: Any) -> str:
    """What something is, in words that are the same from run to run."""
    if callable(value) and attribute(value, "__name__"):
        return fn_name(value)
    text = repr(value)
    # Addresses and ops are others in each run, and a comment has one line.
    bare = any(x in text for x in (" at 0x", "<%", "\n"))
    return with_article(type(value).__name__) if bare else text


def kind_of(parameter: Parameter) -> str:
    """The type of an argument, in short."""
    tree = parameter.tree
    if isinstance(tree, Leaf):
        return type_name(tree.value)
    if isinstance(tree, Branch):
        return tree.kind.__name__
    return type(parameter.fixed[0][1].value).__name__ if parameter.fixed else "any"


def source_of(tape: Tape, name: str | None = None, strict: bool = False) -> str:
    """The tape as the text of a page; see `Tape.source`."""
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise TraceError(
            f"{name!r} is no name that a function can have\n"
            "it is written like a variable, with letters, digits and _"
        )
    if name is not None and is_needed(name):
        raise TraceError(f"{name} is what the source calls itself\ngive the function another name")
    if tape.no_more is not None:
        why, cure = tape.no_more
        raise Unwritable(f"{tape.name} cannot be written down: {why}\n{cure}")
    if tape.once is not None:
        raise Unwritable(
            f"{tape.name} cannot be written down, for it holds for the arguments of the traced run alone: {tape.once}\n"
            "trace the function again where it is needed, or write down what each way of it comes to"
        )
    if tape.untold is not None:
        why, cure = tape.untold
        raise Unwritable(
            f"{tape.name} cannot be written down: {why}, and no line of the tape says so\n{cure}"
        )
    wanted = name or re.sub(r"\W+", "_", tape.name).strip("_") or "f"
    if wanted[0].isdigit() or keyword.iskeyword(wanted) or is_needed(wanted):
        wanted += "_"
    page = Page(tape, strict)
    page.taken.add(wanted)
    return page.text(wanted)
