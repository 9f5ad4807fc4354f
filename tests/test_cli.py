"""The command line, on good and on bad input."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("click")

from wengert.cli import main

PROGRAM = """
import math
import sys
from dataclasses import dataclass

import numpy as np
from neighbour import offset

@dataclass
class Point:
    x: "float"

class Shapes:
    @staticmethod
    def area(r):
        return math.pi * r * r

number = 3

def f(x1, x2):
    return x1 * x2 + math.sin(x1)

def loss(w, x, power=2):
    return ((x @ w) ** power).sum()

def total(*terms):
    return sum(terms) + offset

def nested(tree):
    return tree["a"] * tree["b"][0]

def pair(x):
    return x, 2 * x

def doubled(x):
    return 2 * x

def fails(x):
    return inner(x)

def inner(x):
    raise ValueError(f"no good: {x!r}")

def stops():
    sys.exit(5)

def text(x):
    print("called")
    return "text"
"""


@pytest.fixture
def wengert(tmp_path, monkeypatch, capsys):
    """Run the command line in a folder with a program; returns exit status, output, errors."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "neighbour.py").write_text("offset = 0.5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    modules = set(sys.modules)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        return stop.value.code, *capsys.readouterr()

    yield run
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) in map(str, tmp_path.iterdir()):
            del sys.modules[name]


# ------------------------------------------------------------------------------------------ trace


def test_trace_prints_the_tape(wengert):
    status, out, err = wengert("trace", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert sum(f"program.py:{line_of('return x1 * x2')}" in line for line in lines) == 3
    assert [name in out for name in ("mul", "sin", "add", "x1", "x2")] == [True] * 5


def test_a_tape_prints_the_same_in_every_run(wengert):
    first = wengert("trace", "program.py:loss", "[0.5, 1.0]", "[[1.0, 2.0], [3.0, 4.0]]")
    again = wengert("trace", "program.py:loss", "[0.5, 1.0]", "[[1.0, 2.0], [3.0, 4.0]]")
    assert first == again


def test_trace_source_is_a_program(wengert):
    status, out, err = wengert("trace", "--source", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    names = {}  # it imports what it needs
    exec(out, names)
    assert names["f"](2.0, 3.0) == 6.909297426825682
    status, out, err = wengert("trace", "--source", "--reverse", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    exec(out, names)
    assert names["gradient_of_f"](2.0, 3.0)[1] == (3.0 + math.cos(2.0), 2.0)


def test_options_may_come_last(wengert):
    first = wengert("trace", "--source", "program.py:f", "2.0", "3.0")
    assert wengert("trace", "program.py:f", "2.0", "3.0", "--source") == first


def test_trace_prints_a_tape_as_trace_does(wengert):
    given = ("trace", "program.py:f", "2.0", "3.0")
    assert ":: float = 6  # program.py" in wengert(*given, "--values")[1]
    assert "  %1 = input x1 :: float" in wengert(*given, "--flat")[1].splitlines()
    assert "back3 = pair(mul)(x1, x2)" in wengert(*given, "--form", "pairs")[1]
    assert wengert(*given, "--form", "final") == wengert(*given, "--reverse")
    with open("deep.py", "w") as file:
        file.write("def g(x):\n    return x * x + x\n\ndef f(x):\n    return g(x) + g(2.0 * x)\n")
    assert " operations" not in wengert("trace", "deep.py:f", "2.0")[1]
    assert " = g(x), 2 operations" in wengert("trace", "deep.py:f", "2.0", "--depth", "0")[1]
    status, _, err = wengert(*given, "--form", "pair")
    assert status == 2 and "'pairs', 'naive', 'final'" in err and err.count("\n") == 1


def test_trace_reverse_prints_the_gradient(wengert):
    status, out, err = wengert("trace", "--reverse", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    assert "cos" in out


# ------------------------------------------------------------------------------------------- grad


def numbers(out):
    """The printed results, by name."""
    return dict(line.split(" = ", 1) for line in out.splitlines() if " = " in line)


def test_grad_prints_value_and_gradient(wengert):
    status, out, err = wengert("grad", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    printed = {name: float(text) for name, text in numbers(out).items()}
    assert list(printed) == ["value", "d/dx1", "d/dx2"]
    assert printed["value"] == 6.909297426825682
    assert printed["d/dx1"] == pytest.approx(2.5838531634528574, rel=1e-15)
    assert printed["d/dx2"] == 2.0


def test_negative_numbers_are_arguments(wengert):
    status, out, _ = wengert("grad", "program.py:f", "-1.5", "-2")
    assert status == 0
    assert float(numbers(out)["d/dx2"]) == -1.5
    for text in ("-1", "-1e-3", "-.5", "-1.5e+10"):
        status, out, err = wengert("grad", "program.py:Shapes.area", text)
        assert (status, err) == (0, "")
        assert float(numbers(out)["d/dr"]) == pytest.approx(2 * np.pi * float(text))


def test_grad_of_arrays_from_files(wengert):
    np.save("w.npy", np.array([0.5, -1.0]))
    np.save("x.npy", np.array([[1.0, 2.0], [3.0, 4.0]]))
    status, out, err = wengert("grad", "program.py:loss", "w.npy", "x.npy")
    assert (status, err) == (0, "")
    assert numbers(out)["value"] == "8.5"
    assert out.splitlines()[1:] == [
        "d/dw = [-18., -26.]",
        "d/dx = [[-1.5,  3. ],",
        "        [-2.5,  5. ]]",
    ]


def test_grad_has_the_structure_of_the_arguments(wengert):
    status, out, err = wengert("grad", "program.py:nested", "{'a': 2.0, 'b': [3.0, 'c']}")
    assert (status, err) == (0, "")
    assert numbers(out)["d/dtree"] == "{'a': 3.0, 'b': [2.0, None]}"


def test_grad_names_further_arguments(wengert):
    status, out, _ = wengert("grad", "program.py:total", "1.0", "2.0")
    assert status == 0
    assert numbers(out) == {"value": "3.5", "d/dterms[0]": "1.0", "d/dterms[1]": "1.0"}


def test_the_function_runs_once(wengert):
    _, out, _ = wengert("grad", "program.py:text", "1")
    assert out.count("called") == 1


# ---------------------------------------------------------------------------------- bad input


BAD = {
    "no command": ["nothing"],
    "no target": ["trace"],
    "no function named": ["trace", "program.py"],
    "empty function": ["trace", "program.py:"],
    "no file": ["trace", "missing.py:f"],
    "a folder": ["trace", ".:f"],
    "not Python": ["trace", "array.npy:f"],
    "no such function": ["trace", "program.py:g"],
    "not a function": ["trace", "program.py:number"],
    "no such method": ["trace", "program.py:Shapes.volume"],
    "too few arguments": ["trace", "program.py:f", "1.0"],
    "too many arguments": ["grad", "program.py:f", "1.0", "2.0", "3.0"],
    "a name": ["grad", "program.py:f", "x", "2.0"],
    "an expression": ["grad", "program.py:f", "1 + x", "2.0"],
    "a call": ["grad", "program.py:f", "__import__('os').mkdir('evaluated')", "2.0"],
    "a lambda": ["grad", "program.py:f", "(lambda: 0)()", "2.0"],
    "nothing": ["grad", "program.py:f", "", "2.0"],
    "a torn literal": ["grad", "program.py:f", "[1.0,", "2.0"],
    "deep nesting": ["grad", "program.py:f", "(" * 5000 + ")" * 5000, "2.0"],
    "a huge integer": ["grad", "program.py:f", "9" * 5000, "2.0"],
    "no such option": ["grad", "program.py:f", "1.0", "2.0", "--nothing"],
    "no such array": ["grad", "program.py:loss", "missing.npy", "array.npy"],
    "an empty array": ["grad", "program.py:loss", "empty.npy", "array.npy"],
    "no array": ["grad", "program.py:loss", "torn.npy", "array.npy"],
    "pickled objects": ["grad", "program.py:loss", "objects.npy", "array.npy"],
    "a folder for an array": ["grad", "program.py:loss", "folder.npy", "array.npy"],
    "a syntax error": ["trace", "syntax.py:f", "1.0"],
    "a failing import": ["trace", "imports.py:f", "1.0"],
    "a program that exits": ["trace", "exits.py:f", "1.0"],
    "binary": ["trace", "binary.py:f", "1.0"],
    "a result that is no number": ["grad", "program.py:pair", "1.0"],
    "a result that is an array": ["grad", "program.py:doubled", "array.npy"],
    "a result that is text": ["grad", "program.py:text", "1.0"],
    "an argument of demo": ["demo", "3"],
    "a bad option of demo": ["demo", "--epochs", "many"],
    "no epochs": ["demo", "--epochs", "0"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_input_gets_one_line_and_status_2(wengert, tmp_path, arguments):
    np.save("array.npy", np.arange(3.0))
    np.save("objects.npy", np.array([1, None], dtype=object))
    (tmp_path / "empty.npy").touch()
    (tmp_path / "torn.npy").write_bytes(b"\x93NUMPY\x01\x00 nothing more")
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "syntax.py").write_text("def f(x):\n    return (x\n")
    (tmp_path / "imports.py").write_text("import no_such_module_anywhere\n")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff\xfe")
    status, out, err = wengert(*arguments)
    assert status == 2
    assert err.startswith("wengert: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in out + err
    assert not (tmp_path / "evaluated").exists()


def test_an_error_in_the_program_shows_its_lines(wengert):
    status, out, err = wengert("grad", "program.py:fails", "1.0")
    assert (status, out) == (1, "")
    assert err.startswith("Traceback")
    assert err.endswith("ValueError: no good: 1.0\n")
    files = [line for line in err.splitlines() if line.lstrip().startswith("File")]
    assert [line.rpartition(" ")[2] for line in files] == ["fails", "inner"]


def test_the_program_may_exit(wengert):
    status, _, err = wengert("trace", "program.py:stops")
    assert (status, err) == (5, "")


def line_of(text):
    return next(i for i, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


# ------------------------------------------------------------------------------------- the rest


def test_help(wengert):
    assert wengert()[:2] == wengert("--help")[:2]
    status, out, err = wengert("trace", "--help")
    assert (status, err) == (0, "")
    assert "FILE.py:FUNCTION" in out


def test_as_a_module(tmp_path):
    """In a process of its own, from another folder."""
    (tmp_path / "cube.py").write_text("def cube(x):\n    return x**3\n")
    command = [sys.executable, "-m", "wengert", "grad", str(tmp_path / "cube.py:cube"), "-2.0"]
    done = subprocess.run(command, cwd=os.sep, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert numbers(done.stdout) == {"value": "-8.0", "d/dx": "12.0"}
    command[-1] = "two"
    done = subprocess.run(command, cwd=os.sep, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


# ------------------------------------------------------------------------------- the other commands


@pytest.fixture
def arrays(wengert):
    np.save("x.npy", np.array([3.0, 4.0]))
    with open("program.py", "a") as file:
        file.write(
            "\ndef polar(x, scale=1.0):\n"
            "    return scale * np.array([np.hypot(x[0], x[1]), np.arctan2(x[1], x[0])])\n"
            "\ndef energy(x, k):\n    return k * (x**3).sum()\n"
            "\ndef lost(x):\n    return memoryview(np.array([x]))[0]\n"
        )


def test_arguments_by_name(wengert):
    first = wengert("grad", "program.py:f", "2.0", "3.0")
    status, out, err = wengert("grad", "program.py:f", "2.0", "x2=3.0")
    assert (status, out, err) == first
    status, out, _ = wengert("grad", "program.py:f", "x2=3.0", "x1=2.0")
    assert [*numbers(out)] == ["value", "d/dx2", "d/dx1"]
    assert numbers(out)["d/dx2"] == "2.0"
    assert "x1 = input" in wengert("trace", "program.py:f", "x1=2.0", "x2=3.0")[1]


def test_jacobian(wengert, arrays):
    status, out, err = wengert("jacobian", "program.py:polar", "x.npy", "scale=10.0")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "d/dx = [[ 6. ,  8. ],",
        "        [-1.6,  1.2]]",
        f"d/dscale = [5.        , {np.arctan2(4, 3):.8f}]",
    ]
    status, out, _ = wengert("jacobian", "program.py:polar", "x.npy", "scale=10.0", "--wrt", "x")
    assert [*numbers(out)] == ["d/dx"]


def test_hessian(wengert, arrays):
    status, out, err = wengert("hessian", "program.py:energy", "x.npy", "2.0")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "d2/dxdx = [[36.,  0.],",
        "           [ 0., 48.]]",
        "d2/dxdk = [27., 48.]",
        "d2/dkdx = [27., 48.]",
        "d2/dkdk = 0.0",
    ]


def test_check_says_that_all_is_well_or_what_is_wrong(wengert, arrays):
    status, out, err = wengert("check", "program.py:energy", "x.npy", "k=2.0")
    assert (status, err) == (0, "")
    assert "agree" in out
    with open("program.py", "a") as file:
        file.write("\ndef named(x, *, k):\n    return x * k\n")
    assert "held fixed" in wengert("check", "program.py:named", "2.0", "k=3.0")[1]
    with open("program.py", "a") as file:
        file.write(
            "\nimport wengert\n@wengert.custom_rule\ndef wrong(x):\n"
            "    return x * x, lambda dy: (3 * x * dy,)\n"
        )
    status, out, err = wengert("check", "program.py:wrong", "2.0", "--order", "1")
    assert (status, out) == (1, "")
    assert "GradientError: wrong (" in err and "x: gradient 0.75" in err


def test_explain_tells_what_is_kept(wengert, monkeypatch):
    from wengert.transforms.cache import switch

    monkeypatch.setattr(switch, "on", True)  # whatever the environment says
    status, out, err = wengert("explain", "program.py:f", "2.0", "3.0")
    assert (status, err) == (0, "")
    assert "would answer" in out and "1 program" in out
    assert "return" in wengert("explain", "program.py:f", "2.0", "3.0", "--source")[1]
    assert "is traced" in wengert("explain", "program.py:f", "2.0", "3.0", "--calls", "0")[1]


def test_what_lies_in_other_modules_is_asked_with_the_call(wengert, monkeypatch):
    import wengert as package

    def why(f, *args, **kwargs):
        return f"{f.__name__} {args} {kwargs}: all is well"

    def save(f, path, *args, **kwargs):
        with open(path, "w") as file:
            file.write(f"# {f.__name__} {args} {kwargs}")

    monkeypatch.setattr(package, "why", why, raising=False)
    monkeypatch.setattr(package, "save", save, raising=False)
    assert wengert("why", "program.py:f", "2.0", "x2=3.0") == (
        0,
        "f (2.0,) {'x2': 3.0}: all is well\n",
        "",
    )
    status, _, err = wengert("save", "program.py:f", "2.0", "x2=3.0", "--output", "slope.py")
    assert (status, err) == (0, "")
    with open("slope.py") as file:
        assert file.read() == "# grad(f) (2.0,) {'x2': 3.0}"


class Graph:
    """What ``tape.draw()`` gives, without the program that makes pictures."""

    source = "digraph {}"

    def pipe(self, format):
        return f"a picture as {format}".encode()


def test_draw_writes_a_picture(wengert, monkeypatch):
    from wengert import Tape

    monkeypatch.setattr(Tape, "draw", lambda tape: Graph(), raising=False)
    status, out, err = wengert("draw", "program.py:f", "2.0", "3.0", "--output", "f.svg")
    assert (status, out, err) == (0, "the picture is in f.svg\n", "")
    with open("f.svg") as file:
        assert file.read() == "a picture as svg"
    wengert("draw", "program.py:f", "2.0", "3.0", "--reverse", "--output", "f.dot")
    with open("f.dot") as file:
        assert file.read() == "digraph {}"
    status, _, err = wengert("draw", "program.py:f", "2.0", "3.0", "--output", "none/f.svg")
    assert (status, err.count("\n")) == (2, 1)


def test_a_missing_package_for_pictures_is_named(wengert, monkeypatch):
    from wengert import Tape

    def draw(tape):
        raise ModuleNotFoundError("No module named 'graphviz'", name="graphviz")

    monkeypatch.setattr(Tape, "draw", draw, raising=False)
    status, _, err = wengert("draw", "program.py:f", "2.0", "3.0")
    assert (status, err.count("\n")) == (2, 1)
    assert "wengert[draw]" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["grad", "program.py:f", "2.0", "x1=2.0"],
        ["grad", "program.py:f", "x1=2.0", "3.0"],
        ["grad", "program.py:f", "x1=2.0", "x1=3.0"],
        ["grad", "program.py:f", "2.0", "x2=y"],
        ["jacobian", "program.py:f", "2.0", "3.0", "--wrt", "z"],
        ["jacobian", "program.py:text", "'a'"],
        ["check", "program.py:f", "2.0", "3.0", "--order", "0"],
    ],
    ids=" ".join,
)
def test_what_is_typed_wrong_behind_other_commands(wengert, arguments):
    status, out, err = wengert(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("wengert: ") and err.count("\n") == 1


def test_an_error_of_ours_shows_the_line(wengert, arrays):
    status, _, err = wengert("grad", "program.py:lost", "1.0")
    assert status == 1
    assert err.startswith("wengert: ")
    assert err.splitlines()[-1].endswith("in lost: return memoryview(np.array([x]))[0]")


@pytest.mark.parametrize(
    "command", "trace grad jacobian hessian check explain why draw save demo".split()
)
def test_each_command_shows_examples(wengert, command):
    status, out, err = wengert(command, "--help")
    assert (status, err) == (0, "")
    assert f"wengert {command} " in out.split("Examples:")[1]
    assert f"{command} " in wengert("--help")[1]


def test_what_was_typed_wrong_is_told_in_one_line(wengert, arrays):
    with open("program.py", "a") as file:
        file.write("\ndef both(x):\n    print('once')\n    return [x, 2 * x]\n")
    status, out, err = wengert("hessian", "program.py:both", "2.0")
    assert status == 2 and out.splitlines() == ["once"]
    assert err.startswith("wengert: program.py:both returns a list") and err.count("\n") == 1
    for command in ("save", "draw"):
        status, out, err = wengert(command, "program.py:both", "2.0", "--output", "no/such/x.svg")
        assert status == 2 and out == ""
        assert err == "wengert: cannot write no/such/x.svg: no such folder\n"
    status, out, err = wengert("trace", "program.py:both", "2.0", "--value")
    assert err == "wengert: there is no option --value here; see --help\n"
    status, out, err = wengert("draw", "program.py:f", "1.0", "2.0", "-o", "a.svg")
    assert (status, err) == (2, "wengert: there is no option -o here; see --help\n")


def test_a_message_of_several_lines_is_one_of_parts(wengert, monkeypatch):
    graphviz = pytest.importorskip("graphviz")

    def missing(*args, **kwargs):
        raise graphviz.ExecutableNotFound(["dot"])

    monkeypatch.setattr(graphviz.Digraph, "pipe", missing)
    monkeypatch.setattr(graphviz.Digraph, "render", missing)
    status, _, err = wengert("draw", "program.py:f", "2.0", "3.0", "--output", "f.svg")
    assert status == 2 and err.count("\n") == 1
    assert "takes the program dot; apt install graphviz" in err


def test_why_of_one_of_several_results(wengert):
    code, out, _ = wengert("why", "program.py:pair", "2.0")
    assert code == 0 and "of the sum of 2 results; result=0 asks for the first" in out
    code, out, _ = wengert("why", "program.py:pair", "2.0", "--result", "1")
    assert code == 0 and "of the sum" not in out and "all is well" in out
    code, out, _ = wengert("why", "program.py:pair", "2.0", "--result", "1,kinetic")
    assert "the result[1], 4, has no element at 'kinetic'" in out
