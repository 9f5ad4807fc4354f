"""The command line, ``python -m wengert``: the demo, and what can be asked of a call of a function.

Words
-----
call   a function of a file, with the arguments that were typed behind it.

Whatever is wrong with what was typed (a file, a name, an argument) is said in one line, with exit
status 2. An error in the user's own function shows the lines of the user's program: exit status 1.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib.util
import inspect
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn

import click
import numpy as np

import wengert
import wengert.rules
import wengert.tracer
import wengert.transforms
from wengert import pictures
from wengert.rules.words import with_article

OWN_FOLDERS = [
    Path(package.__file__ or "").parent
    for package in (wengert, wengert.rules, wengert.tracer, wengert.transforms)
]

# A word that begins with a minus and is none of our options is an argument of the function: -1.5.
ARGUMENTS = {"ignore_unknown_options": True}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    try:
        status = cli.main(arguments, prog_name="wengert", standalone_mode=False)
    except click.Abort:
        status = 130
    except click.ClickException as error:
        lines = error.format_message().strip().splitlines()
        click.echo(f"wengert: {'; '.join([' '.join(x.split()) for x in lines])}", err=True)
        status = 2
    sys.exit(status or 0)


EXAMPLES = """\b
Examples, for a file spline.py with a function spline(r, scale=1.0):
  wengert trace spline.py:spline 2.0                the operations, one a line
  wengert grad spline.py:spline 2.0 scale=3.0       value and gradient
  wengert hessian spline.py:spline 2.0              second derivatives
  wengert check spline.py:spline 2.0                against finite differences
  wengert why spline.py:spline 0.0                  why a gradient is zero or NaN
  wengert draw spline.py:spline 2.0 --output a.svg  a picture of the tape
"""


@click.group(invoke_without_command=True, epilog=EXAMPLES)
@click.version_option(package_name="wengert", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Derivatives of ordinary Python and NumPy code."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@cli.command()
@click.option("--epochs", default=30, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--picture", default="wengert-demo.png", show_default=True, type=click.Path(dir_okay=False)
)
def demo(epochs: int, seed: int, picture: str) -> None:
    """Train a classifier of handwritten digits, written in plain NumPy.

    \b
    Examples:
    wengert demo
    wengert demo --epochs 5 --picture digits.png
    """
    try:
        from wengert import demo as program
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the demo needs {error.name}, which is not installed: pip install 'wengert[demo]'"
        ) from error
    in_a_folder(picture)
    program.run(epochs=epochs, seed=seed, picture=Path(picture))


@dataclasses.dataclass
class Call:
    """A function with its arguments; ``names`` are those of the parameters, in the order of the gradients."""

    function: Callable[..., Any]
    target: str
    args: list[Any]
    kwargs: dict[str, Any]
    names: list[str]

    def values(self) -> dict[str, Any]:
        """The arguments by name."""
        return dict(zip(self.names, [*self.args, *self.kwargs.values()], strict=True))

    def by_position(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The function and its positional arguments, and what it takes by name alone, which is held fixed."""
        if not self.kwargs:
            return self.function, tuple(self.args), {}
        bound = inspect.signature(self.function).bind(*self.args, **self.kwargs)
        if not bound.kwargs:
            return self.function, bound.args, {}
        return functools.partial(self.function, **bound.kwargs), bound.args, bound.kwargs

    def keys(self, wrt: str | None) -> list[tuple[str, Any]]:
        """Names and argnums of the arguments with a derivative, or of the one that was asked for."""
        keys = [*range(len(self.args)), *self.kwargs]
        found = [
            (name, key)
            for (name, value), key in zip(self.values().items(), keys, strict=True)
            if (moves(value) if wrt is None else name == wrt)
        ]
        if not found and wrt is not None:
            raise click.ClickException(
                f"{self.target} has no argument {wrt!r} here; it has {', '.join(self.names)}"
            )
        if not found:
            raise click.ClickException(
                f"no argument of {self.target} has a derivative: write floats, 2.0 and not 2"
            )
        return found


def taking_a_call(examples: str) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function that is given a call and the options of the command."""

    def decorate(run: Callable[..., None]) -> click.Command:
        @functools.wraps(run)
        def command(target: str, arguments: tuple[str, ...], **options: Any) -> int:
            call = load_call(target, arguments)
            return guarded(lambda: run(call, **options))

        help_text = f"""{inspect.getdoc(run)}

        An ARGUMENT is a Python literal such as -1.5 or '[1.0, 2.0]', or the name of a .npy file; NAME=ARGUMENT passes
        it by keyword. Nothing is evaluated as code.

        \b
        Examples:
        """
        help_text = inspect.cleandoc(help_text) + "\n" + inspect.cleandoc(examples)
        made: Any = click.argument(
            "arguments", nargs=-1, type=click.UNPROCESSED, metavar="[[NAME=]ARGUMENT]..."
        )(command)
        made = click.argument("target", metavar="FILE.py:FUNCTION")(made)
        return cli.command(context_settings=ARGUMENTS, help=help_text)(made)

    return decorate


WRT = click.option("--wrt", metavar="NAME", help="Differentiate by this argument alone.")


@taking_a_call("""
    wengert trace spline.py:spline 2.0
    wengert trace spline.py:spline 2.0 --values --depth 1
    wengert trace spline.py:spline 2.0 --form pairs
    wengert trace spline.py:spline 2.0 --reverse --source
""")
@click.option("--source", is_flag=True, help="Print the tape as Python source.")
@click.option("--reverse", is_flag=True, help="Print the tape of value and gradient.")
@click.option(
    "--form",
    type=click.Choice(["pairs", "naive", "final"]),
    help="The same with its pullbacks, before it is simplified, or as it runs.",
)
@click.option("--values", is_flag=True, help="Print what each line gave.")
@click.option("--flat", is_flag=True, help="Print one line for each operation, without loops.")
@click.option("--depth", type=click.IntRange(min=0), help="How deep calls are shown.")
def trace(
    call: Call,
    source: bool,
    reverse: bool,
    form: Literal["pairs", "naive", "final"] | None,
    values: bool,
    flat: bool,
    depth: int | None,
) -> None:
    """Print the tape (the Wengert list) of one call."""
    tape = recorded(call, reverse or form is not None, form or "final")
    tape.options = {"depth": depth, "flat": flat, "values": values}
    click.echo(tape.source() if source else listing(tape))


@taking_a_call("""
    wengert grad model.py:loss w.npy x.npy
    wengert grad spline.py:spline 2.0 scale=3.0
""")
def grad(call: Call) -> None:
    """Print the value of one call and its gradient."""
    value, back = wengert.pullback(call.function, *call.args, **call.kwargs)
    show_named("value", value)
    must_be_real(call, value)
    found = list(back(one_like(value)))
    if call.kwargs:
        found += found.pop().values()
    for name, gradient in zip(call.names, found, strict=True):
        show_named(f"d/d{name}", gradient)


@taking_a_call("""
    wengert jacobian robot.py:position '[0.1, 0.4, 1.2]'
    wengert jacobian robot.py:position angles.npy --wrt angles
""")
@WRT
def jacobian(call: Call, wrt: str | None) -> None:
    """Print all partial derivatives of a function with several results."""
    keys = call.keys(wrt)
    argnums = tuple(key for _, key in keys)
    found = [
        wengert.jacobian(call.function, argnums=key)(*call.args, **call.kwargs) for key in argnums
    ]
    for (name, _), block in zip(keys, found, strict=True):
        show_named(f"d/d{name}", block)


@taking_a_call("""
    wengert hessian energy.py:energy x.npy
    wengert hessian energy.py:energy 1.0 k=2.0 --wrt k
""")
@WRT
def hessian(call: Call, wrt: str | None) -> None:
    """Print the second derivatives of a function that returns a number."""
    keys = call.keys(wrt)
    argnums = tuple(key for _, key in keys)

    @functools.wraps(call.function)
    def twice(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value = call.function(*args, **kwargs)
        return value, value

    found, value = wengert.hessian(twice, argnums, has_aux=True)(*call.args, **call.kwargs)
    must_be_real(call, value)
    for (name, _), row in zip(keys, found, strict=True):
        for (other, _), block in zip(keys, row, strict=True):
            show_named(f"d2/d{name}d{other}", block)


@taking_a_call("""
    wengert check model.py:loss w.npy x.npy
    wengert check spline.py:spline 2.0 --order 1
""")
@click.option(
    "--order", default=2, show_default=True, type=click.IntRange(1, 4), help="Up to which order."
)
def check(call: Call, order: int) -> None:
    """Compare derivatives with finite differences; exit status 1 where one is wrong."""
    function, args, fixed = call.by_position()
    wengert.check_grads(function, args, order=order)
    if fixed:
        click.echo(f"held fixed, as they are given by name alone: {', '.join(fixed)}")
    click.echo(
        f"the derivatives of {call.target} up to order {order} agree with finite differences"
    )


@taking_a_call("""
    wengert explain model.py:loss w.npy x.npy
    wengert explain model.py:loss w.npy x.npy --source
""")
@click.option(
    "--calls",
    default=3,
    show_default=True,
    type=click.IntRange(min=0),
    help="How often the gradient is taken first.",
)
@click.option("--source", is_flag=True, help="Print the source of the kept programs.")
def explain(call: Call, calls: int, source: bool) -> None:
    """Take the gradient some times, and print what the JIT keeps of it, and why."""
    slope = wengert.grad(call.function, argnums=call.keys(None)[0][1])
    for _ in range(calls):
        slope(*call.args, **call.kwargs)
    told = wengert.explain(slope, *call.args, **call.kwargs)
    click.echo(told.source if source else told)


@taking_a_call("""
    wengert why model.py:loss w.npy x.npy
    wengert why spline.py:spline 0.0
    wengert why model.py:losses w.npy --result 1
    wengert why model.py:losses w.npy --result kinetic,0
""")
@click.option(
    "--result", help="One of several results: its index or key, or several of these with commas."
)
def why(call: Call, result: str | None) -> None:
    """Print why the gradient is zero, NaN, infinite or missing, with the line to blame."""
    told = tool("why")
    if result is not None:
        keys = [int(x) if re.fullmatch(r"-?\d+", x) else x for x in result.split(",")]
        told = functools.partial(told, result=tuple(keys))
    click.echo(told(call.function, *call.args, **call.kwargs))


@taking_a_call("""
    wengert draw spline.py:spline 2.0 --output spline.svg
    wengert draw spline.py:spline 2.0 --reverse --output spline.dot
""")
@click.option("--reverse", is_flag=True, help="Draw the tape of value and gradient.")
@click.option(
    "--output",
    default="tape.svg",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="The file of the picture; its ending (.svg, .pdf, .png, .dot) says of what kind.",
)
def draw(call: Call, reverse: bool, output: str) -> None:
    """Draw the tape of one call (with the package graphviz, and the program of that name)."""
    in_a_folder(output)
    try:
        pictures.write(recorded(call, reverse), Path(output))
    except pictures.CannotDraw as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"the picture is in {output}")


@taking_a_call("""
    wengert save spline.py:spline 2.0 --output slope.py
    wengert save spline.py:spline 2.0 --value --output value_and_slope.py
""")
@click.option(
    "--output",
    default="gradient.py",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="The file that is written.",
)
@click.option("--value", is_flag=True, help="Save value and gradient together.")
@WRT
def save(call: Call, output: str, value: bool, wrt: str | None) -> None:
    """Write the gradient as a Python file that needs no Wengert."""
    in_a_folder(output)
    make = wengert.value_and_grad if value else wengert.grad
    slope = make(call.function, argnums=call.keys(wrt)[0][1])
    tool("save")(slope, output, *call.args, **call.kwargs)
    click.echo(f"the gradient is in {output}")


def recorded(
    call: Call, reverse: bool, form: Literal["pairs", "naive", "final"] = "final"
) -> wengert.Tape:
    tape = wengert.trace(call.function, *call.args, **call.kwargs)
    return wengert.reverse(tape, form=form) if reverse else tape


def tool(name: str) -> Callable[..., Any]:
    """A public function that is loaded when it is asked for."""
    try:
        return getattr(wengert, name)  # type: ignore[no-any-return]
    except AttributeError:
        raise click.ClickException(f"this wengert ({wengert.__version__}) has no {name}") from None


# ------------------------------------------------------------------------------ what was typed


def load_function(target: str) -> Callable[..., Any]:
    """The function that ``FILE.py:FUNCTION`` names."""
    filename, colon, name = target.rpartition(":")
    if not (colon and filename and name):
        raise click.ClickException(f"{target!r} is not of the form FILE.py:FUNCTION")
    found: Any = load_module(Path(filename))
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise click.ClickException(f"{filename} has no function {name!r}") from None
    if not callable(found):
        raise click.ClickException(f"{name!r} of {filename} is {describe(found)}, not a function")
    return found


def load_module(path: Path) -> ModuleType:
    """Run a Python file as ``python FILE.py`` would, but under its own name."""
    if not path.is_file():
        raise click.ClickException(f"there is no file {str(path)!r}")
    if path.suffix != ".py":
        raise click.ClickException(f"{str(path)!r} is not a Python file (.py)")
    name = path.stem if path.stem not in sys.modules else f"_{path.stem}_of_the_command_line"
    spec = importlib.util.spec_from_file_location(name, path.absolute())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the module of their class
    sys.path.insert(0, str(path.absolute().parent))  # the modules beside it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        place = f"{path}{error_line(error, path)}"
        raise click.ClickException(f"cannot import {place}: {in_words(error)}") from error
    return module


def error_line(error: BaseException, path: Path) -> str:
    """``:LINE`` of the innermost line of the file in a traceback, or nothing."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.absolute())
    ]
    if isinstance(error, SyntaxError) and error.filename == str(path.absolute()):
        lines.append(error.lineno)
    return f":{lines[-1]}" if lines else ""


def load_call(target: str, texts: tuple[str, ...]) -> Call:
    """A function and its arguments, checked against its signature."""
    function = load_function(target)
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        name, equals, rest = text.partition("=")
        if equals and name.isidentifier():
            if name in kwargs:
                raise click.ClickException(f"{name} is given twice")
            kwargs[name] = load_argument(rest)
        elif kwargs:
            raise click.ClickException(f"{shortened(text)!r} stands behind an argument with a name")
        else:
            args.append(load_argument(text))
    return Call(function, target, args, kwargs, check_signature(function, target, args, kwargs))


def load_argument(text: str) -> Any:
    """A Python literal or the array in a .npy file; nothing is ever evaluated."""
    if text.startswith("-") and text.lstrip("-")[:1].isalpha():
        raise click.ClickException(f"there is no option {shortened(text)} here; see --help")
    if text.endswith(".npy"):
        return load_array(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a doubtful escape in a string
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise click.ClickException(
            f"argument {shortened(text)!r} is neither a Python literal (a string needs quotes of "
            "its own) nor the name of a .npy file"
        ) from None


def load_array(filename: str) -> Any:
    try:
        with open(filename, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise click.ClickException(f"cannot read {filename}: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError) as error:
        raise click.ClickException(
            f"{filename} is no .npy file that can be read: {in_words(error)}"
        ) from None


def check_signature(
    function: Callable[..., Any], target: str, args: list[Any], kwargs: dict[str, Any]
) -> list[str]:
    """The name of the parameter that each argument goes to."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return [*[f"argument{i}" for i in range(1, len(args) + 1)], *kwargs]
    try:
        signature.bind(*args, **kwargs)
        bound = signature.bind_partial(*args)
    except TypeError as error:
        raise click.ClickException(f"{target} takes {signature}: {error}") from None
    names = []
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        else:
            names.append(name)
    return [*names, *kwargs]


# --------------------------------------------------------------------------- what is printed


def guarded(action: Callable[[], None]) -> int:
    """Run the user's function; an error shows the user's own lines. Returns the exit status."""
    try:
        action()
    except click.ClickException:
        raise
    except wengert.WengertError as error:
        click.echo(f"wengert: {type(error).__name__}: {error}", err=True)
        for line in users_line(error):
            click.echo(line, err=True)
        return 1
    except Exception as error:
        show_error(error)
        return 1
    return 0


def users_line(error: BaseException) -> Iterator[str]:
    """The innermost line of the user's program in the traceback of an error of ours."""
    frames = [x for x in traceback.extract_tb(error.__traceback__) if not is_ours(x.filename)]
    for frame in frames[-1:]:
        text = linecache.getline(frame.filename, frame.lineno or 0).strip()
        yield f"  {frame.filename}:{frame.lineno}, in {frame.name}: {text}"


def show_error(error: Exception) -> None:
    """The traceback of an error in the user's function, without the lines of this package."""
    report = traceback.TracebackException.from_exception(error)
    link: traceback.TracebackException | None = report
    while link is not None:
        link.stack = traceback.StackSummary.from_list(
            [frame for frame in link.stack if not is_ours(frame.filename)]
        )
        link = link.__cause__ or link.__context__
    click.echo("".join(report.format()), err=True, nl=False)


def is_ours(filename: str) -> bool:
    return any(Path(filename).is_relative_to(folder) for folder in OWN_FOLDERS)


def listing(tape: wengert.Tape) -> str:
    """The tape, in colours where a terminal and the package ``rich`` are there."""
    if not sys.stdout.isatty():
        return str(tape)
    from wengert.transforms.tools import colours

    return colours.shown(tape, terminal=True)


def show_named(name: str, value: Any) -> None:
    lead = f"{name} = "
    click.echo(lead + text_of(value).replace("\n", "\n" + " " * len(lead)))


def text_of(value: Any) -> str:
    """A result as a person would write it: NumPy's numbers as plain numbers."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ") if value.ndim else str(value)
    if isinstance(value, np.generic):
        return str(value)
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {text_of(item)}" for key, item in value.items()) + "}"
    if type(value) in (list, tuple):
        inside = ", ".join(map(text_of, value))
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value)


def must_be_real(call: Call, value: Any) -> None:
    if not is_real_number(value):
        raise click.ClickException(
            f"{call.target} returns {describe(value)}: only a real number has a gradient"
            + ("; see wengert jacobian" if isinstance(value, (np.ndarray, tuple, list)) else "")
        )


def in_a_folder(filename: str) -> None:
    """Raises, where a file that will be written has no folder."""
    if not Path(filename).absolute().parent.is_dir():
        raise click.ClickException(f"cannot write {filename}: no such folder")


def moves(value: Any) -> bool:
    """Whether an argument has a derivative."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fc"
    if isinstance(value, dict):
        return any(map(moves, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(moves, value))
    return isinstance(value, (float, int, complex)) and not isinstance(value, bool)


def is_real_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.shape == () and value.dtype.kind == "f"
    return isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)


def one_like(value: Any) -> Any:
    """The cotangent 1 of a real number, of the same type."""
    if isinstance(value, np.ndarray):
        return np.ones_like(value)
    return type(value)(1) if isinstance(value, np.floating) else 1.0


def describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return "None" if value is None else with_article(type(value).__name__)


def in_words(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
