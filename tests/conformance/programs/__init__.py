"""Random programs of a wide grammar, in a world that changes between their calls: plain Python against the engine.

    python -m tests.conformance.programs --count 20000 --seed 0 --jobs 2

A seed makes a program (`plan`): the text of a module with a function `f` (`writer` fills the templates of `grammar` and
of the `pieces` its world is made of) and a plan of calls and changes. It is played (`play`) in plain Python and in
every mode of the engine (`ways`); the `oracle` compares what they did (`pictures`), and the gradients with those of
other modes and with differences of plain Python (`moves`). A program that differs is made smaller (`shrink`) before it
is printed. `batches` does this for many programs, in processes of their own.
"""
