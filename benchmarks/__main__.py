"""One thread for everybody: what says so must be set before the libraries are loaded."""

import os
from importlib import import_module

POOLS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")

os.environ.update({f"{pool}_NUM_THREADS": "1" for pool in POOLS})
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
if hasattr(os, "sched_setaffinity"):  # XLA minds nothing else
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import_module("benchmarks.compare").main()
