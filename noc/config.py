"""Configuration of the network between the vaults: checked values, and widths derived from them."""

from dataclasses import dataclass
from typing import get_args

from hdl.config import ConfigurationError, SramKind
from hdl.ports import COLUMN_BYTES, WORD_BITS
from support.checks import Checks
from support.errors import Shown

#: Message classes: requests and responses. They never share a virtual channel.
CLASSES = 2

#: Most columns or rows.
_MAX_SIDE = 16
#: Widest byte address of a chip; that of :class:`pe.config.PeConfig`.
_MAX_ADDRESS_BITS = 40
#: Shortest ring in which the links of one direction can form a cycle of waiting packets. In a ring
#: of four, only packets from every other place take two links of one direction
#: (:mod:`noc.routing`).
_SHORTEST_CYCLE = 5
_WORD_BYTES = WORD_BITS // 8


_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class NetworkConfig(Shown, line=False):
    """A torus of ``columns`` x ``rows`` vaults. The defaults are the thesis's chip (5.1, 5.2).

    Vault ``v`` is in column ``v % columns`` and row ``v // columns``. A chip's byte address has
    the vault's number above the address within the vault. Numbers without a vault (3 x 3 vaults
    leave 9..15) are addresses that don't exist.

    Attributes:
        columns, rows: vaults in each direction; 1..16. One column or row has no links in that
            direction.
        address_bits: byte address bits of a vault, 10..40; at most 40 with the vault's number.
        tag_bits: tag width of each requester, and of accesses from other vaults; 1..8.
        packet_bytes: longest payload of a packet; power of two, 32..256. Memory needs 32.
        buffer_flits: flits that each virtual channel holds at the end of a link; power of two,
            8..64, at least :attr:`packet_flits`.
        counters: whether the counters of :mod:`noc.node.counters` exist (else they read 0).
        sram: implementation of the buffers and tables.

    Raises:
        hdl.config.ConfigurationError: a value outside its range.
    """

    columns: int = 8
    rows: int = 4
    address_bits: int = 28
    tag_bits: int = 6
    packet_bytes: int = COLUMN_BYTES
    buffer_flits: int = 8
    counters: bool = True
    sram: SramKind = "behavioural"

    def __post_init__(self) -> None:
        _CHECK.within("columns", self.columns, 1, _MAX_SIDE)
        _CHECK.within("rows", self.rows, 1, _MAX_SIDE)
        _CHECK.within("address_bits", self.address_bits, 10, _MAX_ADDRESS_BITS)
        if self.chip_address_bits > _MAX_ADDRESS_BITS:
            raise ConfigurationError(
                f"address_bits must be at most {_MAX_ADDRESS_BITS - self.vault_bits} with "
                f"{self.columns} x {self.rows} vaults, for a chip has at most "
                f"{_MAX_ADDRESS_BITS} address bits; not {self.address_bits}"
            )
        _CHECK.within("tag_bits", self.tag_bits, 1, 8)
        _CHECK.power_of_two("packet_bytes", self.packet_bytes, COLUMN_BYTES, 256)
        _CHECK.power_of_two("buffer_flits", self.buffer_flits, 8, 64)
        if self.buffer_flits < self.packet_flits:
            raise ConfigurationError(
                f"buffer_flits must be at least {self.packet_flits}, a packet of "
                f"{self.packet_bytes} bytes (packet_bytes), not {self.buffer_flits}"
            )
        _CHECK.flag("counters", self.counters)
        _CHECK.one_of("sram", self.sram, get_args(SramKind))

    @property
    def vaults(self) -> int:
        """Vaults of the chip."""
        return self.columns * self.rows

    @property
    def vault_bits(self) -> int:
        """Bits of a vault's number; 0 for a single vault."""
        return (self.vaults - 1).bit_length()

    @property
    def x_bits(self) -> int:
        """Bits of a column's number; 0 for one column."""
        return (self.columns - 1).bit_length()

    @property
    def y_bits(self) -> int:
        """Bits of a row's number; 0 for one row."""
        return (self.rows - 1).bit_length()

    @property
    def chip_address_bits(self) -> int:
        """Bits of a byte address on the chip."""
        return self.address_bits + self.vault_bits

    @property
    def packet_flits(self) -> int:
        """Flits of the longest packet: header, a mask of bytes, and the payload."""
        mask = -(-self.packet_bytes // WORD_BITS)
        return 1 + mask + self.packet_bytes // _WORD_BYTES

    @property
    def virtual_channels(self) -> int:
        """Virtual channels of each class on a link: two if one could form a cycle."""
        return 2 if max(self.columns, self.rows) >= _SHORTEST_CYCLE else 1

    @property
    def channels(self) -> int:
        """Virtual channels of a link. Channel ``message class * virtual_channels + vc``."""
        return CLASSES * self.virtual_channels
