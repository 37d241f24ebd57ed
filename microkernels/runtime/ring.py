"""A ring that visits each vault of a chip once, one link of the torus at a time.

The network is a torus of ``columns`` x ``rows`` vaults; vault ``y * columns + x`` is at (x, y). The
ring traverses whole rows, one after the other, each once around to the right or left: a row to the
right ends one column to the left of where it began, a row to the left one column to the right. If
as many rows go right as left, the link from the last row to the first closes the ring: the snake of
thesis Figure 6.2. With an odd number of rows, ``columns`` more of them go right than left, which is
once around the torus. If that is not possible either, columns and rows are exchanged. One of the
three is possible on any torus.

A chip address consists of the vault's index and, below it, an address within the vault (thesis
5.2).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES

#: Address bits of the whole chip (thesis 5.2).
_CHIP_ADDRESS_BITS = 33
#: Maximum address bits of an engine.
_MOST_ADDRESS_BITS = 40


@dataclass(frozen=True, kw_only=True)
class ChipEngines:
    """A chip's engines, and its vaults in ring order. The default is one vault, a single memory.

    Attributes:
        columns, rows: vaults of the torus, at least 1 each.
        address_bits: bits of a byte address within a vault; at least 12, and at most 40 with those
            of the vault's index.
        pes: engines per vault, at least 1.
        scratchpad_bytes, instruction_words: sizes of an engine's scratchpad and instruction buffer.
        lines: of a vault's line buffer, or 0.
        on_chip: whether a single vault is a chip's, so that programs add its address to theirs, as
            with several.
        alignment: of what is stored, in bytes: a row in each of a vault's 16 banks (thesis, section
            5.2), or, in memory without banks, a column.

    Raises:
        KernelError: a value out of range.
    """

    columns: int = 1
    rows: int = 1
    address_bits: int = _CHIP_ADDRESS_BITS
    pes: int = 4
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS
    lines: int = 0
    on_chip: bool = False
    alignment: int = 16 * ROW_BYTES

    @classmethod
    def of(cls, design: Any) -> "ChipEngines":
        """The engines of a design (:class:`soc.generate.designs.Configuration`)."""
        columns, rows = design.grid
        return cls(
            columns=columns,
            rows=rows,
            address_bits=(design.vault_bytes - 1).bit_length(),
            pes=design.slots,
            scratchpad_bytes=design.pe.scratchpad_bytes,
            instruction_words=design.pe.instruction_words,
            lines=design.lines,
            on_chip=design.kind == "chip",
            # The memory of an engine alone, such as a board's, has no banks with rows.
            alignment=COLUMN_BYTES if design.kind == "engine" else cls.alignment,
        )

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("pes", self.pes, 1)
        for name in ("columns", "rows"):
            if getattr(self, name) < 1:
                raise KernelError(f"{name} of vaults must be at least 1, not {getattr(self, name)}")
        limit = _MOST_ADDRESS_BITS - (self.vaults - 1).bit_length()
        if not 12 <= self.address_bits <= limit:
            raise KernelError(
                f"address_bits of each of {self.vaults} vaults must be 12 to {limit}, "
                f"not {self.address_bits}"
            )

    @property
    def vaults(self) -> int:
        """Number of vaults."""
        return self.columns * self.rows

    @property
    def vault_bits(self) -> int | None:
        """Address bits of a vault whose address programs add; None: they need not."""
        return self.address_bits if self.on_chip or self.vaults > 1 else None

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The vault at each ring position; neighbours, including the last and the first, are one
        link apart."""
        columns, rows = self.columns, self.rows
        right = _rows_to_the_right(columns, rows)
        if right is not None:
            return tuple(y * columns + x for x, y in _along_rows(columns, rows, right))
        right = _rows_to_the_right(rows, columns)
        assert right is not None
        return tuple(x * columns + y for x, y in _along_rows(rows, columns, right))

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {vault: position for position, vault in enumerate(self.order)}

    def position(self, vault: int) -> int:
        """Position of ``vault`` (0..vaults - 1) in the ring."""
        return self._positions[vault]

    def vault(self, position: int) -> int:
        """The vault at ``position``, modulo the ring's length."""
        return self.order[position % self.vaults]

    def next(self, vault: int, steps: int = 1) -> int:
        """The vault ``steps`` (negative: back) after ``vault`` in the ring."""
        return self.vault(self.position(vault) + steps)

    def address(self, vault: int, offset: int) -> int:
        """Chip address of byte ``offset`` of ``vault``."""
        return (vault << self.address_bits) + offset

    def vault_of(self, address: int) -> int:
        """The vault that contains chip address ``address``."""
        return address >> self.address_bits

    def links(self, one: int, other: int) -> int:
        """Links of the torus on the shortest way from vault ``one`` to ``other``."""
        across = abs(one % self.columns - other % self.columns)
        down = abs(one // self.columns - other // self.columns)
        return min(across, self.columns - across) + min(down, self.rows - down)


def _rows_to_the_right(columns: int, rows: int) -> int | None:
    """Number of rows that go right if the ring closes, otherwise None."""
    if rows % 2 == 0:
        return rows // 2
    if columns % 2 and columns <= rows:
        return (rows + columns) // 2
    return None


def _along_rows(columns: int, rows: int, right: int) -> list[tuple[int, int]]:
    """The ring's places (x, y); rows to the right and left alternate while they can."""
    places = []
    x = 0
    left = rows - right
    for y in range(rows):
        go_right = y % 2 == 0 or y // 2 >= left
        for _ in range(columns - 1):
            places.append((x, y))
            x = (x + (1 if go_right else -1)) % columns
        places.append((x, y))
    return places


#: An engine with a vault of its own.
ONE_ENGINE = ChipEngines(pes=1)
