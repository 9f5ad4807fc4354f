"""Runs the methods of one file of CPython's tests, plainly or traced, and writes a line of JSON for each.

    echo '{"file": "test_list", "how": "plain", "calls": 1, "done": [], "only": null}' | python -P cpython_worker.py

`unittest` does what it always does: fixtures, clean-up, skipping and subtests are its own and run plainly. Only the
call of the method itself goes through the tracer, as the body of a function of one number that is differentiated.
"""

import doctest
import faulthandler
import inspect
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import unittest

LINES = 40  # of a traceback
UNTRACED = "its decorator belongs to a module whose functions are run as they are"
MEMORY = 6 << 30


def main(task):
    """Run what the task asks for; it is ended from outside when a method takes too long."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process: see Result.startTest
    faulthandler.enable()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        os.chdir(place)
        tell(out, ready=task["file"])
        methods, others = methods_of(task["file"])
        tell(out, others=others, marked=marked(methods, task.get("marks", [])))
        left_out = {*task["done"]}
        chosen = [
            test
            for name, test in methods.items()
            if name not in left_out and (task["only"] is None or name in task["only"])
        ]
        if task["how"] != "plain":
            trace_methods(task["how"], task["calls"])
        elif task["calls"] > 1:
            unittest.TestCase._callTestMethod = repeatedly(task["calls"])
        unittest.TestSuite(chosen).run(
            Result(out, {id(x): name for name, x in methods.items()}, task.get("limit", 60.0))
        )
        tell(out, finished=True)
        os._exit(0)  # threads and finalizers of a test are of no interest any more


def tell(out, **what):
    print(json.dumps(what), file=out, flush=True)


def methods_of(file):
    """The test methods of a file by name, and how many tests are something else."""
    from test import support

    support.use_resources = []  # no network, no display, nothing large
    support.verbose = 0
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{file}")
    except unittest.SkipTest as why:
        return {}, {f"the file is skipped: {why}": 1}
    found, others = {}, {}
    for test in flat(suite):
        kind = kind_of(test)
        if kind is not None:
            others[kind] = others.get(kind, 0) + 1
            continue
        name = plain_name = test.id().removeprefix("test.")
        count = 1
        while name in found:  # the same class under another name, or made twice
            count += 1
            name = f"{plain_name}#{count}"
        found[name] = test
    return found, others


def marked(methods, marks):
    """By name of a method, the first of these expressions that its source contains."""
    found = {}
    for name, test in methods.items():
        try:
            source = inspect.getsource(inspect.unwrap(getattr(test, test._testMethodName)))
        except (OSError, TypeError):
            continue
        mark = next((mark for mark in marks if re.search(mark, source)), None)
        if mark is not None:
            found[name] = mark
    return found


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def kind_of(test):
    """What a test is, unless it is a method of a class."""
    if isinstance(test, doctest.DocTestCase):
        return "doctest"
    if isinstance(test, unittest.IsolatedAsyncioTestCase):
        return "asyncio"
    if not isinstance(test, unittest.TestCase) or type(test).__module__.startswith("unittest"):
        return "not a method (a file that cannot be imported, a function)"
    return None


class Result(unittest.TestResult):
    """Writes down what comes of each method."""

    def __init__(self, out, names, limit):
        super().__init__()
        self.out, self.names, self.limit = out, names, limit
        self.found, self.start = [], 0.0

    def startTest(self, test):
        self.found = []
        tell(self.out, begin=self.names[id(test)])
        signal.setitimer(
            signal.ITIMER_PROF, self.limit
        )  # seconds of work, however busy the machine is
        self.start = time.perf_counter()

    def stopTest(self, test):
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.perf_counter() - self.start
        bad = [x for x in self.found if x["outcome"] == "failed"]
        last = (bad or self.found or [{"outcome": "passed"}])[0]
        tell(self.out, end=self.names[id(test)], seconds=round(seconds, 4), **last)
        self.found = []

    def note(self, outcome, **more):
        self.found.append({"outcome": outcome, **more})

    def addSuccess(self, test):
        self.note("passed")

    def addError(self, test, error):
        self.note("failed", **described(error[1]))

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.note("failed", **described(error[1]))

    def addSkip(self, test, reason):
        self.note("skipped", message=reason)

    def addExpectedFailure(self, test, error):
        if refusal_in(error[1]) is None:
            self.note("passed")
        else:
            self.addError(test, error)

    def addUnexpectedSuccess(self, test):
        self.note("failed", kind="UnexpectedSuccess", message="", traceback="", refused=False)


def described(error):
    refusal = refusal_in(error)
    shown = error if refusal is None else refusal
    lines = "".join(traceback.format_exception(error)).splitlines()
    bodies = [
        i
        for i, line in enumerate(lines)
        if i and line.strip() == "method()" and __file__ in lines[i - 1]
    ]
    text = lines[bodies[-1] + 1 if bodies else 0 :]  # the frames of the method itself
    return {
        "kind": type(shown).__name__,
        "message": str(shown),
        "refused": refusal is not None,
        "traceback": "\n".join(text[-LINES:]),
    }


def refusal_in(error):
    """The first refusal among an exception and those that it came from."""
    try:
        from wengert import WengertError
    except ImportError:
        return None
    seen = []
    while error is not None and all(error is not x for x in seen):
        if isinstance(error, WengertError):
            return error
        seen.append(error)
        error = error.__cause__ or error.__context__
    return None


def repeatedly(calls):
    """How a method is run plainly where the traced one is called more than once."""

    def run(self, method):
        for _ in range(calls):
            method()

    return run


def trace_methods(how, calls):
    """Have `unittest` run the test methods through the tracer; `how`: "traced" or "jit"."""
    from wengert import jit, pullback

    def run(self, method):
        def body(x):
            method()
            return x * x

        body.__code__ = body.__code__.replace(co_name=self.id())  # a function of its own
        for _ in range(calls):
            with jit(how == "jit"):
                value, back = pullback(body, 1.5)
            assert value == 2.25 and back(1.0) == (3.0,), (value, back(1.0))
        if not was_traced(method):
            self.skipTest(UNTRACED)

    unittest.TestCase._callTestMethod = run


def was_traced(method):
    """Whether a method's own code ran instrumented: what wraps it may be run as it is (a patch of `unittest.mock`)."""
    from wengert.tracer import rewrite

    code = inspect.unwrap(getattr(method, "__func__", method)).__code__
    return any(twin.original() is code for twin in list(rewrite._twins.values()))


if __name__ == "__main__":
    main(json.load(sys.stdin))
