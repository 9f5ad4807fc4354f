"""Functions of types and shapes alone, answered at once."""

from __future__ import annotations

import numpy as np

from .registry import query

query(len)
query(np.shape, np.ndim, np.size, np.isscalar, np.iterable, np.isfortran)
query(np.iscomplexobj, np.isrealobj)
query(np.result_type, np.can_cast, np.promote_types, np.min_scalar_type, np.common_type)
query(np.broadcast_shapes, np.may_share_memory, np.shares_memory)
query(vars(np.vectorize)["__init__"].__globals__["_parse_input_dimensions"])
