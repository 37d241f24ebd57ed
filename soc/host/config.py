"""Configuration of the host port: its view of the chip."""

from dataclasses import dataclass, field

from hdl.config import ConfigurationError
from pe.config import PeConfig
from support.checks import Checks

from .register_map import GROUP_PES, MAX_COUNTERS, MAX_PES, MAX_PROGRAM_WORDS, MAX_VAULTS

#: Byte address width of the host's AXI4 port: wider than any chip's, so that addresses beyond the
#: DRAM exist and are refused.
HOST_ADDRESS_BITS = 48
#: Bits of a base: addresses of any processor's bus.
BASE_BITS = 64
#: No AXI burst crosses a multiple of this (AMBA AXI, A3.4.1).
PAGE_BYTES = 4096

_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class HostConfig:
    """The properties of the chip that the host port depends on.

    Attributes:
        pe: of every processing engine (PE); ``pe.address_bits`` are those of the chip, or at most
            those of a vault for engines that reach no other.
        columns, rows: vaults of a row, and rows; at most 1024 vaults together.
        pes: PEs of a vault; at most 1024 in the chip.
        vault_address_bits: bits of a byte address within a vault, at least 12.
        tag_bits: tag width of the host's memory port, 2..8. Half of the tags are for reads.
        id_bits: width of AXI identifiers, 1..16.
        vault_counters: whether the vaults have counters.
        network_counters: counters of a vault's node, 0..32.
        bases: whether registers say where each vault's memory begins on its bus.

    Raises:
        ConfigurationError: a value outside its range, or ``pe.address_bits`` that do not fit the
            vaults.
    """

    pe: PeConfig
    columns: int
    rows: int
    pes: int
    vault_address_bits: int
    tag_bits: int = 6
    id_bits: int = 4
    vault_counters: bool = True
    network_counters: int = 0
    bases: bool = field(default=False, metadata={"optional": True})

    def __post_init__(self) -> None:
        _CHECK.kind("pe", self.pe, PeConfig)
        for name, low, high in (
            ("columns", 1, MAX_VAULTS),
            ("rows", 1, MAX_VAULTS),
            ("pes", 1, MAX_PES),
            ("vault_address_bits", (PAGE_BYTES - 1).bit_length(), 40),
            ("tag_bits", 2, 8),
            ("id_bits", 1, 16),
            ("network_counters", 0, MAX_COUNTERS),
        ):
            _CHECK.within(name, getattr(self, name), low, high)
        _CHECK.flag("vault_counters", self.vault_counters)
        _CHECK.flag("bases", self.bases)
        if self.vaults > MAX_VAULTS:
            raise ConfigurationError(
                f"columns times rows must be at most {MAX_VAULTS}, not {self.vaults}"
            )
        if self.pe_count > MAX_PES:
            raise ConfigurationError(
                f"a chip has at most {MAX_PES} PEs, not {self.vaults} vaults of {self.pes}"
            )
        bits = self.pe.address_bits
        if bits != self.address_bits and bits > self.vault_address_bits:
            raise ConfigurationError(
                f"pe.address_bits must be {self.address_bits} for {self.vaults} vaults of "
                f"{self.vault_address_bits} address bits, or at most {self.vault_address_bits} for "
                f"engines that reach their own alone, not {bits}"
            )
        assert self.pe.instruction_words <= MAX_PROGRAM_WORDS

    @property
    def vaults(self) -> int:
        """Vaults of the chip."""
        return self.columns * self.rows

    @property
    def pe_count(self) -> int:
        """PEs of the chip."""
        return self.vaults * self.pes

    @property
    def groups(self) -> int:
        """Bitmap registers that have a PE."""
        return -(-self.pe_count // GROUP_PES)

    @property
    def address_bits(self) -> int:
        """Bits of a byte address of the chip's DRAM."""
        return self.vault_address_bits + (self.vaults - 1).bit_length()

    @property
    def memory_bytes(self) -> int:
        """Bytes of the chip's DRAM, from address 0 on."""
        return self.vaults << self.vault_address_bits
