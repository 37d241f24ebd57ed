"""A ring over the vaults of a chip that goes through each once, one link of the torus at a time.

The network is a torus of ``columns`` x ``rows`` vaults; vault ``y * columns + x`` stands at (x, y).
The ring goes along whole rows, one after the other, each to the right or to the left and once
around: a row to the right ends one column to the left of where it began, one to the left one column
to the right. Where as many rows go right as left, the ring closes by the link from the last row to
the first: the snake of thesis Figure 6.2. With an odd number of rows, ``columns`` more of them go
right than left, which is once around the torus; where that is not possible either, columns and rows
change places. One of the three is possible on any torus.

A chip's address has the vault's index above the bits of an address within the vault (thesis 5.2).
"""

from dataclasses import dataclass, field
from functools import cached_property

from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS
from microkernels.common.errors import CHECK, KernelError

__all__ = ["ChipEngines", "VaultRing"]

#: Bits of the whole chip's addresses (thesis 5.2).
_CHIP_ADDRESS_BITS = 33
#: Most address bits of an engine.
_MOST_ADDRESS_BITS = 40


@dataclass(frozen=True, kw_only=True)
class VaultRing:
    """The vaults of a chip in the order of a ring. The default is one memory without others.

    Attributes:
        columns, rows: vaults of the torus, at least 1 each.
        address_bits: of a byte address within a vault; at least 12, and with those of the vault's
            index at most 40.

    Raises:
        KernelError: a value outside its range.
    """

    columns: int = 1
    rows: int = 1
    address_bits: int = _CHIP_ADDRESS_BITS

    def __post_init__(self) -> None:
        CHECK.fields(self)
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

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Vault at each position of the ring; neighbours, the last and the first too, are one link
        apart."""
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
        """The vault at ``position``, counted around the ring as often as need be."""
        return self.order[position % self.vaults]

    def next(self, vault: int, steps: int = 1) -> int:
        """The vault ``steps`` (negative: back) after ``vault`` in the ring."""
        return self.vault(self.position(vault) + steps)

    def address(self, vault: int, offset: int) -> int:
        """Chip address of byte ``offset`` of ``vault``."""
        return (vault << self.address_bits) + offset

    def vault_of(self, address: int) -> int:
        """The vault in which the chip address ``address`` lies."""
        return address >> self.address_bits

    def links(self, one: int, other: int) -> int:
        """Links of the torus on the shortest way from vault ``one`` to ``other``."""
        across = abs(one % self.columns - other % self.columns)
        down = abs(one // self.columns - other // self.columns)
        return min(across, self.columns - across) + min(down, self.rows - down)


def _rows_to_the_right(columns: int, rows: int) -> int | None:
    """How many rows go right so that the ring closes; None: it does not."""
    if rows % 2 == 0:
        return rows // 2
    if columns % 2 and columns <= rows:
        return (rows + columns) // 2
    return None


def _along_rows(columns: int, rows: int, right: int) -> list[tuple[int, int]]:
    """The places (x, y) of the ring; rows to the right and left take turns while they can."""
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


@dataclass(frozen=True, kw_only=True)
class ChipEngines:
    """The engines of a chip.

    Attributes:
        ring: of the vaults; the default is one vault.
        pes: engines of a vault, at least 1.
        scratchpad_bytes, instruction_words: of an engine's scratchpad and instruction buffer.

    Raises:
        KernelError: a value outside its range.
    """

    ring: VaultRing = field(default_factory=VaultRing)
    pes: int = 4
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.at_least("pes", self.pes, 1)
