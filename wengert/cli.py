"""The command line: ``python -m wengert demo | trace | grad``.

Whatever is wrong with what was typed (a file, a name, an argument) is said in one line, with exit
status 2. An error in the user's own function shows the lines of the user's program: exit status 1.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import click
import numpy as np

import wengert
import wengert.rules
import wengert.tracer
import wengert.transforms

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
        click.echo(f"wengert: {' '.join(error.format_message().split())}", err=True)
        status = 2
    sys.exit(status or 0)


@click.group(invoke_without_command=True)
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
    """Train a classifier of handwritten digits, written in plain NumPy."""
    try:
        from wengert import demo as program
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"the demo needs {error.name}, which is not installed: pip install 'wengert[demo]'"
        ) from error
    if not Path(picture).absolute().parent.is_dir():
        raise click.ClickException(f"cannot write {picture}: no such folder")
    program.run(epochs=epochs, seed=seed, picture=Path(picture))


@cli.command(context_settings=ARGUMENTS)
@click.option("--source", is_flag=True, help="Print the tape as Python source.")
@click.option("--reverse", is_flag=True, help="Print the tape of value and gradient.")
@click.argument("target", metavar="FILE.py:FUNCTION")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
def trace(target: str, arguments: tuple[str, ...], source: bool, reverse: bool) -> int:
    """Print the tape (the Wengert list) of one call.

    An ARGUMENT is a Python literal such as -1.5 or '[1.0, 2.0]', or the name of a .npy file.
    """
    function, values = load_function(target), load_arguments(arguments)
    check_signature(function, target, values)

    def show() -> None:
        tape = wengert.trace(function, *values)
        if reverse:
            tape = wengert.reverse(tape)
        click.echo(tape.source() if source else listing(tape))

    return guarded(show)


@cli.command(context_settings=ARGUMENTS)
@click.argument("target", metavar="FILE.py:FUNCTION")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENT]...")
def grad(target: str, arguments: tuple[str, ...]) -> int:
    """Print the value of one call and its gradient.

    An ARGUMENT is a Python literal such as -1.5 or '[1.0, 2.0]', or the name of a .npy file.
    """
    function, values = load_function(target), load_arguments(arguments)
    names = check_signature(function, target, values)

    def show() -> None:
        value, back = wengert.pullback(function, *values)
        show_named("value", value)
        if not is_real_number(value):
            raise click.ClickException(
                f"{target} returns {describe(value)}: only a real number has a gradient"
            )
        for name, gradient in zip(names, back(one_like(value)), strict=True):
            show_named(f"d/d{name}", gradient)

    return guarded(show)


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


def load_arguments(texts: tuple[str, ...]) -> list[Any]:
    return [load_argument(text) for text in texts]


def load_argument(text: str) -> Any:
    """A Python literal or the array in a .npy file; nothing is ever evaluated."""
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


def check_signature(function: Callable[..., Any], target: str, values: list[Any]) -> list[str]:
    """The name of the parameter that each value goes to."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return [f"argument{i}" for i in range(1, len(values) + 1)]
    try:
        bound = signature.bind(*values)
    except TypeError as error:
        raise click.ClickException(f"{target} takes {signature}: {error}") from None
    names = []
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        else:
            names.append(name)
    return names


# --------------------------------------------------------------------------- what is printed


def guarded(action: Callable[[], None]) -> int:
    """Run the user's function; an error shows the user's own lines. Returns the exit status."""
    try:
        action()
    except click.ClickException:
        raise
    except wengert.WengertError as error:
        click.echo(f"wengert: {type(error).__name__}: {error}", err=True)
        return 1
    except Exception as error:
        show_error(error)
        return 1
    return 0


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
    from wengert.transforms.tools import listings

    return listings.shown(tape, terminal=True)


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
    article = "an" if type(value).__name__[0] in "aeiou" else "a"
    return "None" if value is None else f"{article} {type(value).__name__}"


def in_words(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shortened(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
