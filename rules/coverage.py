"""What of NumPy and SciPy is differentiable, and how: the data, and the page ``docs/coverage.md`` made of it.

    python -m wengert.rules.coverage docs/coverage.md

What the registry knows is asked of the registry. The tables below hold the rest, and only that.

Words
-----
status     rule, traced, nondiff, query or writes: how a name is differentiated; or why it is not: unsupported, or what
           it is instead of a function of numbers (a kind).
space      where a name lives: a module, or the class ``ndarray`` or ``ufunc``.
kind       what a name is that is no function of numbers: a type, a constant, input and output, ...
span       from which release of NumPy, and before which, a name is there, where not in all that are supported.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .numpy_random import FAMILIES, REORDERINGS, Family
from .registry import CALLER, MUTATOR, NONDIFF, QUERY, RRULE, lookup

STATUS = {RRULE: "rule", CALLER: "rule", NONDIFF: "nondiff", QUERY: "query", MUTATOR: "writes"}
MEANING = {
    "rule": "has a rule",
    "traced": "is traced through its Python body, or by the tracer itself; tested",
    "nondiff": "has no derivative (or zero, where it has one)",
    "query": "looks at types and shapes only",
    "writes": "writes into an array, and is differentiated by what it leaves behind",
    "unsupported": "not supported: an error, never a wrong gradient",
    "type": "a type",
    "constant": "a constant, or an object that is no function",
    "module": "a module",
    "files and text": "reads or writes files, bytes or text",
    "settings": "asks for or changes settings, or the environment",
    "about types": "a function of types",
    "dates": "a function of dates",
    "draw": "draws random numbers: an input, drawn anew at each call; a gradient to its parameters is an error",
    "state": "makes or changes the state of a random generator",
}

SPACES: dict[str, Any] = {
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.fft": np.fft,
    "numpy.random": np.random,
    "ndarray": np.ndarray,
    "ufunc": np.ufunc,
}

# Traced through their Python bodies (or by the tracer: `vectorize`, `tolist`); the tests name each of them.
TRACED: dict[str, str] = {
    "numpy": """append apply_along_axis apply_over_axes array_split
        asarray_chkfinite astype atleast_1d atleast_2d atleast_3d average
        block c_ column_stack corrcoef cov cumulative_prod cumulative_sum diff dsplit dstack emath extract fliplr
        flipud fromfunction fromiter geomspace histogram histogram2d histogram_bin_edges histogramdd hsplit
        i0 intersect1d ix_ kaiser kron logspace median mgrid nancumprod nancumsum nanmean nanpercentile nanprod
        nanquantile nanstd nanvar ndenumerate ndindex ogrid pad percentile piecewise poly poly1d polyadd polyder
        polydiv polyfit polyint polynomial polysub polyval put_along_axis quantile r_ real_if_close require resize
        rollaxis rot90 row_stack s_ select setdiff1d setxor1d sort_complex split take_along_axis trapezoid trapz
        trim_zeros union1d unique_all unique_counts unique_inverse unique_values unstack unwrap vander vectorize
        vsplit""",
    "numpy.linalg": """cond cross diagonal matmul matrix_norm matrix_power multi_dot norm outer tensordot tensorinv
        tensorsolve trace vecdot vector_norm""",
    "numpy.fft": "fft2 fftfreq fftn fftshift ifft2 ifftn ifftshift irfft2 irfftn rfft2 rfftfreq rfftn",
    "ndarray": "T flat imag mT real tolist",
}

# The tracer answers these itself, as it does shape and dtype.
ATTRIBUTES = "device dtype flags itemsize nbytes ndim shape size strides"

MEMORY = "hands out memory, in which a gradient could be lost"
SUBCLASS = "a subclass of ndarray, which is not traced; use a plain array"

UNSUPPORTED: dict[str, dict[str, str]] = {
    "numpy": {
        "asmatrix bmat ma matrix memmap recarray record": SUBCLASS,
        "frompyfunc": "its results are arrays of objects; use np.vectorize",
        "broadcast nditer nested_iters flatiter": "an iterator in C, into which no gradient can be followed",
        "from_dlpack frombuffer": MEMORY,
    },
    "ndarray": {
        "base ctypes data getfield setfield byteswap": MEMORY,
        "resize": "changes the memory of the array; use np.resize",
        "setflags": "changes how the array may be used; copy it instead",
        "itemset newbyteorder": "gone from NumPy 2; use indexing",
    },
}

KINDS: dict[str, dict[str, str]] = {
    "type": {
        "numpy": "busdaycalendar dtype finfo iinfo ndarray ufunc",
        "numpy.linalg": "LinAlgError",
        "numpy.random": "BitGenerator Generator MT19937 PCG64 PCG64DXSM Philox RandomState SFC64 SeedSequence",
    },
    "constant": {"numpy": "index_exp", "ufunc": "identity nargs nin nout ntypes signature types"},
    "files and text": {
        "numpy": """array2string array_repr array_str base_repr binary_repr format_float_positional
            format_float_scientific fromfile fromregex fromstring genfromtxt info load loadtxt save savetxt savez
            savez_compressed typename""",
        "ndarray": "dump dumps tobytes tofile tostring",
    },
    "settings": {
        "numpy": """errstate get_include get_printoptions getbufsize geterr geterrcall printoptions set_printoptions
            setbufsize seterr seterrcall show_config show_runtime test""",
        "numpy.linalg": "test",
        "numpy.fft": "test",
        "numpy.random": "test",
    },
    "about types": {
        "numpy": "isdtype issubdtype mintypecode",
        "ufunc": "resolve_dtypes",
    },
    "dates": {
        "numpy": """busday_count busday_offset datetime64 datetime_as_string datetime_data is_busday timedelta64"""
    },
    "draw": {
        "numpy.random": """beta binomial bytes chisquare dirichlet f geometric hypergeometric logseries
            multinomial negative_binomial noncentral_chisquare noncentral_f poisson rand randint randn
            random random_integers random_sample ranf sample standard_cauchy standard_exponential
            standard_gamma standard_normal standard_t wald zipf"""
    },
    "state": {
        "numpy.random": "default_rng get_bit_generator get_state seed set_bit_generator set_state"
    },
}

# The first release of NumPy 2 that has a name of these tables, and the first that has it no more.
SPANS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        "numpy.cumulative_prod numpy.cumulative_sum numpy.unstack".split(), ("2.1", "")
    ),
    "numpy.trapz": ("", "2.4"),
    **dict.fromkeys("ndarray.itemset ndarray.newbyteorder ndarray.tostring".split(), ("", "2.4")),
    "numpy.row_stack": ("", "2.5"),
}
METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")
SCIPY = "special linalg stats integrate interpolate optimize sparse signal ndimage fft".split()


def known(space: str) -> dict[str, tuple[str, str]]:
    """The names of the tables for a space, each with its status and a remark."""
    found = dict.fromkeys(TRACED.get(space, "").split(), ("traced", ""))
    if space == "ndarray":
        found |= dict.fromkeys(ATTRIBUTES.split(), ("query", ""))
    for names, reason in UNSUPPORTED.get(space, {}).items():
        found |= dict.fromkeys(names.split(), ("unsupported", reason))
    for kind, spaces in KINDS.items():
        found |= dict.fromkeys(spaces.get(space, "").split(), (kind, ""))
    return found


def names(space: str) -> list[str]:
    """The public names of a space."""
    return sorted(name for name in dir(SPACES[space]) if not name.startswith("_"))


def status(space: str, name: str) -> tuple[str, str] | None:
    """The status of a name and a remark, or None where neither registry nor tables have it."""
    value = getattr(SPACES[space], name)
    rule = lookup(value)
    if rule is not None and not (space == "ufunc"):
        return STATUS[rule.kind], ""
    if space == "numpy.random" and name in FAMILIES:
        return "rule", taken_out(FAMILIES[name])
    if space == "numpy.random" and name in {method.__name__ for method in REORDERINGS}:
        return "rule", "a gather, by indices that are drawn"
    if name in known(space):
        return known(space)[name]
    if space == "ufunc":
        return "rule", "see the table of ufuncs"
    if isinstance(value, types.ModuleType):
        return "module", ""
    if isinstance(value, type) and issubclass(value, np.generic):
        return "type", ""
    return None if callable(value) else ("constant", "")


def taken_out(family: Family) -> str:
    """Which parameters of a distribution have a derivative."""
    pairs = list(zip(family.parameters, family.partials, strict=True))
    refused = [name for name, partial in pairs if partial is None]
    named = "a draw, differentiable in " + ", ".join(
        x for x, partial in pairs if partial is not None
    )
    return named + (f"; in {', '.join(refused)} an error" if refused else "")


def ufuncs() -> list[str]:
    """The names of NumPy's ufuncs, each once."""
    return sorted({x.__name__ for x in vars(np).values() if isinstance(x, np.ufunc)})


def of_method(name: str, method: str) -> str:
    """The status of a method of a ufunc; a dash where it has none."""
    ufunc = getattr(np, name)
    if ufunc.signature is not None or (ufunc.nin, ufunc.nout) not in POSSIBLE[method]:
        return "–"
    rule = lookup(getattr(ufunc, method))
    return "unsupported" if rule is None else STATUS[rule.kind]


PAIR = {(2, 1)}
POSSIBLE = {
    "reduce": PAIR,
    "accumulate": PAIR,
    "reduceat": PAIR,
    "outer": {*PAIR, (2, 2)},
    "at": {*PAIR, (1, 1)},
}


# ---------------------------------------------------------------------------------------------- the page


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def listing(space: str) -> Iterator[list[str]]:
    """The rows of a space: its names by status, and by remark where there is one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names(space):
        groups.setdefault(status(space, name) or ("missing", ""), []).append(f"`{name}`")
    order = [*MEANING, "missing"]
    for (kind, remark), members in sorted(groups.items(), key=lambda x: order.index(x[0][0])):
        label = f"{kind}: {remark}" if remark else kind
        yield [label, str(len(members)), " ".join(members)]


def numpy_section() -> str:
    """What the page says about the NumPy that is installed."""
    parts = [f"## NumPy {release(np)}\n"]
    counts: dict[str, Counter[str]] = {}
    for space in SPACES:
        counts[space] = Counter(
            (status(space, name) or ("missing", ""))[0] for name in names(space)
        )
    used = [kind for kind in [*MEANING, "missing"] if any(c[kind] for c in counts.values())]
    rows = [[f"`{space}`", *(str(c[kind] or "") for kind in used)] for space, c in counts.items()]
    parts.append(table(["", *used], rows))
    for space in SPACES:
        parts.append(f"### {space}\n")
        parts.append(table(["status", "", "names"], list(listing(space))))
    parts.append("### Methods of ufuncs\n")
    rows = [[f"`{name}`", *(of_method(name, m) for m in METHODS)] for name in ufuncs()]
    parts.append(table(["", *METHODS], rows))
    return "\n".join(parts)


def scipy_section() -> str | None:
    """What the page says about the SciPy that is installed, or None where there is none."""
    try:
        scipy = importlib.import_module("scipy")
    except ImportError:
        return None
    parts = [
        f"## SciPy {release(scipy)}\n",
        "Names with a rule; what SciPy writes in Python is traced.\n",
    ]
    rows = []
    for name in SCIPY:
        module = importlib.import_module(f"scipy.{name}")
        found: dict[str, list[str]] = {}
        for member in sorted(vars(module)):
            rule = None if member.startswith("_") else lookup(getattr(module, member))
            if rule is not None:
                found.setdefault(STATUS[rule.kind], []).append(f"`{member}`")
        for kind, members in sorted(found.items()):
            rows.append([f"`scipy.{name}`", kind, str(len(members)), " ".join(members)])
    parts.append(table(["module", "status", "", "names"], rows))
    return "\n".join(parts)


def release(module: Any) -> str:
    """The release of a package, without the number of the patch."""
    return ".".join(module.__version__.split(".")[:2])


HEAD = """# Coverage

What of NumPy and SciPy Wengert differentiates. This page is made by

    python -m wengert.rules.coverage docs/coverage.md

and a test fails when it is not what the installed NumPy gives, or when NumPy has a name that is not on it.

"""


def sections(page: str) -> dict[str, str]:
    """The sections of a page, by the package that each is about."""
    parts = page.split("\n## ")[1:]
    return {part.partition(" ")[0]: "## " + part.rstrip("\n") + "\n" for part in parts}


def page(before: str = "") -> str:
    """The whole page. Of a package that is not installed, the section of the page ``before`` is kept."""
    words = [[status, meaning] for status, meaning in MEANING.items()]
    scipy = scipy_section() or sections(before).get("SciPy", "")
    return (
        "\n".join([HEAD + table(["status", "meaning"], words), numpy_section(), scipy]).rstrip()
        + "\n"
    )


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(page(path.read_text() if path.exists() else ""))
