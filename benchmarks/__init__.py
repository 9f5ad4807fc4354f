"""The benchmark suite: Wengert beside hand-written gradients and its peers, interleaved in one run.

    python -m benchmarks

program      a *program* is a function that somebody might write, with arguments, and its gradient written by hand
contender    whoever computes value and gradient of a program: Wengert, the hand-written code (H), a peer
sample       one timing: a contender called a number of times in a row, long enough for the clock
round        one sample of every contender, so that all see the same machine
ratio        seconds of a contender over seconds of H, round by round; tables show the median

`README.md` beside this file says how to read the tables.
"""
