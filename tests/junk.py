"""Values of wrong types and extreme sizes, for tests that refuse them."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    5,
    1 << 20,
    1 << 70,
    -(1 << 70),
    10**5000,
    1.0,
    2.5,
    float("nan"),
    float("inf"),
    "",
    "3",
    "x\ny",
    b"\0",
    (),
    (3, 1),
    [],
    [1],
    {},
    {"a": 1},
    frozenset(),
    object(),
    int,
    np.int64(3),
    np.zeros((2, 2), np.int16),
)

#: One of them.
JUNK = st.sampled_from(_VALUES)
#: The same without large numbers, for sizes that have no limit and take time and memory.
SMALL_JUNK = st.sampled_from(
    [value for value in _VALUES if type(value) is not int or -9 < value < 9]
)
