"""Configuration of a vault with its engines."""

from dataclasses import dataclass, field, replace
from typing import Self

from hdl.config import ConfigurationError, SramKind
from hdl.crossing import MAX_CROSSING_DEPTH, MIN_CROSSING_DEPTH
from isa.table import Opcode
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from memory.line_buffer.layout import check_lines
from memory.on_chip import OnChipConfig
from memory.timing import DramTiming
from noc.crossbar import MAX_REQUESTERS
from pe.config import PeConfig
from support.checks import Checks
from support.errors import Shown

#: Back ends of a vault: the DRAM controller, an AXI4 bus of a board, or memory on the chip.
VaultBackEnd = VaultConfig | AxiConfig | OnChipConfig

#: Bytes of the thesis's vault are 2**28 (5.2).
_VAULT_ADDRESS_BITS = 28

_CHECK = Checks(ConfigurationError)


#: Numbers of clocks, as named in configurations.
CLOCKS = ("one", "two")
_OPTIONAL = {"optional": True}


@dataclass(frozen=True, kw_only=True)
class ClockConfig:
    """The clocks of a vault and its engines.

    Attributes:
        domains: "one": everything has the clock ``clk``. "two": the back end of the vault
            (controller and DRAM, or AXI bus) has ``clk_mem``, of any ratio and phase; its times in
            ns are those of that clock.
        request_depth, response_depth: beats buffered on the way to the memory and back, with two
            clocks; a power of two, 4..64. From 8 on, one beat passes per cycle of the slower clock.

    Raises:
        ConfigurationError: a value outside its range.
    """

    domains: str = field(default="one", metadata=_OPTIONAL)
    request_depth: int = field(default=8, metadata=_OPTIONAL)
    response_depth: int = field(default=8, metadata=_OPTIONAL)

    def __post_init__(self) -> None:
        _CHECK.one_of("domains", self.domains, CLOCKS)
        for name in ("request_depth", "response_depth"):
            _CHECK.power_of_two(name, getattr(self, name), MIN_CROSSING_DEPTH, MAX_CROSSING_DEPTH)

    @property
    def two(self) -> bool:
        """Whether the memory has its own clock."""
        return self.domains == "two"


@dataclass(frozen=True, kw_only=True)
class VaultTileConfig(Shown, line=False):
    """Processing engines (PEs) and their vault. The defaults are the thesis's (5.2).

    Attributes:
        pe: of every PE. Its addresses are those of the vault's port; with fewer bits, each PE has
            its own window of the vault (:func:`soc.tile.engine_slot.join_engine`), so the same
            program works on different data on each. Its tags must fit next to the requester's
            number in the vault's (:attr:`port_tag_bits`).
        vault: of the memory; its type selects the back end. On-chip memory has one clock.
        pes: 1..15.
        buffered: whether the memory buffers each PE's responses even if all PEs are always ready
            for them (:attr:`always_ready`).
        extra_ports: further memory ports, for the network and the host; 0..15, at most 16 including
            the PEs'.
        line_buffer: lines of the vault's line buffer
            (:class:`memory.line_buffer.line_buffer.LineBuffer`); 0, or a power of two, 8..128.
        line_merges: reads that can wait for one of its columns; a power of two, 2..16.
        clocks: of the vault and its engines.

    Raises:
        ConfigurationError: a value outside its range, or parts that don't fit each other.
    """

    pe: PeConfig = field(default_factory=lambda: PeConfig(address_bits=_VAULT_ADDRESS_BITS))
    vault: VaultBackEnd = field(default_factory=VaultConfig)
    pes: int = 4
    extra_ports: int = 2
    buffered: bool = False
    line_buffer: int = 0
    line_merges: int = 4
    clocks: ClockConfig = field(default_factory=ClockConfig, metadata={"optional": True})

    def __post_init__(self) -> None:
        _CHECK.kind("pe", self.pe, PeConfig)
        _CHECK.kind("vault", self.vault, VaultConfig, AxiConfig, OnChipConfig)
        limit = MAX_REQUESTERS - 1
        _CHECK.within("pes", self.pes, 1, limit)
        _CHECK.within("extra_ports", self.extra_ports, 0, limit)
        if self.requesters > MAX_REQUESTERS:
            raise ConfigurationError(
                f"pes and extra_ports must be at most {MAX_REQUESTERS} together, not "
                f"{self.pes} + {self.extra_ports}"
            )
        port_bits = self.vault.request_address_bits
        most_bits = port_bits - (self.pes - 1).bit_length()
        if self.pe.address_bits != port_bits and self.pe.address_bits > most_bits:
            raise ConfigurationError(
                f"pe.address_bits must be {port_bits}, as the vault's port has, or at most "
                f"{most_bits}, for a window for each of {self.pes} PEs; not {self.pe.address_bits}"
            )
        _CHECK.flag("buffered", self.buffered)
        check_lines(self.line_buffer, self.line_merges)
        _CHECK.kind("clocks", self.clocks, ClockConfig)
        if self.two_clocks and isinstance(self.vault, OnChipConfig):
            raise ConfigurationError("clocks.domains must be 'one' with on-chip memory, not 'two'")
        if self.port_tag_bits < self.pe.tag_bits:
            least = self.vault.tag_bits - self.port_tag_bits + self.pe.tag_bits
            raise ConfigurationError(
                f"vault.tag_bits must be at least {least} for "
                f"{self.pe.load_store_queue} requests in flight (pe.load_store_queue) of each of "
                f"{self.requesters} requesters, not {self.vault.tag_bits}"
            )

    @property
    def kind(self) -> str:
        """Kind of design."""
        return "vault"

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of vaults."""
        return 1, 1

    @property
    def title(self) -> str:
        """Human-readable description."""
        return f"vault with processing engines ({self.pes})"

    @property
    def module_name(self) -> str:
        """Default name of the top module."""
        return "vault_tile"

    @property
    def two_clocks(self) -> bool:
        """Whether the memory has its own clock."""
        return self.clocks.two

    def with_sram(self, kind: SramKind) -> Self:
        """A copy with all memories built as ``kind``.

        Raises:
            ConfigurationError: an unknown ``kind``.
        """
        # The engine is checked first, so its configuration reports an unknown kind.
        pe = self.pe.with_sram(kind)
        return replace(self, pe=pe, vault=replace(self.vault, sram=kind))

    @property
    def vaults(self) -> int:
        """Vaults: this one."""
        return 1

    @property
    def slots(self) -> int:
        """Engines of each vault."""
        return self.pes

    @property
    def lines(self) -> int:
        """Lines of each vault's line buffer."""
        return self.line_buffer

    @property
    def engines(self) -> int:
        """Engines of all vaults."""
        return self.pes

    @property
    def vault_bytes(self) -> int:
        """Bytes of the vault's memory."""
        return self.vault.size_bytes

    @property
    def memory_bytes(self) -> int:
        """The same."""
        return self.vault_bytes

    @property
    def dram_timing(self) -> DramTiming | None:
        """Timing of the DRAM; None: there is no DRAM controller."""
        return self.vault.timing if isinstance(self.vault, VaultConfig) else None

    @property
    def on_board(self) -> bool:
        """Whether only a simulation at a board's pins runs the design."""
        return isinstance(self.vault, OnChipConfig)

    @property
    def dram(self) -> VaultConfig:
        """``vault`` of a vault with a DRAM controller.

        Raises:
            ConfigurationError: it has another back end.
        """
        if not isinstance(self.vault, VaultConfig):
            back_end = "an AXI back end" if isinstance(self.vault, AxiConfig) else "on-chip memory"
            raise ConfigurationError(
                f"the vault has {back_end}; a vault with a DRAM controller is needed here"
            )
        return self.vault

    @property
    def windows(self) -> bool:
        """Whether each PE has its own window of the vault."""
        return self.pe.address_bits != self.vault.request_address_bits

    @property
    def always_ready(self) -> int:
        """Number of PEs that are always ready for responses, which need no buffer.

        All PEs if none can load a register, the only load that can stall
        (:class:`pe.lsu.response.LoadStoreResponse`), and they are not :attr:`buffered`; otherwise
        none.
        """
        loads = any(row.opcode == Opcode.LD_REG for row in self.pe.rows)
        return 0 if loads or self.buffered else self.pes

    @property
    def port_tag_bits(self) -> int:
        """Tag width of each requester's port of the memory."""
        return self.vault.tag_bits - (self.requesters - 1).bit_length()

    @property
    def requesters(self) -> int:
        """Ports of the memory."""
        return self.pes + self.extra_ports
