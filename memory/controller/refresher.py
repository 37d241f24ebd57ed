"""The schedule of refreshes."""

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import Out

from hdl.component import Component
from memory.config import VaultConfig


def refresh_phase(config: VaultConfig, bank: int) -> int:
    """Cycle after reset in which the first refresh of ``bank`` is due; the next follow every tREFI.

    The banks' phases are spread evenly, so few refresh at once.
    """
    return config.timing.trefi * bank // config.banks


class Refresher(Component):
    """Reports once in tREFI cycles that a bank owes a refresh, for one bank after the other.

    Members:
        due (out, banks): one bit for each bank, 1 for one cycle.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        super().__init__({"due": Out(config.banks)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        last = self.config.timing.trefi - 1
        cycle = Signal(range(last + 1))
        m.d.sync += cycle.eq(Mux(cycle == last, 0, cycle + 1))
        m.d.comb += self.due.eq(
            Cat(cycle == refresh_phase(self.config, bank) for bank in range(self.config.banks))
        )
        return m
