"""Area of memory macros by words, bits and ports.

The cell of a memory with ``p`` ports grows in both directions with each port's word line and bit
lines, and each port has a sense amplifier or write driver for each bit of the word::

    um2 = (CELL_PITCH_UM * (p + CELL_BASE)) ** 2 * words * bits + COLUMN_UM2 * p * bits

The three constants are solved from the three memories of thesis Table 7.4 (28 nm), less our logic
around them at 0.5 um2 a gate: scratchpad 68,061 um2 (eight of 512 x 8, 3R2W), register file 15,079
(64 x 64, 3R1W), instruction buffer 16,706 (1024 x 32, 1R1W). Three points leave no error to show.
A plausibility check is its value for a single port: 0.196 um2 a bit, which is the usual 0.127 um2
of a 28 nm six-transistor cell at 65 % array efficiency.
"""

from hdl.sram_macro import SramGeometry

__all__ = ["GATE_UM2", "cell_um2", "sram_um2"]

#: Area of a gate equivalent at 28 nm with usual utilisation, in square micrometres.
GATE_UM2 = 0.5

_CELL_PITCH_UM = 0.2138
_CELL_BASE = 1.073
_COLUMN_UM2 = 40.08


def cell_um2(geometry: SramGeometry) -> float:
    """Area of a bit's cell at 28 nm in square micrometres."""
    return (_CELL_PITCH_UM * (geometry.read_ports + geometry.write_ports + _CELL_BASE)) ** 2


def sram_um2(geometry: SramGeometry) -> float:
    """Area of a memory macro at 28 nm in square micrometres."""
    ports = geometry.read_ports + geometry.write_ports
    return cell_um2(geometry) * geometry.bits + _COLUMN_UM2 * ports * geometry.width
