"""Text of traced values: it may be printed, compared, stored and handed on, and never becomes a number again."""

import array
import ast
import base64
import bisect
import codecs
import collections
import configparser
import contextlib
import contextvars
import copy
import csv
import ctypes
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import hashlib
import html
import html.parser
import inspect
import io
import itertools
import json
import locale
import logging
import logging.handlers
import marshal
import math
import mmap
import operator
import os
import pathlib
import pickle
import pprint
import queue
import random
import re
import shlex
import sqlite3
import string
import struct
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
import types
import typing
import unicodedata
import urllib.parse
import warnings
import weakref
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter, OrderedDict, UserString, deque, namedtuple

import mpmath
import numpy as np
import pytest

import wengert
from helpers import assert_plain, assert_same, check, numeric_grad
from wengert import NoRuleError, TraceError, grad, jit, pullback, stop_gradient, value_and_grad

REFUSED = "of text that was drawn from a traced value"


class Reading:
    """A user's class with text of its own."""

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return str(self.value)

    def __repr__(self):
        return f"{self.value!r}"

    def __format__(self, spec):
        return format(self.value, spec)


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


class Word(str):
    pass


class Real(float):
    pass


class Lines:
    """A file in Python."""

    def __init__(self):
        self.parts = []

    def write(self, text):
        self.parts.append(text)


class Page(html.parser.HTMLParser):
    def handle_data(self, data):
        self.data = data


class Constants(ast.NodeVisitor):
    def visit_Constant(self, node):
        self.value = node.value


@dataclasses.dataclass
class Point:
    x: float


Pair = namedtuple("Pair", "a b")


class Strings(np.ndarray):
    def __getitem__(self, key):
        return super().__getitem__(key)


def written(kind, *texts):
    """A buffer to which these were written, one after the other."""
    buffer = kind()
    for text in texts:
        buffer.write(text)
    buffer.seek(0)
    return buffer


def from_file(text):
    with tempfile.TemporaryFile("w+") as file:
        file.write(text)
        file.seek(0)
        return file.read()


def by_program(text):
    with tempfile.TemporaryDirectory() as path:
        path = os.path.join(path, "text")
        with open(path, "w") as file:
            file.write(text)
        return subprocess.check_output(["cat", path]).decode()


def by_map(text):
    with tempfile.TemporaryFile("w+b") as file:
        file.write(text.encode())
        file.flush()
        with mmap.mmap(file.fileno(), 0) as memory:
            return memory[:].decode()


def from_database(query):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        return connection.execute(query).fetchone()[0]


def then(*values):
    """The last of what was done in turn."""
    return values[-1]


# ------------------------------------------------------------------------------------ back to a number

DRAWN = {  # ways to draw text, each to be read by float
    "str": lambda x: str(x),
    "repr": lambda x: repr(x),
    "ascii": lambda x: ascii(x),
    "__str__": lambda x: x.__str__(),
    "__repr__": lambda x: x.__repr__(),
    "__format__": lambda x: x.__format__(""),
    "float.__repr__": lambda x: float.__repr__(x),
    "float.__format__": lambda x: float.__format__(x, "e"),
    "object.__str__": lambda x: object.__str__(x),
    "%s": lambda x: "%s" % x,
    "%r": lambda x: "%r" % (x,),
    "%.3f": lambda x: "%.3f" % x,
    "%(a)g": lambda x: "%(a)g" % {"a": x},
    "bytes %": lambda x: b"%a" % x,
    "bytes %.2f": lambda x: b"%.2f" % (x,),
    "mod": lambda x: operator.mod("%s", (x,)),
    "imod": lambda x: operator.imod("%s", x),
    "__mod__": lambda x: "%s".__mod__((x,)),
    "format": lambda x: "{}".format(x),
    "str.format": lambda x: str.format("{:.2f}", x),
    "format of a list": lambda x: "{0[0]}".format([x]),
    "format of an attribute": lambda x: "{0.value}".format(Reading(x)),
    "a bound format": lambda x: next(map("{:.2f}".format, [x])),
    "vectorize": lambda x: np.vectorize(lambda v: f"{v}")(np.array([x]))[0],
    "format_map": lambda x: "{a}".format_map({"a": x}),
    "format()": lambda x: format(x, ".3f"),
    "f": lambda x: f"{x}",
    "f!r": lambda x: f"{x!r:>10}",
    "f=": lambda x: f"{x=}"[2:],
    "f with widths": lambda x: f" {x:{8}.{3}f} ",
    "f of a list": lambda x: f"{[x]}"[1:-1],
    "f!a": lambda x: f"{'ä' + str(x)!a}"[5:-1],
    "f of NumPy": lambda x: f"{np.float64(x)}",
    "f of an array": lambda x: f"{np.array([x])}"[1:-1],
    "repr of a list": lambda x: repr([x])[1:-1],
    "str of a tuple": lambda x: str((x,))[1:-2],
    "str of a dict": lambda x: str({"a": x})[6:-1],
    "repr of a deque": lambda x: repr(deque([x]))[7:-2],
    "repr of a namespace": lambda x: repr(types.SimpleNamespace(a=x))[12:-1],
    "repr of a dataclass": lambda x: repr(Point(x))[8:-1],
    "str of an object": lambda x: str(Reading(x)),
    "repr of objects": lambda x: repr([Reading(x)])[1:-1],
    "f of an object": lambda x: f"{Reading(x):.3f}",
    "% of an object": lambda x: "%s" % Reading(x),
    "format of an object": lambda x: "{:.2f}".format(Reading(x)),
    "of an object that has it": lambda x: "%s" % Named(str(x)),
    "f of an object that has it": lambda x: f"{Named(str(x))}",
    "of a subclass of float": lambda x: str(Real(x)),
    "hex": lambda x: str(float.fromhex("0x1p0")) and str(x),
    "str of an array": lambda x: str(np.array([x]))[1:-1],
    "repr of an array": lambda x: repr(np.array([x]))[7:-2],
    "array2string": lambda x: np.array2string(np.array([x]))[1:-1],
    "format_float_positional": lambda x: np.format_float_positional(x),
    "an element": lambda x: str(np.array([x, x])[1]),
    "np.str_": lambda x: np.str_(x),
    "astype": lambda x: np.array([x]).astype(str)[0],
    "astype bytes": lambda x: np.array([x]).astype("S")[0],
    "json": lambda x: json.dumps(x),
    "json with indents": lambda x: json.dumps([x], indent=1)[3:-1],
    "json keys": lambda x: list(json.loads(json.dumps({x: 1})))[0],
    "pformat": lambda x: pprint.pformat(x),
    "locale": lambda x: locale.format_string("%f", x),
    "Template": lambda x: string.Template("$a").substitute(a=x),
    "Formatter": lambda x: string.Formatter().format("{}", x),
    "exception": lambda x: str(ValueError(x)),
    "repr of an exception": lambda x: repr(ValueError(x))[11:-1],
    "map": lambda x: "".join(map(str, [x])),
    "max": lambda x: max(map(str, [x])),
    "print": lambda x: then(b := io.StringIO(), print(x, file=b), b.getvalue()),
    "savetxt": lambda x: then(b := io.StringIO(), np.savetxt(b, np.array([x])), b.getvalue()),
    "csv.writer": lambda x: then(b := io.StringIO(), csv.writer(b).writerow([x]), b.getvalue()),
    "DictWriter": lambda x: then(
        b := io.StringIO(), csv.DictWriter(b, "a").writerow({"a": x}), b.getvalue()
    ),
    "pprint": lambda x: then(b := io.StringIO(), pprint.pprint(x, stream=b), b.getvalue()),
}

MADE = {  # what is made of text, to be read by float
    "+": lambda s: "1" + s,
    "+ from the right": lambda s: s + "1",
    "* and slice": lambda s: (s * 2)[:3],
    "operator.concat": lambda s: operator.concat(s, "1"),
    "operator.iconcat": lambda s: operator.iconcat("1", s),
    "__add__": lambda s: "1".__add__(s),
    "index": lambda s: s[0],
    "slice": lambda s: s[::-1],
    "__getitem__": lambda s: s.__getitem__(slice(None)),
    "itemgetter": lambda s: operator.itemgetter(0)(s),
    "methodcaller": lambda s: operator.methodcaller("strip")(s),
    "list": lambda s: "".join(list(s)),
    "[*s]": lambda s: "".join([*s]),
    "{*s}": lambda s: sorted({*s})[-1],
    "f(*s)": lambda s: "".join((lambda *a: a)(*s)),
    "sorted": lambda s: sorted(s)[-1],
    "reversed": lambda s: "".join(reversed(s)),
    "set": lambda s: max(set(s)),
    "fromkeys": lambda s: "".join(dict.fromkeys(s)),
    "Counter": lambda s: next(Counter(s).elements()),
    "next": lambda s: next(iter(s)),
    "__iter__": lambda s: next(s.__iter__()),
    "chain": lambda s: "".join(itertools.chain("1", s)),
    "islice": lambda s: "".join(itertools.islice(s, 3)),
    "accumulate": lambda s: [*itertools.accumulate(s)][-1],
    "groupby": lambda s: "".join(k for k, _ in itertools.groupby(s)),
    "product": lambda s: "".join(a for a, b in itertools.product(s, "1")),
    "reduce": lambda s: functools.reduce(operator.add, s),
    "zip": lambda s: "".join(a for a, b in zip(s, "abc")),
    "enumerate": lambda s: "".join(c for i, c in enumerate(s)),
    "filter": lambda s: "".join(filter(str.isdigit, s)),
    "generator": lambda s: "".join(c for c in s),
    "join": lambda s: ".".join(["1", s[:1]]),
    "str.join": lambda s: str.join("", [s]),
    "bytes.join": lambda s: b"".join([s.encode()]),
    "split": lambda s: f"a {s} b".split()[1],
    "partition": lambda s: f"a={s}".partition("=")[2],
    "splitlines": lambda s: f"a\n{s}\n".splitlines()[1],
    "strip": lambda s: f" {s} ".strip().lower().upper().title().casefold(),
    "replace": lambda s: f"{s}k".replace("k", ""),
    "translate": lambda s: s.translate({44: 46}),
    "zfill": lambda s: s.zfill(9).center(20).ljust(30).expandtabs(),
    "%": lambda s: "%s" % s,
    "%()": lambda s: "%(a)s" % {"a": s},
    "bytes %b": lambda s: b"%b" % s.encode(),
    "format": lambda s: "{:>9}".format(s),
    "format of a number with it": lambda s: "{:{}}".format(1.0, f".{s[0]}f"),
    "f": lambda s: f" {s} ",
    "str": lambda s: str(s),
    "encode": lambda s: s.encode(),
    "decode": lambda s: s.encode().decode(),
    "bytes": lambda s: bytes(s, "ascii"),
    "str of bytes": lambda s: str(s.encode(), "ascii"),
    "bytearray": lambda s: bytearray(s, "ascii").decode(),
    "bytearray +=": lambda s: operator.iadd(bytearray(), s.encode()),
    "bytearray.extend": lambda s: then(b := bytearray(), b.extend(s.encode()), b.decode()),
    "memoryview": lambda s: bytes(memoryview(s.encode())),
    "copy": lambda s: copy.deepcopy([copy.copy(s)])[0],
    "pickle": lambda s: pickle.loads(pickle.dumps(s)),
    "pickled object": lambda s: pickle.loads(pickle.dumps(Named(s))).name,
    "re.match": lambda s: re.match(".*", s).group(),
    "match[1]": lambda s: re.match("(.*)", s)[1],
    "match.string": lambda s: re.match(".*", s).string,
    "match.groups": lambda s: re.match("(.*)", s).groups()[0],
    "re.findall": lambda s: re.findall(r"[\d.]+", s)[0],
    "re.finditer": lambda s: [m.group() for m in re.finditer(r"[\d.]+", s)][0],
    "re.sub": lambda s: re.sub("a", "", f"a{s}"),
    "re.sub by": lambda s: re.sub("a", lambda m: s, "a"),
    "re.sub that notes": lambda s: then(
        t := [], re.sub(".+", lambda m: t.append(m.group()) or "", s), t[0]
    ),
    "readline": lambda s: next(iter(io.StringIO(s).readline, "")),
    "text of a child": lambda s: then(
        e := ElementTree.Element("a"),
        setattr(ElementTree.SubElement(e, "b"), "text", s),
        e.findtext("b"),
    ),
    "text of a child that was put there": lambda s: then(
        e := ElementTree.Element("a"),
        c := ElementTree.Element("b"),
        e.append(c),
        setattr(c, "text", s),
        "".join(e.itertext()),
    ),
    "text of a child that was found": lambda s: then(
        e := ElementTree.fromstring("<a><b/></a>"), setattr(e[0], "text", s), e.findtext("b")
    ),
    "a row of an array": lambda s: then(
        a := np.zeros((2, 2), "U9"), operator.setitem(a[0], 0, s), a[0, 0]
    ),
    "an array by another": lambda s: then(
        a := np.zeros(2, "U9"), b := a[:1], operator.setitem(a, 0, s), b[0]
    ),
    "array.flat": lambda s: then(a := np.zeros(2, "U9"), operator.setitem(a.flat, 0, s), a[0]),
    "a field of records": lambda s: then(
        a := np.zeros(2, [("n", "U9")]), operator.setitem(a["n"], 0, s), a[0]["n"]
    ),
    "the environment of a program": lambda s: then(
        os.environ.update(WENGERT_TEXT=s),
        subprocess.check_output(["printenv", "WENGERT_TEXT"]).decode(),
    ),
    "the file of a program": lambda s: by_program(s),
    "the file of a map": lambda s: by_map(s),
    "HTML": lambda s: then(p := Page(), p.feed(f"<a>{s}</a>"), p.data),
    "weak dict": lambda s: then(
        w := weakref.WeakKeyDictionary(), operator.setitem(w, Named, s), w[Named]
    ),
    "re.split": lambda s: re.split(",", f"{s},1")[0],
    "pattern": lambda s: re.compile(".*").match(s).group(),
    "StringIO": lambda s: io.StringIO(s).read(),
    "StringIO lines": lambda s: [*io.StringIO(s)][0],
    "StringIO.write": lambda s: written(io.StringIO, s).getvalue(),
    "StringIO.writelines": lambda s: then(b := io.StringIO(), b.writelines([s]), b.getvalue()),
    "writelines of a generator": lambda s: then(
        t := [s], b := io.StringIO(), b.writelines(c for c in t), b.getvalue()
    ),
    "writelines of an iterator": lambda s: then(
        t := [s], b := io.StringIO(), b.writelines(iter(t)), b.getvalue()
    ),
    "copy of a buffer": lambda s: copy.copy(written(io.StringIO, s)).getvalue(),
    "BytesIO": lambda s: written(io.BytesIO, s.encode()).read(),
    "TextIOWrapper": lambda s: then(
        b := io.BytesIO(), w := io.TextIOWrapper(b), w.write(s), w.flush(), b.getvalue()
    ),
    "temporary file": lambda s: from_file(s),
    "csv.reader": lambda s: next(csv.reader([f"{s},1"]))[0],
    "csv.reader of a generator": lambda s: next(csv.reader(t for t in [f"{s},1"]))[0],
    "DictReader": lambda s: next(csv.DictReader(["a", s]))["a"],
    "json": lambda s: json.loads(json.dumps({"a": s}))["a"],
    "textwrap": lambda s: textwrap.fill(textwrap.dedent("  " + s)),
    "shlex": lambda s: shlex.split(f"a {s}")[1],
    "Template": lambda s: string.Template("$a").safe_substitute({"a": s}),
    "html": lambda s: html.escape(s),
    "urllib": lambda s: urllib.parse.unquote(urllib.parse.quote(s)),
    "base64": lambda s: base64.b64decode(base64.b64encode(s.encode())),
    "zlib": lambda s: zlib.decompress(zlib.compress(s.encode())),
    "hex of bytes": lambda s: bytes.fromhex(s.encode().hex()),
    "codecs": lambda s: codecs.decode(codecs.encode(s, "rot13"), "rot13"),
    "unicodedata": lambda s: unicodedata.normalize("NFC", s),
    "intern": lambda s: sys.intern(s),
    "os.path": lambda s: os.path.basename(os.path.normpath(f"/a/{s}")),
    "fspath": lambda s: os.fspath(s),
    "pathlib": lambda s: pathlib.PurePosixPath(f"/a/{s}").name,
    "ctypes": lambda s: ctypes.create_string_buffer(s.encode()).value,
    "array of strings": lambda s: np.array([s])[0],
    "0-d array": lambda s: np.array(s)[()],
    "array of objects": lambda s: np.array([s], dtype=object)[0],
    "item of an array": lambda s: np.array([s]).item(),
    "list of an array": lambda s: np.array([s]).tolist()[0],
    "np.char": lambda s: np.char.add(np.array([s]), "1")[0],
    "concatenate": lambda s: np.concatenate([np.array([s]), np.array(["a"])])[0],
    "element + string": lambda s: np.array([s])[0] + "1",
    "np.str_": lambda s: np.str_(s),
    "a subclass": lambda s: Word(s),
    "f of a subclass": lambda s: f"{Word(s)}",
    "join of a subclass": lambda s: "".join(Word(s)),
    "UserString": lambda s: str(UserString(s)),
    "object with it": lambda s: str(Named(s)),
    "dict": lambda s: {"a": s}["a"],
    "key": lambda s: next(iter({s: 1})),
    "keyword": lambda s: (lambda **k: next(iter(k)))(**{s: 1}),
    "default": lambda s: (lambda t=s: t)(),
    "heap": lambda s: then(h := ["a"], bisect.insort(h, s), h.pop(0)),
    "SimpleQueue": lambda s: then(q := queue.SimpleQueue(), q.put(s), q.get()),
    "Queue": lambda s: then(q := queue.Queue(), q.put(s), q.get()),
    "ChainMap": lambda s: collections.ChainMap({"a": s})["a"],
    "namedtuple": lambda s: Pair(s, 1)._replace(b=2).a,
    "asdict": lambda s: dataclasses.asdict(Point(s))["x"],
    "sqlite": lambda s: from_database(f"select '{s}'"),
    "Enum of a dict": lambda s: enum.Enum("E", {"A": s}).A.value,
    "Enum of pairs": lambda s: enum.Enum("E", names=[("A", s), ("B", "b")])["A"].value,
    "StrEnum": lambda s: enum.StrEnum("E", {"A": s}).A,
    "defaults of a namedtuple": lambda s: namedtuple("P", "a", defaults=[s])().a,
    "make_dataclass": lambda s: dataclasses.make_dataclass("P", [("a", str, s)])().a,
    "Literal": lambda s: typing.Literal[s].__args__[0],
    "Annotated": lambda s: typing.Annotated[float, s].__metadata__[0],
    "Parameter": lambda s: inspect.Parameter("a", 3, default=s).default,
    "array of another class": lambda s: np.ndarray.__getitem__(np.array([s]).view(Strings), 0),
    "its own __getitem__": lambda s: np.array([s]).view(Strings)[0],
}

READ = {  # what makes a number of text (of "2.5")
    "float": lambda s: float(s),
    "int": lambda s: int(s[0]),
    "int of a base": lambda s: int(s[0], base=16),
    "complex": lambda s: complex(s).real,
    "float.__new__": lambda s: float.__new__(float, s),
    "type.__call__": lambda s: type.__call__(float, s),
    "subclass": lambda s: Real(s),
    "map": lambda s: sum(map(float, s.split())),
    "partial": lambda s: functools.partial(float, s)(),
    "starmap": lambda s: next(itertools.starmap(float, [(s,)])),
    "vectorize": lambda s: np.vectorize(float)([s])[0],
    "ord": lambda s: ord(s[0]),
    "sum of ord": lambda s: sum(map(ord, s)),
    "digit": lambda s: unicodedata.digit(s[0]),
    "index in a table": lambda s: "0123456789".index(s[0]),
    "find in a table": lambda s: "0123456789".find(s[0], 1),
    "rindex of bytes": lambda s: b"0123456789".rindex(s[:1].encode()),
    "rfind by the class": lambda s: str.rfind("0123456789", s[0]),
    "map of index": lambda s: sum(map("0123456789.".index, s)),
    "maketrans": lambda s: next(iter(str.maketrans(s, s))),
    "a byte": lambda s: s.encode()[0],
    "bytes": lambda s: sum(s.encode()),
    "list of bytes": lambda s: [*s.encode()][0],
    "memoryview": lambda s: memoryview(s.encode())[0],
    "bytearray": lambda s: bytearray(s, "ascii")[0],
    "from_bytes": lambda s: int.from_bytes(s.encode(), "big"),
    "crc32": lambda s: zlib.crc32(s.encode()),
    "hash digest": lambda s: int(hashlib.md5(s.encode()).hexdigest()[:2], 16),
    "Decimal": lambda s: float(decimal.Decimal(s)),
    "create_decimal": lambda s: float(decimal.getcontext().create_decimal(s)),
    "Fraction": lambda s: float(fractions.Fraction(s)),
    "mpf": lambda s: float(mpmath.mpf(s)),
    "json": lambda s: json.loads(f"[{s}]")[0],
    "json.load": lambda s: json.load(io.StringIO(s)),
    "literal_eval": lambda s: ast.literal_eval(s),
    "eval": lambda s: eval(s),
    "eval of a list": lambda s: eval(f"[{s}]", {})[0],
    "exec": lambda s: then(d := {}, exec(f"y = {s}", d), d["y"]),
    "compile": lambda s: eval(compile(s, "<s>", "eval"), {}),
    "compile of a tree": lambda s: eval(compile(ast.parse(s, mode="eval"), "<s>", "eval"), {}),
    "subclass and text": lambda s: float(Word("") + s),
    "subclass of %": lambda s: float(Word("%s") % s),
    "subclass repeated": lambda s: float(1 * Word(s)),
    "join by the class": lambda s: float(str.join("", iter([s]))),
    "iterator of an array": lambda s: float(next(iter(np.array([s])))),
    "ast": lambda s: ast.parse(s).body[0].value.value,
    "NodeVisitor": lambda s: then(v := Constants(), v.visit(ast.parse(s)), v.value),
    "datetime64": lambda s: float(np.datetime64(f"200{s[0]}-01-01").astype(int)),
    "atof": lambda s: locale.atof(s),
    "np.float64": lambda s: np.float64(s),
    "np.float32": lambda s: float(np.float32(s)),
    "np.int64": lambda s: int(np.int64(s[0])),
    "array": lambda s: np.array([s], float)[0],
    "asarray": lambda s: np.asarray([s], dtype=float)[0],
    "astype": lambda s: np.array([s]).astype(float)[0],
    "astype of objects": lambda s: np.array([s], dtype=object).astype(float)[0],
    "full": lambda s: np.full(2, s, dtype=float)[0],
    "setitem": lambda s: then(a := np.zeros(2), operator.setitem(a, 0, s), a[0]),
    "setitem of a slice": lambda s: then(a := np.zeros(2), a.__setitem__(slice(2), [s, s]), a[0]),
    "fill": lambda s: then(a := np.zeros(2), a.fill(s), a[0]),
    "fromiter": lambda s: np.fromiter([s], float)[0],
    "loadtxt": lambda s: float(np.loadtxt([s])),
    "loadtxt of a buffer": lambda s: float(np.loadtxt(written(io.StringIO, s))),
    "genfromtxt": lambda s: float(np.genfromtxt([s])),
    "view": lambda s: float(np.array([s]).view(np.uint32)[0]),
    "recarray": lambda s: np.array([(s,)], dtype=[("a", float)])["a"][0],
    "csv": lambda s: next(csv.reader([s], quoting=csv.QUOTE_NONNUMERIC))[0],
    "configparser": lambda s: then(
        c := configparser.ConfigParser(), c.read_string(f"[a]\nb={s}"), c.getfloat("a", "b")
    ),
    "sqlite": lambda s: from_database(f"select {s}"),
    "date": lambda s: datetime.date.fromisoformat(f"200{s[0]}-01-01").year,
    "difference of dates": lambda s: (
        (datetime.date.fromisoformat(f"200{s[0]}-01-01") - datetime.date(2000, 1, 1)).days
    ),
    "strptime": lambda s: time.strptime(f"200{s[0]}", "%Y").tm_year,
    "message of an error": lambda s: float(message_of(int, s).split("'")[1]),
    "name of an attribute that is missing": lambda s: float(error_of(getattr, None, s).name),
    "key that is missing": lambda s: float(error_of(operator.getitem, {}, s).args[0]),
}

BYTES = {  # values that go through bytes
    "struct": lambda x: struct.unpack("d", struct.pack("d", x))[0],
    "Struct": lambda x: struct.Struct("d").unpack(struct.Struct("d").pack(x))[0],
    "iter_unpack": lambda x: next(struct.iter_unpack("d", struct.pack("d", x)))[0],
    "pack_into": lambda x: then(
        b := bytearray(8), struct.pack_into("d", b, 0, x), struct.unpack_from("d", b)[0]
    ),
    "bytearray[:]": lambda x: then(
        b := bytearray(8), operator.setitem(b, slice(8), struct.pack("d", x)), struct.unpack("d", b)
    )[0],
    "memoryview[:]": lambda x: then(
        b := bytearray(8), m := memoryview(b), m.__setitem__(slice(8), struct.pack("d", x)),
        struct.unpack("d", b),
    )[0],
    "memoryview.cast": lambda x: memoryview(struct.pack("d", x)).cast("d")[0],
    "pickle": lambda x: pickle.loads(pickle.dumps([x, 1]))[0],
    "pickle.dump": lambda x: then(
        b := io.BytesIO(), pickle.dump(x, b), b.seek(0), pickle.load(b)
    ),
    "marshal": lambda x: marshal.loads(marshal.dumps(x)),
    "tobytes": lambda x: np.frombuffer(np.array([x]).tobytes())[0],
    "tobytes of a number": lambda x: struct.unpack("d", np.float64(x).tobytes())[0],
    "array": lambda x: array.array("d", struct.pack("d", x))[0],
    "frombytes": lambda x: then(a := array.array("d"), a.frombytes(struct.pack("d", x)), a[0]),
    "c_double": lambda x: ctypes.c_double.from_buffer_copy(struct.pack("d", x)).value,
    "mmap": lambda x: struct.unpack(
        "d", written(lambda: mmap.mmap(-1, 8), struct.pack("d", x)).read(8)
    )[0],
    "fromhex": lambda x: float.fromhex(x.hex()),
    "float.hex": lambda x: float.fromhex(float.hex(x)),
}  # fmt: skip


def error_of(f, *args):
    try:
        f(*args)
    except Exception as error:
        return error


def message_of(f, *args):
    return str(error_of(f, *args))


def refused(f, *args):
    """What plain Python computes is refused at each call, with and without the JIT."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        f(*copy.deepcopy(args))
        for on in (True, True, True, False):
            with jit(on), pytest.raises(TraceError, match=REFUSED):
                value_and_grad(f)(*copy.deepcopy(args))


@pytest.mark.parametrize("way", DRAWN)
def test_drawn_text(way):
    draw = DRAWN[way]
    refused(lambda x: float(draw(x)) * x, 2.5)


@pytest.mark.parametrize("way", MADE)
def test_text_made_of_text(way):
    make = MADE[way]
    refused(lambda x: float(make(str(x))) * x, 2.5)


@pytest.mark.parametrize("way", READ)
def test_reading_text(way):
    read = READ[way]
    refused(lambda x: read(f"{x:.1f}") * x, 2.5)


@pytest.mark.parametrize("way", BYTES)
def test_bytes(way):
    through = BYTES[way]
    refused(lambda x: through(x) * x, 2.5)


def test_formats_in_place():
    def f(x):
        s = "%s"
        s %= (x,)
        s += "1"
        return float(s) * x

    refused(f, 2.5)


def test_characters_in_a_loop():
    def f(x):
        s = ""
        for c in str(x):
            s += c
        t = list(s)
        while t:
            s = t.pop() + s
        return float(s[:3]) * x

    refused(f, 2.5)


def test_unpacking():
    def characters(x):
        a, b, c = f"{x:.1f}"
        return float(a + b + c) * x

    def rest(x):
        a, *b = f"{x:.1f}"
        return float(a + "".join(b)) * x

    def matches(x):
        a, b = re.finditer(r"\d", f"{x:.1f}")
        return float(a.group()) * x

    def strings(x):
        a, b = np.array([str(x), str(x)])
        return float(a) * x

    def lines(x):
        (a,) = io.StringIO(str(x))
        return float(a) * x

    def numbers(x):
        a, *_ = str(x).encode()
        return a * x

    for f in (characters, rest, matches, strings, lines, numbers):
        refused(f, 2.5)


def test_matching():
    def parts(x):
        match f"{x} 1".split():
            case [a, _]:
                return float(a) * x

    def whole(x):
        match {"a": str(x)}:
            case {"a": str(s)}:
                return float(s) * x

    refused(parts, 2.5)
    refused(whole, 2.5)


def test_functions_and_generators():
    def closure(x):
        s = str(x)

        def parse(t=s):
            return float(s) + float(t)

        return parse() * x

    def generator(x):
        def texts():
            got = yield str(x)
            yield from got

        i = texts()
        return float(i.send(next(i)) if False else then(next(i), i.send(str(x)))) * x

    def context(x):
        @contextlib.contextmanager
        def manager():
            yield f"{x}"

        with manager() as s:
            return float(s) * x

    def cached(x):
        class Made:
            @functools.cached_property
            def text(self):
                return f"{x}"

        return float(Made().text) * x

    for f in (closure, generator, context, cached):
        refused(f, 2.5)


def test_caught_errors():
    def message(x):
        try:
            raise ValueError(f"{x}")
        except ValueError as error:
            return float(str(error)) * x

    def assertion(x):
        try:
            raise AssertionError(f"{x}")
        except AssertionError as error:
            return float(error.args[0]) * x

    refused(message, 2.5)
    refused(assertion, 2.5)
    assert grad(lambda x: ValueError(x).args[0] * x)(2.5) == 5.0  # the number itself


def test_text_that_a_cache_has():
    @functools.lru_cache
    def parse(text):
        return float(text)

    @functools.lru_cache
    def tag(text):
        return text + "0"

    parse("2.5"), tag("2.5")
    refused(lambda x: parse(str(x)) * x, 2.5)
    refused(lambda x: float(tag(str(x))) * x, 2.5)
    assert value_and_grad(lambda x: len(tag(str(x))) * x)(2.5) == (10.0, 4.0)


# What the outside holds, and is read again in the same run.

setting = None
table, lines, names, thing, buffer = {}, [], set(), types.SimpleNamespace(), io.StringIO()
variable = contextvars.ContextVar("variable", default="")


def by_global(x):
    global setting
    setting = str(x)
    return setting


def by_dict(x):
    table["a"] = str(x)
    return table["a"]


def by_list(x):
    lines.append(str(x))
    return lines.pop()


def by_set(x):
    names.add(str(x))
    return names.pop()


def by_attribute(x):
    thing.text = str(x)
    return thing.text


def by_name(x):
    setattr(thing, "text", str(x))
    return vars(thing)["text"]


def by_class(x):
    Named.shared = str(x)
    return Named("").shared


def by_function(x):
    by_function.text = str(x)
    return by_function.text


def by_module(x):
    math.text_of_a_test = str(x)
    return math.text_of_a_test


def by_buffer(x):
    buffer.seek(0)
    buffer.write(str(x))
    buffer.seek(0)
    return buffer.read(3)


def by_environment(x):
    os.environ["WENGERT_TEXT"] = str(x)
    return os.getenv("WENGERT_TEXT")


def by_context(x):
    variable.set(str(x))
    return variable.get()


def by_stdout(x):
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        print(x)
        sys.stdout.write("")
    return stream.getvalue()


def by_file_in_python(x):
    file = Lines()
    print(x, file=file)
    return file.parts[0]


def by_log(x):
    stream = io.StringIO()
    logger, handler = logging.getLogger("wengert.text"), logging.StreamHandler(stream)
    logger.addHandler(handler)
    logger.propagate = False
    logger.warning("%s", x)
    logger.warning(f"{x}")
    logger.removeHandler(handler)
    return stream.getvalue().split()[1]


def by_log_queue(x):
    records = queue.SimpleQueue()
    logger = logging.Logger("text")
    logger.addHandler(logging.handlers.QueueHandler(records))
    logger.warning("%s", x)
    return records.get().getMessage()


def by_warning(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(f"{x}")
        warnings.warn(UserWarning(f"{x}"))
    return str(caught[0].message) and caught[1].message.args[0]


@pytest.mark.parametrize(
    "way",
    [by_global, by_dict, by_list, by_set, by_attribute, by_name, by_class, by_function, by_module]
    + [
        by_buffer,
        by_environment,
        by_context,
        by_stdout,
        by_file_in_python,
        by_log,
        by_log_queue,
        by_warning,
    ],
)
def test_text_that_went_outside(way):
    refused(lambda x: float(way(x)) * x, 2.5)
    assert value_and_grad(lambda x: len(way(x)) * x)(2.5) == (2.5 * len(way(2.5)), len(way(2.5)))
    assert_plain(setting, table, lines, names, thing, Named, by_function, variable.get())
    assert type(math.__dict__.get("text_of_a_test", "")) is str


def test_arguments():
    def text_of(*parts):
        return lambda p: float("".join(part(p) for part in parts)) * p.x

    refused(text_of(lambda p: "{0.x}".format(p)), Point(2.5))
    refused(text_of(lambda p: "%(x)s" % vars(p)), Point(2.5))
    refused(text_of(lambda p: repr(p)[8:-1]), Point(2.5))
    refused(text_of(lambda p: repr(p)[12:-1]), types.SimpleNamespace(x=2.5))
    refused(lambda p: pickle.loads(pickle.dumps(p)).x * p.x, Point(2.5))
    refused(lambda v: float(f"{v.mean():.2f}") * v.sum(), np.array([1.0, 2.5]))
    refused(lambda v: float([*map(str, v)][0]) * v.sum(), np.array([1.0, 2.5]))
    refused(lambda v: pickle.loads(v.dumps()).sum() * v.sum(), np.array([1.0, 2.5]))
    refused(lambda v: json.loads(json.dumps(v.tolist()))[0] * v.sum(), np.array([1.0, 2.5]))
    refused(lambda v: ast.literal_eval(str(v))[0] * v[0], [2.5, 1.0])
    refused(lambda z: abs(complex(str(z))) * abs(z), 1 + 2j)
    refused(lambda x: float(str(x)) * x, np.float32(2.5))


def test_integers_that_are_arguments():
    for read in (
        lambda n: int(str(n)),
        lambda n: int(f"{n:b}", 2),
        lambda n: int("%x" % n, 16),
        lambda n: int(hex(n), 16),
        lambda n: int.from_bytes(n.to_bytes(4, "big"), "big"),
        lambda n: ord(chr(n)),
    ):
        refused(lambda n: read(n) * 1.0 * n, 5)
    refused(lambda v: int(f"{v[0]}") * 1.0 * v[0], [5])


def test_transforms():
    def f(x):
        return float(str(x)) * x

    for g in (
        lambda x: wengert.jvp(f, (x,), (1.0,)),
        lambda x: grad(grad(f))(x),
        lambda x: grad(lambda y: grad(f)(y) * y)(x),
        lambda x: grad(wengert.checkpoint(f))(x),
        lambda x: grad(lambda y, s: wengert.checkpoint(lambda z: float(s) * z)(y))(x, "2"),
    ):
        try:
            g(2.5)
        except TraceError as error:
            assert REFUSED in str(error)
        else:
            assert "s:" in inspect.getsource(g)  # the text of an argument

    def outer(x):
        text = str(x)
        return grad(lambda y: float(text) * y)(x) * x

    refused(outer, 2.5)


def test_the_message_says_both_lines():
    def f(x):
        text = f"{x}"
        other = text + "1"
        return x * fractions.Fraction(other.strip())

    start = f.__code__.co_firstlineno
    with pytest.raises(TraceError) as caught:
        grad(f)(2.5)
    message = str(caught.value)
    assert f"(called from {__file__}:{start + 3}, in f): int makes an int of text" in message
    assert f"drawn from a traced value ({__file__}:{start + 1}, in f)" in message
    assert "stop_gradient" in message


# --------------------------------------------------------------------------------- numbers without one

rate = 0.1


def test_numbers_without_a_derivative():
    def f(x):
        total = x * float(str(rate)) * float(f"{1.5}") * int(str(3)) * float("1.0")
        for i in range(3):
            total += x * int(f"{i}") * float("1.%d" % i)
        for v in [1.0, 2.0]:
            total += x * float(f"{v}")
        i = 0
        while i < 3:
            total += x * int(str(i))
            i += 1
        total *= int(str(len([1, 2]))) * int(f"{np.int64(3)}") * int(str(int(x)))
        return total * int(f"{math.floor(x)}") * {"True": 2.0}[str(x > 1)]

    expected = f(2.5), numeric_grad(f, 2.5)
    for on in (True, True, True, False):
        with jit(on):
            assert value_and_grad(f)(2.5) == pytest.approx(expected)


def test_a_constant_by_stop_gradient():
    for f in (
        lambda x: x * float(str(stop_gradient(x))),
        lambda x: x * float(stop_gradient(f"{x}")),
        lambda x: x * float(stop_gradient({"a": [f"{x}"]})["a"][0]),
    ):
        assert [value_and_grad(f)(v) for v in (2.5, 2.5, 2.5, 3.5)] == [
            *[(6.25, 2.5)] * 3,
            (12.25, 3.5),
        ]


def test_other_text_beside_it():
    def f(x):
        text = f"{x}"
        print(text, file=io.StringIO())
        pattern = re.compile(r"(\d+)")
        assert pattern.match(text)
        assert sorted(["2", "1"], key=lambda s: text + s) == ["1", "2"]
        found = pattern.match("12 a")
        return (
            x
            * np.loadtxt(io.StringIO("1 2 3")).sum()
            * float("2.0")
            * int(found.group(1))
            * float(fractions.Fraction("1/2"))
            * float(decimal.Decimal("1.5"))
            * json.loads('{"a": 2}')["a"]
            * datetime.date.fromisoformat("2000-01-01").month
            * float(sorted(["2", "1"], key=lambda s: text + s)[0])
        )

    check(f, 2.5)


def test_names_of_parameters():
    weights = {f"w{i}": float(i) for i in range(3)}

    def f(params, x):
        for i in range(3):
            params[f"v{i}"] = params[f"w{i}"] * x
            weights[f"w{i}"] += params[f"w{i}"] * 0
        total = sum(params[f"v{i}"] * int(f"w{i}"[1:]) for i in range(3))
        return {f"total{len(params)}": total, f"{x:.1f}": x}

    def plain_of(f):
        params = {"w0": 1.0, "w1": 2.0, "w2": 3.0}
        return f(params, 2.5), params

    expected = plain_of(f)
    for on in (True, True, True, False):
        with jit(on):
            (value, back), params = plain_of(lambda *args: pullback(f, *args))
            assert_same((value, params), expected)
            assert_plain(value, params, weights)
            gradient = back({"total6": 1.0, "2.5": 0.0})
            assert gradient == ({"w0": 0.0, "w1": 2.5, "w2": 5.0}, 8.0)
            assert_plain(gradient)


def test_a_rule_of_the_users_is_given_its_string():
    @wengert.custom_rule
    def scaled(x, label):
        assert type(label) is str
        return x * float(label[2:]), lambda d: (d * float(label[2:]), None)

    assert value_and_grad(lambda x: scaled(x, f"x={x}"))(2.5) == (6.25, 2.5)


@wengert.custom_rule
def to_three_digits(x):
    return float(f"{x:.3f}"), lambda d: (d,)


@wengert.custom_rule
def squared(x):
    return x * x, lambda d: (float(str(2 * x)) * d,)


def test_rules_may_read_text():
    for on in (True, False):
        with jit(on):
            round_and_multiply = value_and_grad(lambda x: to_three_digits(x) * x)
            square = value_and_grad(lambda x: squared(x))
            for x in (2.5, 2.5, 2.5, 2.5, 1.125, 3.0, 2.5):
                assert round_and_multiply(x) == (x * x, 2 * x)
                assert square(x) == (x * x, 2 * x)
    assert grad(grad(lambda x: to_three_digits(x) * x))(2.5) == 2.0
    with pytest.raises(NoRuleError, match=REFUSED):
        grad(grad(lambda x: squared(x)))(2.5)


# -------------------------------------------------------------------------------------------- allowed

ALLOWED = {
    "results": lambda x: (f"{x:.3f}", str(x), {"a": repr(x), str(x): 1}, [str(x)], (f"{x}".encode(),)),
    "types": lambda x: (
        type(str(x)) is str, isinstance(str(x), str), str(x).__class__ is str, type(str(x)).__name__,
        type(str(x).encode()) is bytes, isinstance(str(x).encode(), bytes), repr(str(x)),
    ),
    "questions": lambda x: (
        str(x) == "2.5", str(x) < "3", "2" in str(x), len(str(x)), hash(str(x)) == hash("2.5"), not str(x),
        str(x).find("5"), str(x).index("."), str(x).count("5"), str(x).startswith("2"), str(x).isdigit(),
        [str(x)].index("2.5"), str(x) in {"2.5"}, {"2.5": 3}[str(x)], {str(x): 4}["2.5"], bool(str(x)),
    ),
    "operations": lambda x: (
        ("a" + str(x)) * 2, 2 * str(x), str(x)[::-1], [*str(x)], "-".join(str(x)), str(x).split("."),
        str(x).partition("."), str(x).encode()[:2], bytearray(str(x), "ascii"), str(x).translate({50: "z"}),
        max(str(x)), sorted(str(x)), list(reversed(str(x))), dict.fromkeys(str(x)), Counter(str(x)),
        list(zip(str(x), "abc")), deque([str(x)]), OrderedDict(a=str(x)), frozenset([str(x)]),
    ),
    "formats": lambda x: (
        f"{x!r:>10}|{x:8.3f}|{str(x):>8}|{x=}|{[x]}|{(x, str(x))}|{'é' + str(x)!a}|{np.array([x])}|{x!s:^9}",
        "%s %r %5.2f %d" % (x, x, x, x), "%(a)s %(b).2f" % {"a": str(x), "b": x}, b"%a %.2f" % (x, x),
        "{} {!r} {:>8.2f} {a} {b[0]}".format(x, x, x, a=str(x), b=[x]), "{0:{1}}".format(x, 8),
        format(str(x), ">9"), repr(Point(x)), str(Reading(x)), "%s" % Named(str(x)), ascii("é" + str(x)),
        str(object=x), str(str(x).encode(), "ascii"), repr(str(x).encode()),
    ),
    "libraries": lambda x: (
        json.dumps({"a": x, "b": [str(x)]}), json.loads(json.dumps({"s": f"{x}"})), textwrap.fill(f"{x} " * 9, 20),
        hashlib.md5(str(x).encode()).hexdigest(), string.Template("$a").substitute(a=x),
        re.match(r"(\d+)", str(x)).group(), re.match(r"(\d+)", str(x)).span(), copy.deepcopy([str(x)]),
        list(csv.reader([f"{x},a"])), pickle.dumps(str(x)) == pickle.dumps("2.5"), pathlib.PurePath(f"{x}").name,
    ),
    "buffers": lambda x: then(
        b := io.StringIO(),
        (b.write(str(x)), print(x, file=b), csv.writer(b).writerow([x, str(x)]), b.tell(), b.getvalue()),
    ),
    "bytes": lambda x: (
        struct.pack("d", x), struct.pack("d", x).hex(), len(struct.pack("d", x)), np.array([x]).tobytes(),
        bytearray(struct.pack("d", x)), hash(struct.pack("d", x)) == hash(struct.pack("d", 2.5)),
    ),
    "strings in arrays": lambda x: (
        np.array([str(x), "a"]), np.array([str(x)])[0], np.array([str(x)]) == "2.5", np.array([x]).astype(str),
        np.array([str(x)], dtype=object), np.array([str(x)]).tolist(), np.array(["b", str(x)]).argsort(),
    ),
    "a subclass": lambda x: (type(Word(x)) is Word, Word(x) + "a", Word(x).upper(), len(Word(x))),
    "methods": lambda x: (str(x).upper(), functools.partial(len, str(x))(), [*map(str.upper, str(x))]),
    "names": lambda x: (
        getattr(types.SimpleNamespace(v2_5=3), f"v{x}".replace(".", "_")), hasattr(x, str(x)),
        namedtuple("P", ["a", f"b{int(x)}"])._fields, type(f"T{x:.0f}", (), {}).__name__,
    ),
    "enums": lambda x: (
        enum.Enum("E", {"A": str(x)}).A.value, enum.Enum("E", [f"A{int(x)}", "B"]).B.name,
        [m.value for m in enum.StrEnum("E", {"A": str(x), "B": "b"})], enum.IntEnum("E", f"A{int(x)} B").B + 1,
    ),
    "what programs give": lambda x: then(
        subprocess.check_output(["echo", str(x)]), float(subprocess.check_output(["echo", "3.0"]))
    ),
    "beside a child's text": lambda x: then(
        e := ElementTree.Element("a"), setattr(ElementTree.SubElement(e, "b"), "text", str(x)), len(e),
        float(ElementTree.fromstring("<a>3.0</a>").text),
    ),
    "numbers as bytes": lambda x: str(x).encode() == b"2.5" and b"2" in str(x).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed(name):
    f = ALLOWED[name]
    expected = [f(2.5), f(2.5), f(2.5), f(3.5) if name not in ("questions", "names") else f(2.5)]
    inputs = 2.5, 2.5, 2.5, (3.5 if name not in ("questions", "names") else 2.5)
    for on in (True, False):
        with jit(on):
            found = [pullback(f, v)[0] for v in inputs]
            assert_same(found, expected)
            assert_plain(found)
            g = value_and_grad(lambda x: (f(x), x * x)[1])
            assert [g(v) for v in inputs] == [(v * v, 2 * v) for v in inputs]


def test_errors_are_those_of_strings():
    wrong = (
        lambda s: s + 1, lambda s: 1 + s, lambda s: [1] + s, lambda s: s + [1], lambda s: s * 2.5, lambda s: -s,
        lambda s: s.missing, lambda s: s(), lambda s: s[1.5], lambda s: s["a"], lambda s: s[99], lambda s: s < 1,
        lambda s: sorted([s, 1]), lambda s: "".join([s, 1]), lambda s: s.join(5), lambda s: math.sqrt(s),
        lambda s: s % 5, lambda s: "%d" % s, lambda s: s.encode() + "a", lambda s: abs(s), lambda s: sum([s]),
        lambda s: s.index("z"), lambda s: ord(s), lambda s: int(s), lambda s: float(s + "x"), lambda s: [1][s],
        lambda s: range(s), lambda s: next(s), lambda s: f"{s:d}", lambda s: "{} {}".format(*[s]),
        lambda s: getattr(None, s), lambda s: {}[s], lambda s: setattr(s, "a", 1), lambda s: (lambda a: a)(**{s: 1}),
        lambda s: open(s + "/"), lambda s: memoryview(s), lambda s: bytes(s), lambda s: re.compile("(" + s),
        lambda s: json.loads("[" + s + "a"), lambda s: complex(s, 1), lambda s: "{:d}".format(s),
    )  # fmt: skip

    def f(x):
        return [(type(e).__name__, str(e), e.args) for e in [error_of(g, str(x)) for g in wrong]]

    for on in (True, False):
        with jit(on):
            found = pullback(f, 2.5)[0]
            assert_same(found, f(2.5))
            assert_plain(found)


def test_files_are_named_and_written(tmp_path):
    def f(x):
        path = os.path.join(tmp_path, f"a{x:.2f}.txt")
        with open(path, "w") as file:
            count = file.write(f"{x}\n")
            print(x, file=file)
        with open(path) as file:
            text = file.read()
        np.save(tmp_path / f"{x}.npy", np.arange(3.0))
        total = np.load(tmp_path / f"{x}.npy").sum()
        return x * count * os.path.getsize(path) * total, text

    plain = f(2.5)
    value, _ = pullback(f, 2.5)
    assert_same(value, plain)
    assert_plain(value)


def test_text_comes_back_from_a_file_that_is_opened_anew(tmp_path):
    path = str(tmp_path / "number.txt")

    def f(x):
        with open(path, "w") as file:
            file.write(str(x))
        with open(path) as file:
            return x * float(file.read())

    with pytest.raises(TraceError, match=REFUSED):
        pullback(f, 2.5)


def test_the_outside_gets_strings():
    log, seen = [], {}
    holder = types.SimpleNamespace()

    def f(x):
        log.append(f"{x}")
        log.extend([str(x), [str(x)], {str(x): (str(x),)}])
        seen[str(x)] = Counter(str(x))
        holder.text, holder.inner = str(x), Named(str(x))
        vars(holder.inner)[str(x)] = 1
        holder.partial = functools.partial(len, str(x))
        holder.objects = np.array([str(x)], dtype=object)

        def named():
            """Of no use."""

        named.__doc__ = named.text = f"{x}"
        holder.function = named
        return x * len(log[0])

    def now():
        vars(holder).pop("function", None)
        held = copy.deepcopy((log, seen, vars(holder)))
        log.clear(), seen.clear(), vars(holder).clear()
        return held

    f(2.5)
    expected = now()
    for on in (True, True, True, False):
        with jit(on):
            assert value_and_grad(f)(2.5) == (7.5, 3.0)
        assert_plain(log, seen, holder)
        assert type(holder.function.__doc__) is str
        assert_same(now(), expected)


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, SystemExit, OSError, StopIteration, AttributeError]
)
def test_exceptions_get_strings(error):
    def f(x):
        raised = error(str(x), [str(x)], {str(x): str(x)})
        raised.add_note(f"{x}")
        raise raised

    with pytest.raises(error) as caught:
        pullback(f, 2.5)
    assert_plain(caught.value.args, caught.value.__notes__)
    assert_plain(
        *[getattr(caught.value, x, None) for x in "name code value filename strerror".split()]
    )


def test_nothing_is_kept_when_the_run_has_ended():
    class Holding(io.StringIO):
        pass

    def f(x):
        file = Holding()
        file.write(f"{x}")
        return x * len(file.getvalue())

    assert value_and_grad(f)(2.5) == (7.5, 3.0)
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x) is Holding]


@pytest.mark.skipif(sys.version_info < (3, 14), reason="template strings are of 3.14")
def test_template_strings():
    make = eval("lambda x: t'v={x:.2f}!'")
    refused(
        lambda x: (lambda i: float(format(i.value, i.format_spec)))(make(x).interpolations[0]) * x,
        2.5,
    )
    assert grad(lambda x: make(x).values[0] * x)(2.5) == 5.0
    template = pullback(make, 2.5)[0]
    assert_plain(template.values)
    assert template.values == (2.5,)


# ------------------------------------------------------------------------------------------------- seeds

SEEDED = {
    "Random": lambda x, seed: random.Random(seed).gauss(0, 1) * x,
    "seed": lambda x, seed: (random.seed(seed), random.random() * x)[1],
    "of a computed number": lambda x, seed: random.Random(2 * seed + 1).random() * x,
    "default_rng": lambda x, seed: np.random.default_rng(seed).normal() * x,
    "RandomState": lambda x, seed: np.random.RandomState(seed).normal() * x,
    "np.random.seed": lambda x, seed: (np.random.seed(seed), np.random.rand() * x)[1],
}


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("name", SEEDED)
def test_an_integer_that_is_an_argument_may_be_a_seed(name, on):
    f = SEEDED[name]
    with jit(on):
        for seed in (7, 7, 7, 8, 9):
            wanted = f(1.5, seed)
            assert value_and_grad(f)(1.5, seed) == (wanted, pytest.approx(wanted / 1.5))
            value, back = pullback(f, 1.5, seed)
            assert value == wanted and back(1.0) == (pytest.approx(wanted / 1.5), 0.0)


@pytest.mark.parametrize("seed", [lambda x: x, str], ids=["number", "text"])
def test_a_number_with_a_derivative_is_no_seed(seed):
    with pytest.raises(TraceError, match="in seed"):
        grad(lambda x: random.Random(seed(x)).random() * x)(1.5)


def by_name(x, path):
    np.array([x, x]).tofile(path)
    return np.fromfile(path)[1] * x


def by_path(x, path):
    np.array([x, x]).tofile(pathlib.Path(path))
    return np.fromfile(pathlib.Path(path))[1] * x


def dumped(x, path):
    np.array([x]).dump(path)
    with open(path, "rb") as file:
        return pickle.load(file)[0] * x


def printed(x, path):
    with open(path, "w") as file:
        file.write(str(x))
    return np.fromfile(path, sep=" ")[0] * x


@pytest.mark.parametrize("f", [by_name, by_path, dumped, printed])
def test_a_file_is_followed_by_its_name_alone(f, tmp_path):
    path = str(tmp_path / "numbers")
    for x in (1.5, 2.5, 3.5, 1.5):
        with pytest.raises(TraceError, match="text that was drawn from a traced value"):
            grad(f)(x, path)
    np.array([2.0, 4.0]).tofile(path)
    for x in (1.5, 2.5, 3.5, 1.5):
        assert grad(lambda x: np.fromfile(path)[1] * x)(x) == 4.0


SAID = {
    "format_exception_only": lambda e: "".join(traceback.format_exception_only(e)),
    "format_exception": lambda e: traceback.format_exception(e)[-1],
    "format_exc": lambda e: traceback.format_exc(),
    "from_exception": lambda e: "".join(
        traceback.TracebackException.from_exception(e).format_exception_only()
    ),
    "from_exception, format": lambda e: [*traceback.TracebackException.from_exception(e).format()][
        -1
    ],
}


@pytest.mark.parametrize("made", [str, float], ids=["text", "number"])
@pytest.mark.parametrize("name", SAID)
def test_text_in_an_exception_that_traceback_shows_is_followed(name, made):
    def f(x):
        try:
            raise ValueError(str(x) if made is str else x)
        except ValueError as error:
            return float(SAID[name](error).split(": ")[-1]) * x

    with pytest.raises(TraceError, match="text that was drawn from a traced value"):
        grad(f)(1.5)


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_an_element_gives_the_number_that_it_holds_beside_text_of_one(on):
    element = ElementTree.Element("a")

    def read(x):
        element.tail = x
        element.set("n", str(int(x)))
        return x * element.tail

    def read_by_a_method(x):
        element.text = x
        return x * next(element.itertext())

    with jit(on):
        for x in (3.0, 4.0, 3.0):
            assert value_and_grad(read)(x) == (x * x, 2 * x)
            with pytest.raises(TraceError, match="makes a float of text that was drawn from"):
                grad(read_by_a_method)(x)


TABLES = '''
def tabulate(rows):
    """As the package of this name does, it looks whether a column is of numbers by making numbers of its text."""
    texts = [format(x, ".3g") if isinstance(x, float) else str(x) for row in rows for x in row]
    return " ".join(x.rjust(9) if float(x) else x for x in texts)
'''


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
def test_a_table_is_text_like_any_other(on, capsys, monkeypatch):
    module = types.ModuleType("tabulate")
    monkeypatch.setitem(sys.modules, "tabulate", module)
    exec(TABLES, vars(module))
    tabulate = module.tabulate

    def f(x):
        print(tabulate([(1, x), (2, x * x)]))
        return x * x * len(tabulate([[x]]))

    def read(x):
        return float(tabulate([[x]])) * x

    with jit(on):
        for x in (3.0, 4.0, 3.0, 3.0):
            f(x)
            plain = capsys.readouterr().out
            assert value_and_grad(f)(x) == (9 * x * x, 18 * x)
            assert capsys.readouterr().out == plain
            with pytest.raises(TraceError, match="text that was drawn from a traced value"):
                grad(read)(x)


def merged(mapping, name):
    filled = {}
    if name == "update":
        filled.update(mapping)
    elif name == "in_place":
        filled |= mapping
    elif name == "outside":
        OUTSIDE.update(mapping)
        filled = OUTSIDE
    else:
        filled = MERGED[name](mapping)
    return filled


class Own(dict):
    pass


OUTSIDE = {}
MERGED = {
    "dict": dict,
    "with more": lambda m: dict(m, more="1"),
    "stars": lambda m: {**m},
    "keywords": lambda m: dict(**m),
    "own class": Own,
    "ordered": collections.OrderedDict,
    "default": lambda m: collections.defaultdict(list, m),
    "init": lambda m: dict.__init__(OUTSIDE, m) or OUTSIDE,
    "method": lambda m: {}.__ior__(m),
    "operator": lambda m: operator.ior({}, m),
}


@pytest.mark.parametrize("on", [True, False], ids=["jit", "traced"])
@pytest.mark.parametrize("name", ["update", "in_place", "outside", *MERGED])
def test_a_mapping_written_in_c_that_holds_text_fills_a_dict(name, on):
    def held(x):
        mapping = types.MappingProxyType({"width": "2.5"})  # a class of CPython's own, without heap
        sys.audit("wengert.test", mapping, str(x))
        return mapping

    def size(x):
        return x * len(merged(held(x), name)["width"])

    def read(x):
        return x * float(merged(held(x), name)["width"])

    with jit(on):
        for x in (2.0, 3.0):
            assert value_and_grad(size)(x) == (3 * x, 3.0)
            with pytest.raises(TraceError, match="text that was drawn from a traced value"):
                grad(read)(x)
