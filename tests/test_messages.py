"""Each message of our own errors has a line that says what to do; the source is gone over for those that have none."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [
    p
    for folder in ("rules", "tracer", "transforms", "wengert")
    for p in (ROOT / folder).rglob("*.py")
]
ERRORS = {
    "CotangentError", "EscapeError", "GradientError", "GuardError", "NoRuleError", "NonFiniteError", "Refusal",
    "TangentError", "TraceError", "Unwritable", "WengertError",
}  # fmt: skip
BEGUN = "what is said of a leaf; whoever calls this adds whose result it is, and what a cotangent looks like"
PASSED_ON = "the message of another error, with its lines, behind a place"
CAUGHT = "nobody sees it: who calls this catches it"
ALONE = {
    ("transforms/assemble.py", "TypeError"): CAUGHT,
    ("transforms/pushforward.py", "ValueError"): BEGUN,
    ("transforms/tools/systems.py", "TypeError"): PASSED_ON,
    ("transforms/tools/systems.py", "ValueError"): PASSED_ON,
    ("transforms/cotangents.py", "CotangentError"): BEGUN,
    ("tracer/calls.py", "f'{Site.of_code(code).place}: {error}'"): PASSED_ON,
    ("tracer/dynamic.py", "f'{Site.of_code(code).place}: {error}'"): PASSED_ON,
    ("tracer/pairs.py", "error"): PASSED_ON,
    ("tracer/closing.py", "f'{blame(site)}: {error}'"): PASSED_ON,
    ("transforms/tools/pages.py", "f'{site}: {error}' if site.filename else str(error)"): PASSED_ON,
}


def name_of(call):
    fn = call.func
    return fn.id if isinstance(fn, ast.Name) else getattr(fn, "attr", "")


def text_of(node):
    """A message as it reads, with an x for what is filled in."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return "x"


TREES = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in FILES}
DEFINED: dict[str, list[ast.AST]] = {}  # functions, and constants that are texts, by name
for _tree in TREES.values():
    for _node in ast.walk(_tree):
        if isinstance(_node, ast.FunctionDef):
            DEFINED.setdefault(_node.name, []).append(_node)
        elif isinstance(_node, ast.Assign) and isinstance(_node.targets[0], ast.Name):
            DEFINED.setdefault(_node.targets[0].id, []).append(_node.value)


def goes_on(node):
    """Whether what is defined puts together a text of several lines."""
    body = (
        node.body[ast.get_docstring(node) is not None :]
        if isinstance(node, ast.FunctionDef)
        else [node]
    )
    return any(
        "\n" in text_of(x)
        for part in body
        for x in ast.walk(part)
        if isinstance(x, (ast.Constant, ast.JoinedStr))
    )


def has_advice(message):
    """Whether there is a second line in it, or in what makes it."""
    if "\n" in text_of(message).strip():
        return True
    if isinstance(message, ast.Call):
        return any(map(goes_on, DEFINED.get(name_of(message), ())))
    if isinstance(message, ast.Name):
        return any(map(goes_on, DEFINED.get(message.id, ())))
    return isinstance(message, ast.Attribute) and message.attr in ("reason", "why")  # see below


def messages():
    """Those of our own errors, and what a wrong call of a transform is told."""
    for file, tree in TREES.items():
        wanted = ERRORS | ({"TypeError", "ValueError"} if file.startswith("transforms/") else set())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name_of(node) in wanted and node.args:
                yield file, node


def test_messages_say_what_to_do():
    found = list(messages())
    assert len(found) > 150
    short = []
    used = set()
    for file, node in found:
        message = node.args[0]
        keys = {(file, name_of(node)), (file, ast.unparse(message))} & ALONE.keys()
        used |= keys
        if not keys and not has_advice(message):
            short.append(f"{file}:{node.lineno}: {ast.unparse(message)}")
    assert not short, "\n".join(short)
    assert used == ALONE.keys()


def test_short_messages_are_found():
    assert not has_advice(ast.parse("f'{x} is no function'", mode="eval").body)
    assert not has_advice(ast.parse("f'{x} is no function\\n'", mode="eval").body)
    assert has_advice(ast.parse("f'{x} is no function\\ndefine one'", mode="eval").body)


def test_reasons_that_are_kept_for_later_say_what_to_do():
    """An op that has no derivative knows the message, and so does a tangent that there is not."""
    calls = [
        (file, x)
        for file, tree in TREES.items()
        for x in ast.walk(tree)
        if isinstance(x, ast.Call) and name_of(x) in ("Unfollowed", "Missing")
    ]
    assert calls
    for file, call in calls:
        assert any(map(has_advice, call.args)), f"{file}:{call.lineno}: {ast.unparse(call)}"
