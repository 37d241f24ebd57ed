"""Parameters of the AXI back end, and the layouts of its channels."""

from dataclasses import dataclass
from typing import get_args

from amaranth.lib import data

from hdl.axi import Axi4
from hdl.config import ConfigurationError, SramKind
from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS
from memory.preload import check_preload
from support.checks import Checks

_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class AxiConfig:
    """An AXI back end of a vault.

    Attributes:
        address_bits: byte address width of port and AXI, 8..48.
        tag_bits: tag width of the port, 1..16.
        data_bits: width of the AXI data buses: 64, 128 or 256.
        outstanding: requests in flight, and AXI identifiers used; power of two, 4..64.
        counters: whether the counters of :mod:`memory.axi.counters` exist (else they read 0).
        preload_bytes: of the vault's addresses, from ``preload_base`` on, that are on-chip memory
            (:class:`memory.preload.Preload`); 0, or a power of two, 256..2**20.
        preload_base: byte address in the vault; a multiple of ``preload_bytes``.
        sram: implementation of the memories.

    Raises:
        ConfigurationError: a value outside its range.
    """

    address_bits: int = 28
    tag_bits: int = 9
    data_bits: int = 256
    outstanding: int = 32
    counters: bool = True
    preload_bytes: int = 0
    preload_base: int = 0
    sram: SramKind = "behavioural"

    def __post_init__(self) -> None:
        _CHECK.within("address_bits", self.address_bits, 8, 48)
        _CHECK.within("tag_bits", self.tag_bits, 1, 16)
        _CHECK.one_of("data_bits", self.data_bits, (64, 128, 256))
        _CHECK.one_of("outstanding", self.outstanding, (4, 8, 16, 32, 64))
        _CHECK.flag("counters", self.counters)
        check_preload(self.preload_bytes, self.preload_base, self.size_bytes)
        _CHECK.one_of("sram", self.sram, get_args(SramKind))

    @property
    def request_address_bits(self) -> int:
        """Bits of a byte address on the port."""
        return self.address_bits

    @property
    def size_bytes(self) -> int:
        """Bytes of the address range. If the memory is smaller, the bus answers with an error."""
        return 1 << self.address_bits

    @property
    def bus(self) -> Axi4:
        """Signature of the AXI bus."""
        return Axi4(address_bits=self.address_bits, data_bits=self.data_bits, id_bits=self.id_bits)

    @property
    def id_bits(self) -> int:
        """Bits of an AXI identifier."""
        return (self.outstanding - 1).bit_length()

    @property
    def lanes(self) -> int:
        """64-bit words in a beat of the AXI data buses."""
        return self.data_bits // WORD_BITS

    @property
    def lane_bits(self) -> int:
        """Bits of the number of a word within a beat."""
        return (self.lanes - 1).bit_length()

    @property
    def beats(self) -> int:
        """Beats of the longest burst, which moves a column."""
        return COLUMN_WORDS // self.lanes

    @property
    def beat_bits(self) -> int:
        """Bits of the number of a beat within a burst."""
        return (self.beats - 1).bit_length()

    @property
    def column_address_bits(self) -> int:
        """Bits of a column's number."""
        return self.address_bits - (COLUMN_BYTES - 1).bit_length()


def address_beat(config: AxiConfig) -> data.StructLayout:
    """Write or read address.

    Members:
        id (id_bits): AXI identifier.
        address (address_bits): address of the first beat of the data bus.
        length (beat_bits): beats less one.
    """
    return data.StructLayout(
        {"id": config.id_bits, "address": config.address_bits, "length": config.beat_bits}
    )


def write_beat(config: AxiConfig) -> data.StructLayout:
    """Beat of write data: ``data``, ``strobe`` and ``last``."""
    return data.StructLayout({"data": config.data_bits, "strobe": config.data_bits // 8, "last": 1})


def transfer_layout(config: AxiConfig) -> data.StructLayout:
    """The properties of a request that its response needs.

    Members:
        tag (tag_bits): tag of the request.
        write (1): 1 for a write.
        words (2): words less one.
        lane (lane_bits): place of the first word in the first beat.
    """
    return data.StructLayout(
        {
            "tag": config.tag_bits,
            "write": 1,
            "words": (COLUMN_WORDS - 1).bit_length(),
            "lane": config.lane_bits,
        }
    )
