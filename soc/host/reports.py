"""Reports of the host driver about a chip."""

from collections.abc import Sequence
from dataclasses import dataclass

from isa.assembly.disassembler import instruction_text
from isa.table import decode

__all__ = ["ChipIdentity", "instruction_at"]


@dataclass(frozen=True, kw_only=True)
class ChipIdentity:
    """The properties of a chip, as its registers report them.

    Attributes:
        map_version, isa_version: of the register map and the instruction set.
        columns, rows: of the grid of vaults, which are numbered row by row.
        pe_count, pes_per_vault: processing engines (PEs), numbered vault by vault.
        instruction_words: longest program.
        scratchpad_bytes: of a PE.
        vault_address_bits: bits of a byte address within a vault.
        address_bits: bits of a byte address of the chip.
        pe_counters, vault_counters: whether they exist.
        network_counters: number of network counters of a vault.
    """

    map_version: int
    isa_version: int
    columns: int
    rows: int
    pe_count: int
    pes_per_vault: int
    instruction_words: int
    scratchpad_bytes: int
    vault_address_bits: int
    address_bits: int
    pe_counters: bool
    vault_counters: bool
    network_counters: int

    @property
    def vaults(self) -> int:
        """Vaults of the chip."""
        return self.columns * self.rows

    @property
    def memory_bytes(self) -> int:
        """Bytes of the DRAM, from address 0 on."""
        return self.vaults << self.vault_address_bits


def instruction_at(words: Sequence[int], pc: int) -> str:
    """Text of the instruction at ``pc``, or "" if there is none."""
    if not 0 <= pc < len(words):
        return ""
    decoded = decode(words[pc])
    return "" if decoded is None else instruction_text(*decoded)
