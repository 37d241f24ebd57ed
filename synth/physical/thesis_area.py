"""The thesis's area of an engine (Table 7.4, 28 nm, after place and route), and ours beside it."""

from collections.abc import Mapping
from dataclasses import dataclass

from .area import AreaReport

__all__ = ["TABLE_7_4", "Beside", "beside_thesis"]

#: Component -> um2.
TABLE_7_4: Mapping[str, float] = {
    "Fetch": 16892.0,
    "Decode": 990.0,
    "Register File": 15944.0,
    "Issue": 2147.0,
    "ARC": 5365.0,
    "Scalar": 2547.0,
    "Vector-control": 554.0,
    "Vector-vertical": 16355.0,
    "Vector-horizontal": 5030.0,
    "Scratchpad": 69661.0,
    "Load-store": 3274.0,
    "Other": 1832.0,
}

#: Unit of VIP -> component; all others are in "Other".
_COMPONENT = {
    "fetch": "Fetch",
    "decode": "Decode",
    "register_file": "Register File",
    "operands": "Issue",
    "issue": "Issue",
    "dispatch": "Issue",
    "arc": "ARC",
    "scalar": "Scalar",
    "vector_control": "Vector-control",
    "vector_vertical": "Vector-vertical",
    "vector_horizontal": "Vector-horizontal",
    "vector_finish": "Vector-horizontal",
    "scratchpad": "Scratchpad",
    "load_store": "Load-store",
}


@dataclass(frozen=True)
class Beside:
    """A component: um2 at 28 nm in the thesis and in VIP, and the part of VIP's in memories."""

    component: str
    thesis: float
    ours: float
    memories: float


def beside_thesis(report: AreaReport) -> tuple[Beside, ...]:
    """Our area in the thesis's components, in its order.

    Parameters:
        report: of all units, for the target ``generic``, whose areas are at 28 nm.
    """
    ours = dict.fromkeys(TABLE_7_4, 0.0)
    memories = dict.fromkeys(TABLE_7_4, 0.0)
    for row in report.rows:
        component = _COMPONENT.get(row.unit, "Other")
        ours[component] += row.values["area_um2"]
        memories[component] += row.values["sram_um2"]
    return tuple(
        Beside(name, thesis, ours[name], memories[name]) for name, thesis in TABLE_7_4.items()
    )
