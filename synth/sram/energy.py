"""Energy of memory macros by words, bits and ports.

An access drives the lines of one word through an array whose cells are those of
:mod:`synth.sram.area`, folded to a square::

    fJ at 45 nm and 0.9 V = ACCESS_FJ_PER_UM * bits of a word * sqrt(cell um2 at 28 nm * all bits)

The constant is the geometric mean of published figures at 45 nm, :data:`PUBLISHED`: cache accesses
of 64 bits from M. Horowitz, "Computing's energy problem", ISSCC 2014, and the register file of
S. Han et al., "Learning both weights and connections for efficient neural networks", NIPS 2015. The
thesis gives no energies. Reading and writing cost the same. Energies grow with the node and with
the square of the supply.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log, sqrt

from hdl.sram_macro import SramGeometry

from .area import cell_um2, sram_um2

__all__ = ["ACCESS_FJ_PER_UM", "PUBLISHED", "SramEnergies"]

#: Name of a memory -> shape and pJ of an access at 45 nm and 0.9 V. The single port of a cache
#: counts as a read port.
PUBLISHED: Mapping[str, tuple[SramGeometry, float]] = {
    "cache of 8 KiB, 64 bits": (SramGeometry(1 << 10, 64, 1, 0), 10.0),
    "cache of 32 KiB, 64 bits": (SramGeometry(1 << 12, 64, 1, 0), 20.0),
    "cache of 1 MiB, 64 bits": (SramGeometry(1 << 17, 64, 1, 0), 100.0),
    "register file of 32 x 32 bits": (SramGeometry(32, 32, 2, 1), 1.0),
}
_NODE_NM = 45.0
_VOLTS = 0.9
#: Leakage of a macro beside that of NAND gates on its area: its cells are small and of a high
#: threshold. An assumption, of no weight in the total.
_LEAKAGE_SHARE = 0.1


def _length(geometry: SramGeometry) -> float:
    """Bits of a word times the side of the array in um at 28 nm."""
    return geometry.width * sqrt(cell_um2(geometry) * geometry.bits)


#: fJ of an access at 45 nm and 0.9 V for each bit of the word and um of the array's side at 28 nm.
ACCESS_FJ_PER_UM = exp(
    sum(log(1000 * pj / _length(geometry)) for geometry, pj in PUBLISHED.values()) / len(PUBLISHED)
)


@dataclass(frozen=True)
class SramEnergies:
    """Energies of memory macros at a node.

    Attributes:
        node_nm: feature size in nm. volts: supply.
    """

    node_nm: float = _NODE_NM
    volts: float = _VOLTS

    def access_fj(self, geometry: SramGeometry) -> float:
        """One read or write at one port, in fJ."""
        scale = self.node_nm / _NODE_NM * (self.volts / _VOLTS) ** 2
        return scale * ACCESS_FJ_PER_UM * _length(geometry)

    def leakage_nw(self, geometry: SramGeometry, gate_nw: float, gate_um2: float) -> float:
        """Leakage in nW, beside gates that leak ``gate_nw`` on ``gate_um2`` at the same node."""
        um2 = sram_um2(geometry) * (self.node_nm / 28.0) ** 2
        return _LEAKAGE_SHARE * gate_nw * um2 / gate_um2
