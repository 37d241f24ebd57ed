"""Area, energy and timing of memory macros by words, bits and ports.

Area
----
The cell of a memory with ``p`` ports grows in both directions with each port's word line and bit
lines, and each port has a sense amplifier or write driver for each bit of the word::

    um2 = (CELL_PITCH_UM * (p + CELL_BASE)) ** 2 * words * bits + COLUMN_UM2 * p * bits

The three constants follow from the three memories of thesis Table 7.4 (28 nm), minus our logic
around them at 0.5 um2 per gate: scratchpad 68,061 um2 (eight of 512 x 8, 3R2W), register file
15,079 (64 x 64, 3R1W), instruction buffer 16,706 (1024 x 32, 1R1W). Three points determine them
exactly. As a plausibility check, a single port gives 0.196 um2 per bit, which is the usual
0.127 um2 of a 28 nm six-transistor cell at 65 % array efficiency.

Energy
------
An access drives the lines of one word through an array of cells of :func:`cell_um2`, folded to a
square::

    fJ at 45 nm and 0.9 V = ACCESS_FJ_PER_UM * bits of a word * sqrt(cell um2 at 28 nm * all bits)

The constant is the geometric mean of published figures at 45 nm, :data:`PUBLISHED`: cache accesses
of 64 bits from M. Horowitz, "Computing's energy problem", ISSCC 2014, and the register file of
S. Han et al., "Learning both weights and connections for efficient neural networks", NIPS 2015. The
thesis gives no energies. Reading and writing cost the same. Energies scale with the node and the
square of the supply.

Timing
------
A read decodes its address and then drives the lines of the array of cells of :func:`cell_um2`,
folded to a square::

    ns at 28 nm = DECODE_NS * log2(words) + LINE_NS_PER_UM * sqrt(cell area * bits in all)

A decoder takes about one gate with a fan-out of four per bit of the address, 11 ps at 28 nm. The
lines' constant is the remainder of the 0.19 ns that the thesis gives for a bank of the scratchpad
(512 x 8, 3R2W; section 5.1, from CACTI). A single figure calibrates the model, so there is no fit
error to report. For that bank both parts are about equal, 0.10 and 0.09 ns, as is usual in memory
designs. Times scale with the node's feature size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, log2, sqrt

from hdl.sram_macro import SramGeometry

#: Area of a gate equivalent at 28 nm with usual utilisation, in square micrometres.
GATE_UM2 = 0.5

_CELL_PITCH_UM = 0.2138
_CELL_BASE = 1.073
_COLUMN_UM2 = 40.08


def cell_um2(geometry: SramGeometry) -> float:
    """Area of the cell of one bit at 28 nm in square micrometres."""
    return (_CELL_PITCH_UM * (geometry.ports + _CELL_BASE)) ** 2


def sram_um2(geometry: SramGeometry) -> float:
    """Area of a memory macro at 28 nm in square micrometres."""
    return cell_um2(geometry) * geometry.bits + _COLUMN_UM2 * geometry.ports * geometry.width


#: Name of a memory -> shape, and pJ per access at 45 nm and 0.9 V. The single port of a cache
#: counts as a read port.
PUBLISHED: Mapping[str, tuple[SramGeometry, float]] = {
    "cache of 8 KiB, 64 bits": (SramGeometry(1 << 10, 64, 1, 0), 10.0),
    "cache of 32 KiB, 64 bits": (SramGeometry(1 << 12, 64, 1, 0), 20.0),
    "cache of 1 MiB, 64 bits": (SramGeometry(1 << 17, 64, 1, 0), 100.0),
    "register file of 32 x 32 bits": (SramGeometry(32, 32, 2, 1), 1.0),
}
_ENERGY_NODE_NM = 45.0
_VOLTS = 0.9
#: Leakage of a macro relative to that of NAND gates on the same area: its cells are small and have
#: a high threshold. This is an assumption, with little effect on the total.
_LEAKAGE_SHARE = 0.1


def _length(geometry: SramGeometry) -> float:
    """Bits of a word times the side of the array in um at 28 nm."""
    return geometry.width * sqrt(cell_um2(geometry) * geometry.bits)


#: fJ per access at 45 nm and 0.9 V per bit of the word and um of the array's side at 28 nm.
ACCESS_FJ_PER_UM = exp(
    sum(log(1000 * pj / _length(geometry)) for geometry, pj in PUBLISHED.values()) / len(PUBLISHED)
)


def access_fj(
    geometry: SramGeometry, node_nm: float = _ENERGY_NODE_NM, volts: float = _VOLTS
) -> float:
    """One read or write at one port of a macro, in fJ.

    Parameters:
        node_nm: feature size in nm. volts: supply.
    """
    scale = node_nm / _ENERGY_NODE_NM * (volts / _VOLTS) ** 2
    return scale * ACCESS_FJ_PER_UM * _length(geometry)


def leakage_nw(geometry: SramGeometry, node_nm: float, gate_nw: float, gate_um2: float) -> float:
    """Leakage of a macro in nW, given gates that leak ``gate_nw`` on ``gate_um2`` at the node."""
    um2 = sram_um2(geometry) * (node_nm / 28.0) ** 2
    return _LEAKAGE_SHARE * gate_nw * um2 / gate_um2


_DECODE_NS = 0.011
_LINE_NS_PER_UM = 0.0011
#: Additional delay of an output in ns per fF of load.
_DRIVE_NS_PER_FF = 0.0012
#: Node of the constants above, in nm.
_TIMING_NODE_NM = 28.0
#: Setup time of an address, as a fraction of the access time.
_SETUP_SHARE = 0.25


@dataclass(frozen=True)
class SramTimes:
    """Times of memory macros at a node.

    Attributes:
        node_nm: feature size in nm.
        corner: factor for all times, relative to the typical corner.
    """

    node_nm: float
    corner: float = 1.0

    def access_ns(self, geometry: SramGeometry) -> float:
        """Time from the clock to the word at the output, without load."""
        lines = sqrt(cell_um2(geometry) * geometry.bits)
        at_28 = _DECODE_NS * log2(geometry.depth) + _LINE_NS_PER_UM * lines
        return self.corner * at_28 * self.node_nm / _TIMING_NODE_NM

    def setup_ns(self, geometry: SramGeometry) -> float:
        """Setup time of address, enable and data before the clock."""
        return _SETUP_SHARE * self.access_ns(geometry)

    def drive(self, access_ns: float, load_ff: float) -> tuple[float, float]:
        """Arrival and slew in ns of a loaded output; the output buffer of a macro is as strong as a
        large cell."""
        later = self.corner * _DRIVE_NS_PER_FF * load_ff
        return access_ns + later, 0.01 + later
