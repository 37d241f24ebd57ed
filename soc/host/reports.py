"""Reports of the host driver about a chip."""

from collections.abc import Sequence
from dataclasses import dataclass

from isa.assembly.disassembler import instruction_text
from isa.encoding import decode
from isa.faults import FaultCause
from pe.interface import PeState

__all__ = ["ChipIdentity", "FaultReport", "PeStatus", "instruction_at"]


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


@dataclass(frozen=True, kw_only=True)
class PeStatus:
    """The state of PE ``pe``.

    Attributes:
        state: present state.
        cause, pc: of the fault, if it has stopped at one; ``pc`` in words.
        memory_error: memory answered an access of this launch with an error, whatever the cause.
    """

    pe: int
    state: PeState
    cause: FaultCause
    pc: int
    memory_error: bool


@dataclass(frozen=True, kw_only=True)
class FaultReport:
    """A PE that stopped at a fault.

    Attributes:
        pe, vault, slot: its numbers in the chip, of its vault, and in its vault.
        cause: of the fault.
        pc: address of the instruction, in words.
        instruction: its text, or "" if the driver did not load the PE, the address lies outside
            the program, or the word is no instruction.
        memory_error: memory answered an access with an error, beside or as the cause: stores of the
            program may be missing.
    """

    pe: int
    vault: int
    slot: int
    cause: FaultCause
    pc: int
    instruction: str
    memory_error: bool

    def __str__(self) -> str:
        where = f"PE {self.pe} (vault {self.vault}, slot {self.slot})"
        cause = self.cause.name.lower().replace("_", " ")
        both = self.memory_error and self.cause is not FaultCause.MEMORY_ERROR
        return (
            f"{where}: {cause} at word {self.pc}"
            + (f": {self.instruction}" if self.instruction else "")
            + ("; also a memory error" if both else "")
        )


def instruction_at(words: Sequence[int], pc: int) -> str:
    """Text of the instruction at ``pc``, or "" if there is none."""
    if not 0 <= pc < len(words):
        return ""
    decoded = decode(words[pc])
    return "" if decoded is None else instruction_text(*decoded)
