"""What is known of CPython's own tests: which files are run, what is beyond the tracer, what differs or is refused.

The tables are exact for the ten quick files, which every run of the tests goes through: what is not there fails, and
so does an entry that no longer holds. A pattern is one of `fnmatch` on ``file.Class.method``; ``@3.12`` behind it
limits it to that version, ``@3.12+`` to it and later ones.
"""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import sys
from typing import Any

FILES = """
test_abc test_abstract_numbers test_argparse test_array test_augassign test_base64 test_baseexception test_binascii
test_binop test_bisect test_bool test_builtin test_bytes test_calendar test_call test_class test_cmath
test_collections test_colorsys test_compare test_complex test_configparser test_contains test_contextlib test_copy
test_copyreg test_csv test_dataclasses test_datetime test_decimal test_decorators test_defaultdict test_deque
test_descr test_dict test_dictcomps test_dictviews test_difflib test_dynamic test_dynamicclassattribute
test_enum test_enumerate test_except_star test_exception_group test_exception_hierarchy
test_exception_variations test_exceptions test_extcall test_float test_flufl test_fnmatch test_format test_fractions
test_frame test_fstring test_funcattrs test_functools test_generator_stop test_generators test_genericalias
test_genericclass test_genexps test_getopt test_global test_grammar test_graphlib test_hash test_heapq test_html
test_index test_int test_int_literal test_ipaddress test_isinstance test_iter test_iterlen test_itertools test_json
test_keyword test_keywordonlyarg test_list test_listcomps test_long test_longexp test_math test_math_property
test_memoryview test_metaclass test_module test_named_expressions test_numeric_tower test_opcodes test_operator
test_ordered_dict test_patma test_pep646_syntax test_positional_only_arg test_pow test_pprint test_print
test_property test_queue test_quopri test_raise test_random test_range test_re test_reprlib test_richcmp test_sched
test_scope test_secrets test_set test_setcomps test_shlex test_slice test_sort test_statistics test_str test_string
test_string_literals test_strtod test_struct test_structseq test_subclassinit test_super test_syntax test_textwrap
test_tokenize test_tomllib test_tuple test_type_aliases test_type_annotations test_type_params test_typechecks
test_types test_typing test_unary test_unicode_identifiers test_unpack test_unpack_ex test_unparse test_urlparse
test_userdict test_userlist test_userstring test_uuid test_weakref test_weakset test_with test_yield_from
""".split()

QUICK = """
test_class test_compare test_contextlib test_dataclasses test_fractions test_generators test_list test_operator
test_patma test_scope
""".split()

# What says nothing about a tracer of Python code, by what the source of a method says.
MARKS = {
    r"getrefcount|gettotalrefcount": "counts references",
    r"is_tracked|_not_tracked|assertTracked": "asks what the garbage collector tracks",
    r"getsizeof|check_sizeof|calcobjsize": "sizes of objects in memory",
    r"\bdis\.|co_code\b|get_opcodes|BytecodeTestCase|assertInBytecode": "looks at bytecode",
    r"_testcapi|_testinternalcapi|_testlimitedcapi|ctypes": "needs CPython's C API",
    r"assert_python_|subprocess|spawn_python|get_output\(|run_cmd|get_hash\(": "runs another process",
}
# The same by the name of the method.
OUT_OF_REACH: dict[str, str] = {}

# Why something is refused, by what the refusal says.
REFUSALS = {
    r"eval and exec cannot be traced": "eval and exec",
    r"looks at the variables of the function that calls it": "locals() and vars() of a class body",
    r"asynchronous code|is an async function": "asynchronous functions",
    r"has work done in another thread": "threads",
    r"into which no gradient can be followed|takes a traced number apart": "numbers from outside in opaque objects",
    r"which could not be traced, with a traced value|reached code that cannot record it": "C code that looks inside",
}

# What is refused or differs in the quick files, by cause.
KNOWN = {
    "asynchronous functions": """
        test_generators.GeneratorTest.test_ag_frame_f_back
        test_generators.GeneratorTest.test_cr_frame_f_back""",
    "recursion that C code stops": """
        test_list.ListTest.test_repr_deep@3.11 test_list.ListTest.test_repr_deep@3.13+""",
}


def present(files: list[str]) -> list[str]:
    """Those of the files that the running interpreter has."""
    return [x for x in files if importlib.util.find_spec(f"test.{x}") is not None]


def out_of_reach(name: str, mark: str | None) -> str | None:
    """Why a method says nothing about the tracer, if it does not."""
    if mark is not None:
        return MARKS[mark]
    return next(
        (why for pattern, why in OUT_OF_REACH.items() if fnmatch.fnmatchcase(name, pattern)), None
    )


def cause(method: Any) -> str | None:
    """Why a method that does not pass is known not to."""
    for pattern, why in entries():
        if fnmatch.fnmatchcase(method.name, pattern):
            return why
    if method.verdict == "refused" and method.file not in QUICK:
        return next(
            (why for text, why in REFUSALS.items() if re.search(text, method.message)), None
        )
    return None


def entries() -> list[tuple[str, str]]:
    """The patterns of this version and their causes."""
    found = []
    for why, text in KNOWN.items():
        for entry in text.split():
            pattern, _, versions = entry.partition("@")
            if applies(versions):
                found.append((pattern, why))
    return found


def applies(versions: str) -> bool:
    if not versions:
        return True
    asked = tuple(map(int, versions.rstrip("+").split(".")))
    return sys.version_info[:2] == asked or (
        versions.endswith("+") and sys.version_info[:2] > asked
    )
