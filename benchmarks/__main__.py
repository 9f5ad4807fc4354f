"""One thread for everybody: the libraries read these names when they are loaded, so they are set first."""

import os
from importlib import import_module

POOLS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")

os.environ.update({f"{pool}_NUM_THREADS": "1" for pool in POOLS})
os.environ["VECLIB_MAXIMUM_THREADS"] = "1"
os.environ["NPROC"] = "1"  # XLA's thread pools
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
os.environ["JAX_PLATFORMS"] = "cpu"

import_module("benchmarks.compare").main()
