"""The tape: the Wengert list of one run of a function.

Words
-----
op        one line of the tape, and the variable that it defines: ``%7 = mul(%3, %4)``. The two are one object.
kind      ``input``, ``call``, ``guard`` or ``effect``.
input     a value that comes from the arguments, or from outside the function.
guard     a decision taken on a value: the tape is valid only where the value is the same.
effect    something done to the outside: kept in order and never dropped.
primal    the value that an op had in the traced run.
site      the place in the user's program that an op comes from.

The arguments of an op are ops, constants, or tuples, lists, dicts and slices of them. An op does not know its
number: variables are referred to by object and numbered only when they are printed.
"""

from __future__ import annotations

import dataclasses
import linecache
import operator
import os
import re
import sys
import threading
from collections.abc import Callable, Container, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, overload
from weakref import WeakValueDictionary, ref

import numpy as np

from . import meaning
from .entrances import entrance
from .frames import items_of, native, valued
from .habits import OF_TAPES, TAPE, lacking
from .kinds import attribute, isinstance

LONGEST_LINE = 120  # of a program, in a message


class Site(NamedTuple):
    """A place in a program: file, line and the function's name."""

    filename: str
    lineno: int
    function: str

    def __str__(self) -> str:
        cell = cell_of(self.filename)
        if cell is not None:
            return f"{cell}, line {self.lineno}"
        return f"{os.path.basename(self.filename)}:{self.lineno}"

    @classmethod
    def of_code(cls, code: CodeType) -> Site:
        """Where a function begins."""
        return Site(code.co_filename, code.co_firstlineno, code.co_name)

    @property
    def place(self) -> str:
        """The file with its whole name, and the line; in a notebook the cell, as IPython calls it."""
        return f"{self.filename}:{self.lineno}" if cell_of(self.filename) is None else str(self)

    @property
    def text(self) -> str:
        """What the line says, as much of it as a message can show; nothing where the source is not at hand."""
        text = linecache.getline(self.filename, self.lineno).strip() if self.filename else ""
        return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 2].rstrip() + " …"

    @property
    def plain(self) -> Site:
        """The place alone."""
        return self


class Target(Site):
    """The place of an instruction whose result is stored at once, in the variable ``name``.

    ``fn`` is the operator that it applies; None where it calls a function, which may come to several lines.
    """

    name: str
    fn: Any

    @classmethod
    def of(cls, site: Site, name: str, fn: Any) -> Target:
        self = cls(*site)
        self.name, self.fn = name, fn
        return self

    @property
    def plain(self) -> Site:
        return Site(*self)

    def __reduce__(self) -> Any:
        return Target.of, (self.plain, self.name, self.fn)


IN_ONE_WORD = re.compile(r"\w[\w.\[\]'\"-]*")


def variable(op: Op) -> str | None:
    """The user's variable in which what an op gives is stored at once; None where that is not so, or not certain.

    A call may come to several lines, of which the last alone is stored: whoever asks looks at those beside it.
    """
    if isinstance(op, Input):
        return op.name if IN_ONE_WORD.fullmatch(op.name) else None
    site = op.site
    if not isinstance(site, Target) or op.fn is element:
        return None
    if site.fn is None:
        return site.name
    return site.name if fn_name(site.fn) in (fn_name(op.fn), "i" + fn_name(op.fn)) else None


def cell_of(filename: str) -> str | None:
    """What IPython calls a cell of a notebook, ``Cell In[2]``, given the file that it stands for."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    known = None if shell is None else getattr(shell.compile, "format_code_name", None)
    found = None if known is None else known(filename)
    return None if found is None else " ".join(found)


NOWHERE = Site("", 0, "")


class Home(ref["Tape"]):
    """The way from an op to its tape. The tape has the op, so that the op must not keep the tape alive."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return home_of, (self(),)


class Op:
    """One line of the tape and the variable that it defines.

    ``fn``, ``args`` and ``kwargs`` say what is called, ``value`` is the primal, ``site`` the user's line and
    ``tape`` the tape that the op was recorded on, as long as somebody has that. An op is made for a tape, or for
    that of another op.
    """

    __slots__ = (
        "args",
        "fn",
        "home",
        "signature",
        "site",
        "value",
    )  # only a FloatOp has a signature
    kind = "call"
    home: Home
    kwargs: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, fn: Any, args: tuple[Any, ...], value: Any, site: Site, tape: Tape | Op
    ) -> None:
        self.fn = fn
        self.args = args
        self.value = value
        self.site = site
        self.home = tape.home

    @property
    def tape(self) -> Any:
        return self.home()

    @tape.setter
    def tape(self, tape: Tape | Op) -> None:
        self.home = tape.home

    @property
    def type(self) -> str:
        """Python type, or dtype and shape of an array: ``float``, ``float64[3,2]``."""
        return type_name(self.value)

    @property
    def line(self) -> int:
        """Line number in the user's program (0 where there is none)."""
        return self.site.lineno

    def __repr__(self) -> str:
        tape = self.tape
        return f"<{meaning.tools.editing.line_of(self, tape)}>"

    def operands(self) -> list[Op]:
        """Each op that this op takes as an argument, in order, however deeply nested."""
        found: list[Op] = []
        for x in self.args:
            kind = type(x)
            if issubclass(kind, Op):
                found.append(x)
            elif not issubclass(kind, (float, int, str)):
                found += ops_in(x)
        if self.kwargs:
            found += ops_in(self.kwargs)
        return found


class Signature:
    """The function and the operand kinds of an arithmetic operation on plain floats.

    Such operations come by the million, so the sweep keeps what it needs for them here: ``pulls`` holds a compiled
    pullback for each pattern of active operands. ``kinds`` says of each operand ``Op``, ``float`` or ``int``.
    """

    __slots__ = ("fn", "kinds", "pulls")
    known: ClassVar[dict[Any, Signature]] = {}
    rules = 0  # the count of changes to the registry for which `pulls` are right
    lock = threading.RLock()

    def __init__(self, fn: Any, kinds: tuple[type, ...]) -> None:
        self.fn = fn
        self.kinds = kinds
        self.pulls: list[Any] = [None, None, None, None]

    def __reduce__(self) -> Any:
        return Signature.of, (self.fn, *self.kinds)  # of which there is one in each process

    @classmethod
    def of(cls, fn: Any, *kinds: type) -> Signature:
        """The one signature of a function and operand kinds."""
        found = cls.known.get((fn, kinds))
        return found or cls.known.setdefault((fn, kinds), cls(fn, kinds))

    @classmethod
    def renew(cls, changes: int) -> None:
        """Forget the compiled pullbacks if a rule has changed."""
        if cls.rules == changes:
            return
        with cls.lock:  # whoever finds the new count finds them forgotten
            for signature in list(cls.known.values()):  # other threads add to them
                signature.pulls = [None, None, None, None]
            cls.rules = changes


class FloatOp(Op):
    """Arithmetic on two plain floats, or on one and a constant, with a float result."""

    __slots__ = ()
    signature: Signature

    def __init__(
        self,
        fn: Any,
        args: tuple[Any, ...],
        value: Any,
        site: Site,
        tape: Tape | Op,
        signature: Signature,
    ) -> None:
        self.fn = fn
        self.args = args
        self.value = value
        self.site = site
        self.home = tape.home
        self.signature = signature

    def operands(self) -> list[Op]:
        a, b = self.args
        found = [a] if issubclass(type(a), Op) else []
        if issubclass(type(b), Op):
            found.append(b)
        return found


class KeywordOp(Op):
    """An op with keyword arguments (few have them, and the others need not pay for it)."""

    __slots__ = ("kwargs",)

    def __init__(
        self,
        fn: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        value: Any,
        site: Site,
        tape: Tape | Op,
    ) -> None:
        super().__init__(fn, args, value, site, tape)
        self.kwargs = kwargs  # type: ignore[misc]  # a slot here, shared by the class where there are none


class Input(Op):
    """A value from the arguments (``role`` is ``argument``) or from outside the function (``outside``)."""

    __slots__ = ("name", "place", "role")
    kind = "input"

    def __init__(
        self, name: str, value: Any, tape: Tape, role: str = "argument", place: Any = None
    ) -> None:
        super().__init__(None, (), value, NOWHERE, tape)
        self.name = name
        self.role = role
        self.place = place  # where the value is found at another call (see `reads`)


class Guard(Op):
    """The decision that the variable ``args[0]`` had the value ``value``."""

    __slots__ = ()
    kind = "guard"


class Effect(KeywordOp):
    """Something done to the outside, such as ``print``."""

    __slots__ = ()
    kind = "effect"


class External:
    """Stands on the tape for something outside, by its name."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return self.name


def free(name: str, taken: Container[str]) -> str:
    """A name for one more input, which none has yet."""
    while name in taken:
        name += "_"
    return name


def element(values: Any, index: int) -> Any:
    """Take one of the several results of an op: the primitive behind ``q, r = np.linalg.qr(a)``."""
    return values[index]


def become_element(op: Op, values: Op, index: int) -> None:
    """Let an op of the tape be what another op has at an index; it keeps its value."""
    if type(op) is FloatOp:
        op.__class__ = Op  # type: ignore[assignment]
    if op.kwargs:
        op.kwargs = {}  # type: ignore[misc]
    op.fn, op.args = element, (values, index)


# What to do about that which a run does outside and no line of its tape says.
AS_ARGUMENT = (
    "let the function take what it draws or changes as an argument, and return what is new"
)


class Tape:
    """The Wengert list of one run.

    ``inputs`` are the input ops, ``ops`` all lines in order (inputs that were met on the way included) and
    ``result`` is the returned structure with ops as its leaves. ``print(tape)`` shows it, ``for op in tape``
    walks over it, ``tape[3]`` is one line and ``tape[2:5]`` a list of lines.

    ``tape(*args)`` runs it. `replace`, `insert`, `substitute` and `with_primitives` give other tapes, which are
    checked, and whose values are those of the same inputs; a tape itself is never changed by them.

    >>> import math
    >>> from wengert import trace
    >>> tape = trace(lambda x, y: math.sin(x) * y, 0.0, 3.0)
    >>> len(tape), tape[2].fn.__name__, tape["%4"].value
    (4, 'sin', 0.0)
    >>> tape.replace(tape["%3"], math.cos)(0.0, 5.0)
    5.0
    """

    def __init__(self, name: str = "f", site: Site = NOWHERE) -> None:
        self.home = Home(self)
        # What is asked for the values of primitive calls while the run goes on, if anything is:
        # ``perform(fn, args, kwargs, site, go)``, where ``go(*args, **kwargs)`` makes the call
        self.perform: Callable[..., Any] | None = None
        self.name = name
        self.site = site
        self.ops: list[Op] = []
        self.result: Any = None
        self.callers: dict[
            Op, str
        ] = {}  # of calls without a rule: where the user's program made them
        self.written = 0  # how often an array was written to
        self.memories: WeakValueDictionary[int, Any] = WeakValueDictionary()  # of its own arrays
        self.lent: list[Any] = []  # those that belong to something other than an array
        self.once: str | None = (
            None  # why it holds for the traced arguments only (see ``transforms.roll``)
        )
        # Why it cannot be run again, and what to do.
        self.no_more: tuple[str, str] | None = None
        # What the run drew, or did outside, that no line says, and what to do.
        self.untold: tuple[str, str] | None = None
        self.passages: list[Any] = []  # runs through loops, where they are marked (see ``loops``)
        self.again: dict[
            Op, None
        ] = {}  # what will be computed with again, so that its value must survive (see ``checkpoint``)
        self.undo: list[Any] | None = None  # how to take back what a rehearsal has written
        self.overwritten: list[Op] | None = (
            None  # versions of arrays that were written to, if noted
        )
        self.outline: Any = None  # which calls and loops its lines come from (see ``outline``)
        self.options: dict[str, Any] = {}  # how it is printed (see ``format``)
        self.ways: dict[str, set[str]] = {}  # how decisions came out in kept programs
        self.parameters: list[Any] | None = None  # what the function takes, if that is known
        self.forward: frozenset[Op] | None = None  # the ops of the forward run, if others follow
        self.layout = False  # whether the run looked at how arrays lie in memory
        # Whether it asked which objects are one, or which arrays share memory.
        self.identity = False
        self.ties: Any = None  # what it asks of how the arguments lie to one another (see ``ties``)

    if not TYPE_CHECKING:  # which would take any name for an attribute

        @entrance
        def __getattr__(self, name):
            raise lacking(self, name, OF_TAPES, TAPE)

    def __getstate__(self) -> dict[str, Any]:
        return {key: x for key, x in vars(self).items() if key not in ("home", "memories", "lent")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        home_of(self)
        vars(self).update(state, memories=WeakValueDictionary(), lent=[])

    def like(self) -> Tape:
        """An empty tape for what becomes of this one, which is printed in the same way."""
        tape = Tape(self.name, self.site)
        tape.outline, tape.options, tape.ways = self.outline, self.options, self.ways
        tape.hold_as(self)
        return tape

    def hold_as(self, other: Tape, once: str | None = None) -> None:
        """Hold for no more than a tape of which this one was made, and once if that is so."""
        self.once, self.no_more, self.untold = other.once or once, other.no_more, other.untold
        self.layout, self.identity, self.ties = other.layout, other.identity, other.ties

    def named(self) -> set[str]:
        """The names of inputs and parameters."""
        return {x.name for x in (*self.inputs, *(self.parameters or ()))}

    @property
    def inputs(self) -> list[Input]:
        return [op for op in self.ops if isinstance(op, Input)]

    def __iter__(self) -> Iterator[Op]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    @entrance
    def format(self, depth: int | None = None, flat: bool = False, values: bool = False) -> str:
        """The tape as text: loops as one body, branches with the ways that were taken, the user's own names.

        ``depth`` says how deep calls of functions are shown: what is called at a greater depth is one line (None: all
        is shown, unless that makes more than 60 lines). ``flat`` gives the plain list, one line for each operation,
        and ``values`` shows what each of them gave in the traced run, with a summary for arrays.

        >>> from wengert import trace
        >>> def f(x):
        ...     for _ in range(1000):
        ...         x = 3.9 * x * (1.0 - x)
        ...     return x
        >>> print(trace(f, 0.5).format(values=True).partition("carrying")[0])  # doctest: +ELLIPSIS
        tape of f  # ...
          x = input :: float = 0.5
          loop 1,000 times,...
        """
        return meaning.format_tape(self, depth=depth, flat=flat, values=values)

    def show(self, depth: int | None = None, flat: bool = False, values: bool = False) -> None:
        """Print the tape; see `format`."""
        print(self.format(depth, flat, values))

    @overload
    def __getitem__(self, index: int | str) -> Op: ...
    @overload
    def __getitem__(self, index: slice) -> list[Op]: ...
    @entrance
    def __getitem__(self, index: Any) -> Any:
        """The op of a line, counted from 0, or a list of those of a slice.

        Or by the name that it is printed under, ``tape["%7"]`` or ``tape["y"]``: in a loop that of the last pass, and
        ``tape["y[0]"]`` that of the first.
        """
        if type(index) is str:
            return meaning.tools.editing.op_named(self, index)
        if type(index) is int and not -len(self) <= index < len(self):
            raise IndexError(f"a tape of {len(self)} lines has no line {index}")
        return self.ops[index]

    def __str__(self) -> str:
        return self.format(**self.options)

    __repr__ = __str__

    # What can be done with a tape: each a tool of its own, loaded when it is first asked for

    @entrance
    def source(self, name: str | None = None) -> str:
        """The tape as Python source that runs when pasted, one operation a statement.

        The function takes what the traced one took. Its decisions are checked, and the structures, texts, flags and
        functions in its arguments, the shapes and dtypes of arrays: where one is another, it raises ValueError. Imports
        and helpers that it needs are written above it. `save` writes a file that checks the types of numbers as well.
        Raises `TraceError` where the text could not do what the function did.
        """
        return meaning.tools.pages.source_of(self, name)

    @entrance
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tape: the value for other arguments, taken as the traced function takes them.

        What comes from outside is as it was; what the tape does to the outside (``print``) is done again. Raises
        `GuardError` where a decision is another one than in the traced run, so that the tape does not hold for these
        arguments, and `TraceError` where they are not of the types and shapes of the traced ones.

        >>> from wengert import trace
        >>> trace(lambda d: d["a"] * d["b"], {"a": 1.0, "b": 2.0})({"a": 3.0, "b": 4.0})
        12.0
        """
        return meaning.tools.playing.play(self, args, kwargs)

    @entrance
    def compile(self, math: Any = None) -> Callable[..., Any]:
        """The tape as a function, in the numbers of a module: ``mpmath``, ``mpmath.iv``, ``sympy``, ``numpy`` …

        The module need only have functions of the names that those of ``math`` and NumPy have (``sin``, ``exp``).
        Without one it is the same numbers as ever. See `wengert.transforms.tools.systems.compiled`.

        >>> import math
        >>> import numpy as np
        >>> from wengert import trace
        >>> trace(lambda x: math.sqrt(x) * 2, 4.0).compile(math=np)(np.array([1.0, 4.0, 9.0])).tolist()
        [2.0, 4.0, 6.0]
        """
        return meaning.tools.systems.compiled(self, math)

    @entrance
    def cotangents(self, *args: Any, dy: Any = None, **kwargs: Any) -> dict[Op, Any]:
        """The cotangent of every op that has one, for these arguments (none: for those of the traced run).

        ``dy`` is the cotangent of the result, of its structure and shapes, and 1 where that is a real number. An op
        that is not in the answer has no influence on the result, or no derivative.

        >>> from wengert import trace
        >>> tape = trace(lambda x, y: x * y + x, 2.0, 3.0)
        >>> tape.cotangents()  # doctest: +ELLIPSIS
        tape of <lambda>  # ...
          x = input :: float   d = 4
          y = input :: float   d = 2
          %3 = mul(x, y) :: float   d = 1  # ...
          %4 = add(%3, x) :: float   d = 1  # ...
          return %4
        """
        return meaning.tools.sensitivities.cotangents(self, args, kwargs, dy)

    @entrance
    def replace(self, op: Op, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Tape:
        """The tape with another call in the place of ``op``, of the operands of that where none are given.

        ``args`` and ``kwargs`` are earlier ops of this tape, constants, or lists, tuples, dicts and slices of these.
        Raises `TraceError` for an op that is not there (yet) and for a call that raises, and `GuardError` where a
        decision falls otherwise on the new tape.

        >>> import operator
        >>> from wengert import trace
        >>> tape = trace(lambda x, y: x * y, 2.0, 3.0)
        >>> tape.replace(tape[2], operator.sub, tape[1], 1.0)(2.0, 3.0)
        2.0
        """
        return meaning.tools.editing.replaced(self, op, fn, args, kwargs)

    @entrance
    def insert(self, index: int, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Tape:
        """The tape with one more call, which is the line ``index`` of the new tape. Errors are those of `replace`.

        >>> import math
        >>> from wengert import trace
        >>> tape = trace(lambda x, y: x * y, 2.0, 3.0)
        >>> more = tape.insert(2, math.sqrt, tape[0])
        >>> more.substitute(more[0], more[2])(4.0, 3.0)
        Traceback (most recent call last):
        wengert.tracer.errors.TraceError: %3 is used before it is defined: %3 = sqrt(x) :: float
        insert the new op after it
        >>> more.replace(more[3], more[3].fn, more[2], more[1])(4.0, 3.0)
        6.0
        """
        return meaning.tools.editing.inserted(self, index, fn, args, kwargs)

    @entrance
    def substitute(self, op: Op, by: Any) -> Tape:
        """The tape that uses ``by``, an earlier op or a constant, wherever this one uses ``op``.

        The line of ``op`` stays. Errors are those of `replace`.

        >>> from wengert import trace
        >>> tape = trace(lambda x, y: x * y, 2.0, 3.0)
        >>> tape.substitute(tape[1], 10.0)(2.0, 3.0)
        20.0
        """
        return meaning.tools.editing.substituted(self, op, by)

    @entrance
    def with_primitives(self, primitives: Any) -> Tape:
        """The tape with every call looked into that is not among the ``primitives`` (see `trace`).

        What is written in C is an operation all the same.

        >>> from wengert import trace
        >>> def square(x):
        ...     return x * x
        >>> tape = trace(lambda x: square(x) + 1.0, 3.0, primitives=[square])
        >>> [op.fn.__name__ for op in tape[1:]]
        ['square', 'add']
        >>> [op.fn.__name__ for op in tape.with_primitives([])[1:]]
        ['mul', 'add']
        """
        return meaning.tools.editing.with_primitives(self, primitives)

    @entrance
    def draw(self) -> Any:
        """The tape as a ``graphviz.Digraph``: forward and reverse in two colours, loops that are one op as boxes.

        It needs the package ``graphviz`` (``pip install 'wengert[draw]'``), and to be rendered the program ``dot``.
        """
        return meaning.tools.pictures.graph_of(self)

    def _repr_svg_(self) -> str | None:
        return meaning.tools.pictures.svg_of(self)

    def _repr_html_(self) -> str:
        return meaning.tools.colours.html_of(self)

    def __rich__(self) -> Any:
        return meaning.tools.colours.text_of(self)


def home_of(tape: Tape | None) -> Home:
    """The way to a tape, which may be only about to be unpickled, or may be gone."""
    if tape is None:
        return GONE.home
    return vars(tape).setdefault("home", Home(tape))


def caller_of(op: Op) -> str | None:
    """Where the user's program made a call without a rule, if that is known."""
    tape = op.tape
    return None if tape is None else tape.callers.get(op)


GONE = Tape("gone")  # the tape of ops that have been taken off theirs


def append(
    tape: Tape, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any, site: Site
) -> Op:
    """Add a call to the tape."""
    op = (
        KeywordOp(fn, args, kwargs, value, site, tape)
        if kwargs
        else Op(fn, args, value, site, tape)
    )
    tape.ops.append(op)
    return op


def copy_of(op: Op, tape: Tape, copies: dict[Op, Op]) -> Op:
    """An op of the same kind on another tape, without a value."""
    args = substitute(op.args, copies.__getitem__)
    if type(op) is FloatOp:
        return FloatOp(op.fn, args, None, op.site, tape, op.signature)
    if isinstance(op, Input):
        return Input(op.name, None, tape, op.role, op.place)
    if isinstance(op, KeywordOp):
        kwargs = substitute(op.kwargs, copies.__getitem__)
        return type(op)(op.fn, args, kwargs, None, op.site, tape)
    return (Guard if isinstance(op, Guard) else Op)(op.fn, args, None, op.site, tape)


REVERSED = slice(None, None, -1)


def ops_in(tree: Any) -> Iterator[Op]:
    """Each op in a nested argument."""
    todo = [tree]
    while todo:
        tree = todo.pop()
        kind = type(tree)
        if issubclass(kind, Op):
            yield tree
        elif kind is list:
            todo += reversed(tree)
        elif issubclass(kind, tuple):
            todo += tuple.__getitem__(tree, REVERSED)
        elif issubclass(kind, dict):  # which may have a way of its own to tell its values
            todo += [x for _, x in items_of(tree, native(kind))][::-1]
        elif kind is slice:
            todo += (tree.step, tree.stop, tree.start)


def substitute(tree: Any, leaf: Callable[[Op], Any]) -> Any:
    """A copy of a nested argument in which ``leaf(op)`` stands for each op."""
    kind = type(tree)
    if issubclass(kind, Op):
        return leaf(tree)
    if kind is tuple or kind is list:
        return kind(
            [
                leaf(x)
                if issubclass(type(x), Op)
                else x
                if issubclass(type(x), ATOMS)
                else substitute(x, leaf)
                for x in tree
            ]
        )
    if kind is dict:
        return valued(tree, [substitute(branch, leaf) for branch in tree.values()]) if tree else {}
    if kind is slice:
        return slice(*[substitute(x, leaf) for x in (tree.start, tree.stop, tree.step)])
    if issubclass(kind, tuple) and hasattr(tree, "_make"):
        return tree._make([substitute(branch, leaf) for branch in tree])
    return tree


ATOMS = (float, int, str, type(None))
_value = operator.attrgetter("value")


def primal(tree: Any) -> Any:
    """A nested argument with the traced values in the place of ops."""
    return substitute(tree, _value)


# ---------------------------------------------------------------------------------------------- printing


def type_name(value: Any) -> str:
    """How the tape shows the type of a value: ``float``, ``float64[3,2]``, ``(float, int)``."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(type_name, value)) + ")"
    return type(value).__name__


def fn_name(fn: Any) -> str:
    """How the tape shows a callable."""
    name = attribute(fn, "__name__") or type(fn).__name__
    owner = attribute(fn, "__self__")
    if isinstance(owner, np.ufunc):
        return f"{owner.__name__}.{name}"
    objclass = attribute(fn, "__objclass__")
    return f"{objclass.__name__}.{name}" if isinstance(objclass, type) else name


class Numbering(dict[Op, str]):
    """Names for variables, given in the order in which they are first met."""

    def __missing__(self, op: Op) -> str:
        self[op] = name = f"%{len(self) + 1}"
        return name


def show(tree: Any, names: dict[Op, str]) -> str:
    """A nested argument as the tape prints it."""
    if isinstance(tree, Op):
        return names[tree]
    if isinstance(tree, tuple) and type(tree) is not tuple:
        return f"{type(tree).__name__}({', '.join(show(x, names) for x in tree)})"
    if isinstance(tree, tuple):
        return "(" + ", ".join(show(x, names) for x in tree) + ("," if len(tree) == 1 else "") + ")"
    if isinstance(tree, list):
        return "[" + ", ".join(show(x, names) for x in tree) + "]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f"{k!r}: {show(v, names)}" for k, v in tree.items()) + "}"
    if isinstance(tree, slice):
        parts = (tree.start, tree.stop, tree.step)
        return "slice(" + ", ".join(show(x, names) for x in parts) + ")"
    if isinstance(tree, np.ndarray):
        return f"<{type_name(tree)}>" if tree.size > 6 else f"array({tree.tolist()})"
    if isinstance(tree, type):
        return tree.__name__
    if dataclasses.is_dataclass(tree):
        fields = {f.name: getattr(tree, f.name, None) for f in dataclasses.fields(tree)}
        return f"{type(tree).__name__}({', '.join(f'{k}={show(v, names)}' for k, v in fields.items())})"
    if callable(tree):
        return fn_name(tree)
    text = "" if type(tree).__repr__ is object.__repr__ else repr(tree)
    if not text or " at 0x" in text:
        return f"<{type(tree).__name__}>"  # no address: a printed tape is the same from run to run
    return text


def format_op(op: Op, names: dict[Op, str], summary: Callable[[Any], str] | None = None) -> str:
    """One line of the tape, with the value in a few words if there is a ``summary`` of it."""
    seen = "" if summary is None else f" = {summary(op.value)}"
    place = f"  # {op.site}" if op.site.filename else ""
    if isinstance(op, Input):
        own = "" if names[op] == op.name else f" {op.name}"
        return f"{names[op]} = {'input' if op.role == 'argument' else 'outside'}{own} :: {op.type}{seen}"
    if op.kind == "guard":
        return f"guard {show(op.args[0], names)} == {op.value!r}{place}"
    given = [show(x, names) for x in op.args]
    given += [f"{key}={show(x, names)}" for key, x in op.kwargs.items()]
    call = f"{fn_name(op.fn)}({', '.join(given)})"
    if op.kind == "effect":
        return f"effect {call}{place}"
    return f"{names[op]} = {call} :: {op.type}{seen}{place}"


def format_flat(tape: Tape, summary: Callable[[Any], str] | None = None) -> str:
    """The whole tape, one line an operation."""
    names = Numbering()
    for op in tape.ops:
        if op.kind in ("input", "call"):
            names[op]
    place = f"  # {tape.site}" if tape.site.filename else ""
    lines = [f"tape of {tape.name}{place}"]
    lines += ["  " + format_op(op, names, summary) for op in tape.ops]
    lines.append("  return " + show(tape.result, names))
    return "\n".join(lines)
