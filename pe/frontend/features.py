"""What kinds of instructions a configuration has, which decides what the front end must hold."""

from dataclasses import dataclass
from functools import cache

from isa.table import FIELD_C, Opcode, Unit
from pe.config import PeConfig

__all__ = ["Features"]


@dataclass(frozen=True, kw_only=True)
class Features:
    """Questions about a configuration that several units ask.

    Attributes:
        vector: it has vector instructions. second: one of them with a second operand. matrices:
            one that reduces. fractions: one that shifts by FX.
        load_scratchpad, store_scratchpad, load_register, store_register: it has ``ld.sram``,
            ``st.sram``, ``ld.reg``, ``st.reg`` of any width.
    """

    vector: bool
    second: bool
    matrices: bool
    fractions: bool
    load_scratchpad: bool
    store_scratchpad: bool
    load_register: bool
    store_register: bool

    @staticmethod
    @cache
    def of(config: PeConfig) -> "Features":
        """The features of ``config``."""
        vectors = config.rows_of(Unit.VECTOR)
        opcodes = {row.opcode for row in config.rows}
        return Features(
            vector=bool(vectors),
            second=any(FIELD_C in row.reads for row in vectors),
            matrices=any(row.reduction is not None for row in vectors),
            fractions=any(row.fractions for row in vectors),
            load_scratchpad=Opcode.LD_SRAM in opcodes,
            store_scratchpad=Opcode.ST_SRAM in opcodes,
            load_register=Opcode.LD_REG in opcodes,
            store_register=Opcode.ST_REG in opcodes,
        )

    @property
    def transfers(self) -> bool:
        """Whether data go between memory and scratchpad."""
        return self.load_scratchpad or self.store_scratchpad

    @property
    def registers(self) -> bool:
        """Whether data go between memory and registers."""
        return self.load_register or self.store_register

    @property
    def loads(self) -> bool:
        """Whether anything is loaded."""
        return self.load_scratchpad or self.load_register

    @property
    def stores(self) -> bool:
        """Whether anything is stored."""
        return self.store_scratchpad or self.store_register

    @property
    def memory(self) -> bool:
        """Whether the load-store unit has anything to do."""
        return self.loads or self.stores
