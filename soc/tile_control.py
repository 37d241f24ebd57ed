"""The control bus's end in a vault's tile."""

from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.counters import COUNTER_BITS
from hdl.ports import ControlPort
from memory.counters import INDEX_BITS as VAULT_INDEX_BITS

from .control_bus import INDEX_BITS, ControlLink
from .register_map import MAX_COUNTERS

__all__ = ["NETWORK_INDEX_BITS", "TileControl"]

#: Bits of the number of a network counter.
NETWORK_INDEX_BITS = (MAX_COUNTERS - 1).bit_length()


class TileControl(Component):
    """Does what messages of the control bus ask of the processing engines (PEs) of a tile, reads
    the counters of the tile, and passes every message on (:mod:`soc.control_bus`).

    A message moves on in one cycle, a read that concerns this tile in four. Nothing waits for a PE:
    what a PE can't do at once is answered with SLVERR.

    Parameters:
        pe: configuration of the PEs.
        pes: how many.

    Members:
        input: :class:`soc.control_bus.ControlLink`, in, from the tile before or the host.
        output: :class:`soc.control_bus.ControlLink`, out.
        control: array of ``pes`` :class:`hdl.ports.ControlPort`, in (seen from the engine, so that
            ``connect(m, tile_control.control[slot], pe.control)`` joins them).
        vault: in; index of this vault in the chip.
        first_pe: in; index in the chip of the PE in slot 0, which the others follow.
        vault_counter_index: out; which :class:`memory.counters.VaultCounter` to read.
        vault_counter_value: in; one or two cycles after.
        network_counter_index: out; which counter of the network's node to read.
        network_counter_value: in; one or two cycles after.
    """

    def __init__(self, *, pe: PeConfig, pes: int) -> None:
        self.pe = pe
        self.pes = pes
        super().__init__(
            {
                "input": In(ControlLink()),
                "output": Out(ControlLink()),
                "control": In(ControlPort(pe)).array(pes),
                "vault": In(INDEX_BITS),
                "first_pe": In(INDEX_BITS),
                "vault_counter_index": Out(VAULT_INDEX_BITS),
                "vault_counter_value": In(COUNTER_BITS),
                "network_counter_index": Out(NETWORK_INDEX_BITS),
                "network_counter_value": In(COUNTER_BITS),
            }
        )
