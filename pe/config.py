"""Configuration of a processing engine (PE): the user's settings, checked, and sizes derived from
them.

Configurations are frozen and keyword-only; change one with :func:`dataclasses.replace`. Every
accepted value is built and tested; everything else is refused with the allowed range.
"""

from dataclasses import dataclass, field, replace
from typing import Self, get_args

from hdl.config import ConfigurationError, SramKind
from isa.limits import (
    ADDRESS_BITS,
    INSTRUCTION_WORDS,
    MIN_REGISTERS,
    RANGE_BYTES,
    SCRATCHPAD_BYTES,
    Limits,
)
from isa.logistic import LOGISTIC
from isa.table import (
    BY_KEY,
    INSTRUCTIONS,
    MAX_MR,
    MAX_VL,
    MIN_REGISTER_WIDTH,
    REGISTER_WIDTH,
    REGISTERS,
    Instruction,
    Unit,
    Width,
)
from support.checks import Checks
from support.errors import Shown

#: Keys of every instruction.
ALL_INSTRUCTIONS: frozenset[str] = frozenset(BY_KEY)
#: The default set.
STANDARD_INSTRUCTIONS: frozenset[str] = frozenset(
    row.key for row in INSTRUCTIONS if not row.optional
)

#: Products of bytes in pairs, and the default set with them.
PAIRS = "m.v.dot.add[16]"
INT8_INSTRUCTIONS: frozenset[str] = STANDARD_INSTRUCTIONS | {PAIRS}

#: The default set and the instructions of the logistic unit.
LOGISTIC_INSTRUCTIONS: frozenset[str] = STANDARD_INSTRUCTIONS | {row.key for row in LOGISTIC.rows}

_CHECK = Checks(ConfigurationError)
_HISTORIES = (0, 8, 16, 32, 64)
_HISTORY_WAYS = (0, 1, 2, 4)


def serves_history(instructions: frozenset[str]) -> bool:
    """Whether an engine with ``instructions`` (keys) can have a load history: whether it can
    declare workspaces and load from them."""
    return "set.ws" in instructions and any(
        BY_KEY[key].mnemonic == "ld.sram" for key in instructions
    )


@dataclass(frozen=True, kw_only=True)
class PeConfig(Shown, line=False):
    """One processing engine. The defaults are the thesis's machine (chapter 5, section 7.1.3).

    Attributes:
        instructions: keys (see :attr:`isa.table.Instruction.key`) that the PE executes; any other
            word faults. Units contain only what these need: a special unit exists only if one of
            its optional instructions does.
        instruction_words: words of the instruction buffer; power of two, 16..8192.
        registers: scalar registers r0..; power of two, 8..64. An instruction that names a higher
            register faults as illegal.
        register_width: bits of a scalar register and its datapath; 20..64, more than
            ``address_bits``. Below 64, the engine behaves as with 64 or stops with
            ``REGISTER_RANGE`` (:class:`isa.faults.FaultCause`).
        max_vl, max_mr: largest VL and MR; 1..256. ``set.vl`` and ``set.mr`` fault beyond them.
        program: words of the only program that the engine can run, 1..``instruction_words`` of
            them, in a ROM: words that the host loads are dropped, and the length in a launch is
            ignored. None: an instruction buffer that the host loads.
        scratchpad_bytes: power of two, 64..65536.
        scratchpad_alignment: 1, 2, 4 or 8. Operands and results in the scratchpad, and both ends of
            transfers to and from it, begin at multiples of this many bytes, or fault (in the
            scratchpad with ``SCRATCHPAD_RANGE``, in DRAM with ``MISALIGNED``), and so do all rows
            of a matrix. Results of ``m.v`` instructions follow each other without gaps.
        scratchpad_banks: 8, each with ports for all accesses of a cycle, or 16, of even and of odd
            rows, with two ports each, for which beats, loads and stores may wait
            (:mod:`pe.scratchpad_shared`). 16 are not for an FPGA, and not for ``set.ws``.
        arc_entries: scratchpad ranges that may have a transfer in flight; 1..64.
        load_store_queue: memory requests (32-byte columns) in flight; power of two, 2..64.
        load_history: columns of the declared image (:mod:`isa.workspace`) that are tracked while
            they are in the scratchpad, so that loads copy them from there; 0 (none), 8, 16, 32 or
            64. Only with ``set.ws`` and ``ld.sram``.
        load_history_ways: associativity of the load history; 1, 2, 4, or 0 for fully associative.
        address_bits: DRAM byte address bits; 12..40. A byte beyond them faults.
        counters: whether the performance counters (:class:`pe.interface.PeCounter`) exist; without,
            they read 0.
        sram: implementation of all memories. ``macro``, for ASICs, also builds multipliers from
            gates instead of operators meant for an FPGA's multipliers.

    Raises:
        ConfigurationError: a value outside its range, or an unknown instruction.
    """

    instructions: frozenset[str] = field(default=STANDARD_INSTRUCTIONS)
    instruction_words: int = 1024
    registers: int = REGISTERS
    register_width: int = REGISTER_WIDTH
    max_vl: int = MAX_VL
    max_mr: int = MAX_MR
    program: tuple[int, ...] | None = None
    scratchpad_bytes: int = 4096
    scratchpad_alignment: int = 1
    scratchpad_banks: int = field(default=8, metadata={"optional": True})
    arc_entries: int = 20
    load_store_queue: int = 64
    load_history: int = field(default=0, metadata={"optional": True})
    load_history_ways: int = field(default=4, metadata={"optional": True})
    address_bits: int = 33
    counters: bool = True
    sram: SramKind = "behavioural"

    def __post_init__(self) -> None:
        if not isinstance(self.instructions, frozenset) or not self.instructions:
            raise ConfigurationError(
                "instructions must be a non-empty frozenset of instruction keys"
            )
        unknown = sorted(str(key) for key in self.instructions if key not in ALL_INSTRUCTIONS)
        if unknown:
            raise ConfigurationError(
                f"instructions: {unknown[0]!r} is not in the instruction table"
            )
        if "halt" not in self.instructions:
            raise ConfigurationError("instructions must contain 'halt': no program could end")
        _CHECK.power_of_two("instruction_words", self.instruction_words, *INSTRUCTION_WORDS)
        _CHECK.power_of_two("registers", self.registers, MIN_REGISTERS, REGISTERS)
        _CHECK.power_of_two("scratchpad_bytes", self.scratchpad_bytes, *SCRATCHPAD_BYTES)
        most = max(width.bytes for width in Width)
        _CHECK.power_of_two("scratchpad_alignment", self.scratchpad_alignment, 1, most)
        _CHECK.within("arc_entries", self.arc_entries, 1, 64)
        _CHECK.power_of_two("load_store_queue", self.load_store_queue, 2, 64)
        _CHECK.one_of("load_history", self.load_history, _HISTORIES)
        _CHECK.one_of("load_history_ways", self.load_history_ways, _HISTORY_WAYS)
        if self.load_history and not serves_history(self.instructions):
            raise ConfigurationError(
                "load_history must be 0 without the instructions 'set.ws' and 'ld.sram', which it "
                f"serves, not {self.load_history}"
            )
        _CHECK.within("address_bits", self.address_bits, *ADDRESS_BITS)
        least = max(MIN_REGISTER_WIDTH, self.address_bits + 1)
        _CHECK.within("register_width", self.register_width, least, REGISTER_WIDTH)
        _CHECK.within("max_vl", self.max_vl, 1, MAX_VL)
        _CHECK.within("max_mr", self.max_mr, 1, MAX_MR)
        if self.program is not None:
            self._check_program(self.program)
        _CHECK.flag("counters", self.counters)
        _CHECK.one_of("sram", self.sram, get_args(SramKind))
        _CHECK.one_of("scratchpad_banks", self.scratchpad_banks, (8, 16))
        if self.shared_ports and self.sram == "fpga":
            raise ConfigurationError(
                "scratchpad_banks must be 8 in an FPGA (sram 'fpga'), which has no cycle left in "
                f"which a result could wait for a port, not {self.scratchpad_banks}"
            )
        if self.shared_ports and self.workspace:
            raise ConfigurationError(
                "scratchpad_banks must be 8 with the instruction 'set.ws', whose loads wait for no "
                f"port, not {self.scratchpad_banks}"
            )

    def _check_program(self, program: object) -> None:
        if not isinstance(program, tuple):
            raise ConfigurationError("program must be a tuple of instruction words, or None")
        if not 1 <= len(program) <= self.instruction_words:
            raise ConfigurationError(
                f"program must have 1 to {self.instruction_words} words (instruction_words), "
                f"not {len(program)}"
            )
        for address, word in enumerate(program):
            _CHECK.within(f"word {address} of program", word, 0, (1 << 32) - 1)

    @property
    def kind(self) -> str:
        """Kind of design."""
        return "engine"

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of vaults."""
        return 1, 1

    @property
    def title(self) -> str:
        """Human-readable description."""
        return "processing engine"

    @property
    def module_name(self) -> str:
        """Default name of the top module."""
        return "pe"

    @property
    def two_clocks(self) -> bool:
        """Whether the memory has its own clock."""
        return False

    def with_sram(self, kind: SramKind) -> Self:
        """A copy with all memories built as ``kind``.

        Raises:
            ConfigurationError: an unknown ``kind``.
        """
        return replace(self, sram=kind)

    @property
    def pe(self) -> "PeConfig":
        """Configuration of each engine: this one."""
        return self

    @property
    def vaults(self) -> int:
        """Number of vaults: 1."""
        return 1

    @property
    def slots(self) -> int:
        """Engines of each vault."""
        return 1

    @property
    def lines(self) -> int:
        """Lines of each vault's line buffer."""
        return 0

    @property
    def engines(self) -> int:
        """Engines of all vaults."""
        return 1

    @property
    def vault_bytes(self) -> int:
        """Bytes of memory that it can address."""
        return 1 << self.address_bits

    @property
    def memory_bytes(self) -> int:
        """The same."""
        return self.vault_bytes

    @property
    def dram_timing(self) -> None:
        """DRAM timing: None."""
        return None

    @property
    def on_board(self) -> bool:
        """Whether only a simulation at a board's pins runs the design: it is not."""
        return False

    @property
    def rows(self) -> tuple[Instruction, ...]:
        """The instructions' table rows, in the table's order."""
        return tuple(row for row in INSTRUCTIONS if row.key in self.instructions)

    def rows_of(self, unit: Unit) -> tuple[Instruction, ...]:
        """The rows that ``unit`` executes."""
        return tuple(row for row in self.rows if row.unit is unit)

    @property
    def limits(self) -> Limits:
        """Parameters that make :class:`isa.iss.simulator.Simulator` behave as this engine."""
        return Limits(
            scratchpad_bytes=self.scratchpad_bytes,
            scratchpad_alignment=self.scratchpad_alignment,
            registers=self.registers,
            address_bits=self.address_bits,
            instructions=self.instructions,
            instruction_words=self.instruction_words,
            register_width=self.register_width,
            max_vl=self.max_vl,
            max_mr=self.max_mr,
        )

    @property
    def shared_ports(self) -> bool:
        """Whether accesses to the scratchpad share ports, and wait for them."""
        return self.scratchpad_banks > 8

    @property
    def workspace(self) -> bool:
        """Whether a program can declare a virtual workspace (:mod:`isa.workspace`)."""
        return "set.ws" in self.instructions

    @property
    def history_sets(self) -> int:
        """Sets of the load history, which has :attr:`load_history_ways` entries each."""
        return self.load_history // self.load_history_ways if self.load_history_ways else 1

    @property
    def history_ways(self) -> int:
        """Ways of the load history."""
        return self.load_history // self.history_sets

    @property
    def register_bits(self) -> int:
        """Bits of a register number."""
        return (self.registers - 1).bit_length()

    @property
    def scratchpad_bits(self) -> int:
        """Bits of a scratchpad byte address."""
        return (self.scratchpad_bytes - 1).bit_length()

    @property
    def tag_bits(self) -> int:
        """Bits of a memory request's tag."""
        return (self.load_store_queue - 1).bit_length()

    @property
    def entry_bits(self) -> int:
        """Bits of the index of an entry in the array range check."""
        return max(1, (self.arc_entries - 1).bit_length())

    @property
    def column_count_bits(self) -> int:
        """Bits of the number of columns that one transfer touches (one more when unaligned)."""
        # Imported late: the assembler uses configurations, and starts without Amaranth.
        from hdl.ports import COLUMN_BYTES

        return (self.scratchpad_bytes // COLUMN_BYTES + 1).bit_length()

    @property
    def end_unit_bits(self) -> int:
        """Bits of the number of a unit of :data:`isa.limits.RANGE_BYTES`, up to the one after the
        scratchpad's last."""
        return (self.scratchpad_bytes // RANGE_BYTES).bit_length()

    @property
    def pc_bits(self) -> int:
        """Bits of an instruction buffer address."""
        return (self.instruction_words - 1).bit_length()

    @property
    def vl_limit(self) -> int:
        """Largest VL that a program can reach."""
        return self.max_vl if "set.vl" in self.instructions else 1

    @property
    def mr_limit(self) -> int:
        """Largest MR that a program can reach."""
        return self.max_mr if "set.mr" in self.instructions else 1

    @property
    def vl_bits(self) -> int:
        """Bits of a vector length, up to and including :attr:`vl_limit`."""
        return self.vl_limit.bit_length()

    @property
    def mr_bits(self) -> int:
        """Bits of a row count, up to and including :attr:`mr_limit`."""
        return self.mr_limit.bit_length()

    @property
    def narrow(self) -> bool:
        """Whether registers have fewer bits than the instruction set's."""
        return self.register_width < REGISTER_WIDTH
