r"""Cures: what to do about each reason for which a traced call is not kept as a program.

Words
-----
reason   what `explain` tells in the words of whoever noted it: ``Reads.problem``, ``Unfit``, ``Tape.once``.
cure     what a person can do about it, in one sentence; by a pattern that the reason contains.

The table is gone through in order, and the first pattern that is found counts. ``tests/tools/test_cures.py`` looks for
a reason in the code that has no cure, and for a pattern that no reason has.
"""

from __future__ import annotations

import re

IN_ARGUMENTS = "pass it to the function as an argument"
COMPUTED_OUTSIDE = "do this before the function is called, and hand over what comes out"
AFTERWARDS = (
    "return what is to be kept, and do this with the result, outside of the differentiated function"
)
PLAIN_LISTS = "use a list, tuple or dict there"
NEW_ARRAY = "write into a copy (np.array(x), x.copy()), or compute a new array in the place of writing into one"
WRITE_A_RULE = "give the function that does it a rule (@wengert.rrule with pure=True), or call something that has one"
MADE_BEFORE = (
    "do this before the call, and hand over the numbers that come out; where it only computes from its arguments, "
    "give what does it a rule (@wengert.rrule with pure=True)"
)
NO_LOOKS = (
    "take the decision by values that are arguments, in the place of looking at how Python runs"
)
# What is called that depends on more than values, by its name: ``id() is used``.
USED = {
    "warnings.warn": "give the warning outside of the function, or mend its cause",
    "id": "compare values in the place of identities; copy.deepcopy asks for them too: copy before the call",
    "setflags": NEW_ARRAY,
    "as_strided": "use slices, reshape or transpose for views",
    "flush": AFTERWARDS,
    "sys.setrecursionlimit": "call it once, outside of the function",
}
RETURNED = "return numbers, arrays, and lists, tuples, dicts or objects of them; make functions and iterators outside"

CURES: tuple[tuple[str, str], ...] = (
    # Iterators, files, and other things outside that change by being looked at
    (r"which each run consumes", f"make a list of it before the call, and {IN_ARGUMENTS}"),
    (
        r"into which no guard looks",
        f"take the numbers out of it before the call, and {IN_ARGUMENTS}",
    ),
    (
        r"is a method of an? .* from outside",
        f"take the numbers out of it before the call, and {IN_ARGUMENTS}",
    ),
    (
        r"is an? \S+ of dtype",
        "make a plain array of numbers of it before the call: np.array(x, float), or x.filled(0.0) of a masked one",
    ),
    (
        r"it gives many numbers",
        "use pullback, or take the Jacobian of fewer results at a time; where calls go one way, nothing",
    ),
    (
        r"C code looks into",
        f"use lists, dicts and arrays in the place of that object, or {IN_ARGUMENTS}; as copy.deepcopy does it from "
        "CPython 3.14 on: copy before the call",
    ),
    (
        r"changed while the function ran",
        "let nothing else (another thread, a callback) change it during the call",
    ),
    (
        r"a gradient by something without one",
        "leave that argument out of argnums: only floats have a gradient, and arrays and containers of them",
    ),
    (r"comes from, of which attributes are read", IN_ARGUMENTS),
    (
        r"may wait, or let other code run",
        "do this before the call, or around it (a lock), or hand over what comes out",
    ),
    (r"calls what is recorded itself", MADE_BEFORE),
    (
        r"the state of a random generator",
        "make a generator of a seed in the function: np.random.default_rng(seed)",
    ),
    (
        r"beside an array",
        "let the compiled function give arrays alone, or numbers alone",
    ),
    (
        r"remembers what it was given for a number",
        "use functools.lru_cache, or a dict that the function makes",
    ),
    (r"what a threading\.local has", IN_ARGUMENTS),
    (r"is changed, and read from outside", "read it after the call, or return the changed one"),
    (
        r"`primitives` decides",
        "give what is to be one operation a rule (@wengert.rrule), which programs know as well",
    ),
    (r"debug=True looks", "leave debug=True out when the line is found"),
    (r"floating-point event of constants", COMPUTED_OUTSIDE),
    (r"decimal numbers are rounded|digits a number may have", "compute with floats"),
    # Exceptions, warnings, logging, imports, debuggers
    (
        r"a generator waits",
        "close it (generator.close()), or run through it, before the function returns",
    ),
    (
        r"from outside is raised",
        "make a new exception where it is raised, in the place of one that is kept: raise ValueError(...)",
    ),
    (
        r"was caught|may be caught",
        "ask before instead of catching afterwards (if x > 0: … in the place of try: math.log(x))",
    ),
    (r"is done between writes", "print or seed before all that is written, or after it"),
    (r"stands in a try or a with", "do this before or after the try or the with statement"),
    (
        r"is told of floating-point events",
        "let them be warnings, or errors, in the calls that are to be kept",
    ),
    (r"is given$|NumPy warns of", "give the warning outside of the function, or mend its cause"),
    (r"NumPy may warn", "compute the constant once, outside of the function"),
    (r"a record is logged", AFTERWARDS),
    (
        r"is imported|are imported|import failed|the import of",
        "import at the top of the module, not inside of the function",
    ),
    (
        r"debugger|breakpointhook",
        "take the breakpoint away; while it is there every call is traced",
    ),
    (r"as in an interactive session", "return the value, and display it outside of the function"),
    (
        r"by which programs are written",
        "leave builtins as they are: give the function another global of that name",
    ),
    (r"is compiled$", "compile it once, outside of the function"),
    (r"an errstate from outside", "write np.errstate(…) into the with statement itself"),
    (r"an errstate is entered over and over", "put the with np.errstate(…) around the loop"),
    (r"error state is changed for good", "use with np.errstate(…) in the place of np.seterr"),
    # What looks at frames, objects' identities and caches
    (r"weak references|weak proxy", "hold the object itself where the function needs it"),
    (r"is used$|share memory$", NO_LOOKS),
    (r"`is` compares", "compare with == in the place of is"),
    (
        r"isinstance asks the class",
        "leave __instancecheck__, __subclasshook__ and __class__ as Python has them; nothing where a library asks so",
    ),
    (r"a method __del__", "leave __del__ away, or make the object outside of the function"),
    (r"lies in memory|into its memory|has written into", NEW_ARRAY),
    (r"a NaN is looked for", "use math.isnan or np.isnan in the place of `in`, index() or count()"),
    (
        r"was not in its lru_cache",
        "nothing: from the second call on it is in the cache (or make the cache larger)",
    ),
    (
        r"the lru_cache of",
        "let the cached function take and return plain values: ints, strings, tuples of them; leave the cache away "
        "where it is called with what is differentiated",
    ),
    (r"_missing_ is the user's|asks a codec of the user's|calls Python code$", COMPUTED_OUTSIDE),
    (
        r"value of another run|pullback of another run",
        "use a pullback in the function that made it, or outside of both",
    ),
    # Containers and objects outside that are changed
    (r"element is popped from a set", "use a list, which has an order"),
    (r"is deleted", "set it to None in the place of deleting it"),
    (
        r"set for the first time, or deleted",
        "give the variable a value before the inner function is made",
    ),
    (r"an array is returned of which", RETURNED),
    (r"nobody knows where", IN_ARGUMENTS),
    (
        r"and nobody knows whose it is",
        "return the value in the place of setting a variable of an enclosing function",
    ),
    (
        r"variable of an enclosing function changed",
        "let only one function set the variable, and return its value",
    ),
    (r"keys have hashes of their own|a dict with traced keys", "use strings or ints as keys"),
    (r"stands at two places", "hand out copies: one object for each place"),
    (r"contains itself|holds itself", "leave the cycle out of what is handed over"),
    (
        r"when the outside has it already|handed to the outside|which is handed outside",
        "write first, and hand it out last; or hand out a copy",
    ),
    (r"OrderedDict", "use a dict, whose attributes nobody sets"),
    (r"__dict__ of a", "use the attributes by their names, or getattr and setattr"),
    (r"an item of an? .* is set", f"{PLAIN_LISTS}, or {AFTERWARDS}"),
    (r"is read where|of .* is set$", "set what the function reads before it is called"),
    (
        r"from outside is changed|is changed in place|keeps a number|"
        r"is changed|C code changes|may change a container|changes an object|cannot be repeated",
        f"{PLAIN_LISTS}, or {AFTERWARDS}",
    ),
    (
        r"what changes an? .* calls back|something else is done while",
        f"{PLAIN_LISTS}, and change it in a statement of its own",
    ),
    (r"what cannot be opened is left behind", AFTERWARDS),
    (
        r"the cell of a variable is used",
        "use the variable in the place of the function's __closure__",
    ),
    # Results
    (r"the result holds a view", "return a copy of it: x.copy()"),
    (r"the result is a function|the result holds a", RETURNED),
    # Functions in C, and rules
    (r"which is not looked into", WRITE_A_RULE),
    (
        r"depends on more than numbers",
        "nothing: it calls a function back as often as it needs, and is traced each time; what does not depend on the "
        "arguments can be computed once, outside",
    ),
    (
        r"depends on more than its arguments",
        "let the rule read nothing but its arguments: pass what else it needs as an argument with a default",
    ),
    (
        r"is not pure: its pullback runs",
        "declare the rule with pure=True, if it only computes from its arguments",
    ),
    (
        r"calls back",
        "give C code no functions that read traced values, or do it with a loop in Python",
    ),
    (r"makes a view of an array", "use slices, reshape or transpose for views"),
    (r"may write into an array", NEW_ARRAY),
    (r"writes into an array behind the run", NEW_ARRAY),
    (r"into an array of another type", "give out= an array of the result's type, or leave it out"),
    (
        r"makes a string|becomes? a string|is printed|shows a dict|counts what it makes",
        "print numbers, lists and dicts, or do it with the result, outside",
    ),
    (r"code that records nothing", WRITE_A_RULE),
    (r"makes a", MADE_BEFORE),
    (r"is given an? .* made by the run|made by the run", WRITE_A_RULE),
    (
        r"may see what was done before it",
        "make this call before anything is printed, written or appended",
    ),
    (r"is called$", COMPUTED_OUTSIDE),
    (
        r"derivative by what is in an argument",
        "use jvp or pullback, or pass lists, tuples and dicts",
    ),
    # Sizes and loops
    (
        r"operations long",
        "nothing, if there will be many more calls; or write loops so that they are rolled (each iteration does the "
        "same; see the reasons below), or use array operations in their place",
    ),
    (r"nested too deep", "use flat lists and arrays in the place of nested ones"),
    (
        r"integer that it computes|depends on its values$",
        "choose by a mask (np.where) in the place of a computed index",
    ),
    (
        r"its derivative is taken inside|depends on their number|is used after it",
        "use np.where in the place of an if in the loop, or a loop without break",
    ),
    (
        r"writes to lists|hold the same list|from one iteration to the next|may depend on what it does",
        "carry numbers and arrays from one iteration to the next, and fill lists by append alone",
    ),
    (r"looks at all variables", "leave locals(), eval and exec out of the loop"),
    (
        r"builds a list, set or dict",
        "fill a list or an array that was made before the loop, by append or by index",
    ),
    (r"that an inner function shares", "pass the variable to the inner function as an argument"),
    (r"may not have a value yet", "give the variable a value before the loop"),
    # Why a loop is not rolled
    (r"it is short", "nothing: a short loop goes faster as it is"),
    (
        r"are unlike the others",
        "do what the first or some iterations do otherwise before the loop, or in one of its own",
    ),
    (r"append", "append once in each iteration, to the same list"),
    (
        r"what an earlier one computed|different values of earlier ones|but no variable holds it",
        "carry it from one iteration to the next in a variable that has a value before the loop",
    ),
    (
        r"what only some of its iterations compute|not all of them use it",
        "compute it in each iteration, or use np.where",
    ),
    (
        r"without a decision|too many different ways",
        "use np.where in the place of the if, or a loop of its own for each way",
    ),
    (
        r"record different operations|use different values",
        "let each iteration do the same with what it carries and x[i]",
    ),
    (r"it writes to the outside", "append to a list, and print or write when the loop has ended"),
    (r"nothing is known of", WRITE_A_RULE),
    (
        r"arrays are written to",
        "write by the counter alone (y[i] = …), or append to a list and make an array of it",
    ),
    (
        r"change their type|changes its type",
        "begin with values of the type and shape that they will have: 0.0, not 0",
    ),
    (
        r"runs at each call",
        "declare the rule with pure=True, if it only computes from its arguments",
    ),
    (
        r"depends on values that change",
        "keep integers that rules look at (axes, sizes, indices) the same in all iterations",
    ),
    (
        r"is used elsewhere|must come by its parts",
        "use what the loop carries when it has ended, and collect the rest in a list",
    ),
    (
        r"an error of Wengert's own",
        "report it, with the function; the gradient itself is right, and traced",
    ),
)


def cure_of(reason: str) -> str | None:
    """What to do about a reason; None where the reason itself says so, as errors of rules do."""
    used = re.search(r"([\w.]+)(\(\))? is used$", reason)
    if used is not None and used[1] in USED:
        return USED[used[1]]
    return next((cure for pattern, cure in CURES if re.search(pattern, reason)), None)
