"""Access and setup times of memory macros by words, bits and ports.

A read decodes its address and then drives the lines of the array, whose cells are those of
:mod:`synth.sram.area`, folded to a square::

    ns at 28 nm = DECODE_NS * log2(words) + LINE_NS_PER_UM * sqrt(cell area * bits in all)

A decoder takes about one gate with a fan-out of four for each bit of the address, 11 ps at 28 nm.
The lines' constant is the remainder of the 0.19 ns that the thesis gives for a bank of the
scratchpad (512 x 8, 3R2W; section 5.1, from CACTI). One figure calibrates the model, so there is
no error of a fit to show. Both parts are about equal for that bank, 0.10 and 0.09 ns, as in usual
memory designs. Times grow with the node's feature size.
"""

from dataclasses import dataclass
from math import log2, sqrt

from hdl.sram_macro import SramGeometry

from .area import cell_um2

__all__ = ["SramTimes"]

_DECODE_NS = 0.011
_LINE_NS_PER_UM = 0.0011
#: Node of the constants above, in nm.
_NODE_NM = 28.0
#: Setup time of an address, as a fraction of the access time.
_SETUP_SHARE = 0.25


@dataclass(frozen=True)
class SramTimes:
    """Times of memory macros at a node.

    Attributes:
        node_nm: feature size in nm.
        drive_ns_per_ff: how much later an output comes for each fF of load, ns.
        corner: times of all, as a multiple of those at the typical corner.
    """

    node_nm: float
    drive_ns_per_ff: float = 0.0012
    corner: float = 1.0

    def access_ns(self, geometry: SramGeometry) -> float:
        """From the clock to the word at the output, without load."""
        lines = sqrt(cell_um2(geometry) * geometry.bits)
        at_28 = _DECODE_NS * log2(geometry.depth) + _LINE_NS_PER_UM * lines
        return self.corner * at_28 * self.node_nm / _NODE_NM

    def setup_ns(self, geometry: SramGeometry) -> float:
        """From address, enable and data to the clock."""
        return _SETUP_SHARE * self.access_ns(geometry)

    def drive(self, access_ns: float, load_ff: float) -> tuple[float, float]:
        """Arrival and slew in ns of an output with a load: the output buffer of a macro is as
        strong as a large cell."""
        later = self.corner * self.drive_ns_per_ff * load_ff
        return access_ns + later, 0.01 + later
