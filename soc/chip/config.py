"""Configuration of a chip: vaults, the network between them, and the host port."""

import hashlib
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Literal, Self, get_args

from hdl.config import ConfigurationError, SramKind
from hdl.parameters import describe
from memory.axi.layout import AxiConfig
from memory.timing import DramTiming
from noc.config import NetworkConfig
from noc.node.counters import NetworkCounter
from pe.config import PeConfig
from soc.host.config import HostConfig
from soc.tile.config import VaultTileConfig
from support.checks import Checks
from support.errors import Shown

#: Ports of a vault's memory in addition to the engines': for the host, and for other vaults. A chip
#: without ``remote`` has only the first.
CHIP_PORTS = 2

#: The host's ways to the memory of a chip.
HostData = Literal["axi", "serial", "none"]

_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class ChipConfig(Shown, line=False):
    """A torus of vaults with processing engines (PEs), and a host port.

    The defaults are the thesis's chip (5.1, 5.2): 8 x 4 vaults of 4 PEs, 8 GiB.

    Attributes:
        tile: every vault, as if stand-alone: ``tile.pe.address_bits`` are those of the vault, and
            :attr:`pe` has those of the chip.
        network: of the torus; its ``columns`` and ``rows`` give the number of vaults.
        remote: whether engines can access other vaults. If not, they only address their own vault,
            any other address faults, and there is no torus: the host's accesses to DRAM pass from
            vault to vault (:class:`soc.host.chain.HostChain`), and only the numbers of vaults and
            the widths of addresses and tags of ``network`` have an effect.
        axi_id_bits: width of the identifiers on the host's AXI4 port; 1..16.
        host_data: the host's way to the memory. "axi": AXI4, beside AXI4-Lite for registers.
            "serial": streams of bytes, for both (:class:`soc.board.serial_host.SerialHost`).
            "none": AXI4-Lite alone; the host reaches the memory by itself, over the buses of the
            vaults, whose addresses of 64 bits begin where registers say.

    Raises:
        ConfigurationError: a value outside its range, or parts that don't fit each other.
    """

    tile: VaultTileConfig = field(default_factory=VaultTileConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    remote: bool = True
    axi_id_bits: int = 4
    host_data: HostData = field(default="axi", metadata={"optional": True})

    def __post_init__(self) -> None:
        _CHECK.kind("tile", self.tile, VaultTileConfig)
        _CHECK.kind("network", self.network, NetworkConfig)
        _CHECK.flag("remote", self.remote)
        ports = CHIP_PORTS if self.remote else CHIP_PORTS - 1
        if self.tile.extra_ports != ports:
            users = "the host and the network" if self.remote else "the host"
            raise ConfigurationError(
                f"tile.extra_ports must be {ports}, for {users}, not {self.tile.extra_ports}"
            )
        if self.remote and self.tile.windows:
            raise ConfigurationError(
                f"tile.pe.address_bits must be {self.tile.vault.request_address_bits}, as "
                f"tile.vault has, not {self.tile.pe.address_bits}: engines with windows reach no "
                "other vault (remote)"
            )
        vault = self.tile.vault
        if vault.request_address_bits != vault.address_bits:
            raise ConfigurationError(
                f"tile.vault.port_address_bits must be 0 or {vault.address_bits}, because the "
                f"network selects the vault, not {vault.request_address_bits}"
            )
        for name, value, needed, source in (
            ("address_bits", self.network.address_bits, vault.address_bits, "tile.vault has"),
            ("tag_bits", self.network.tag_bits, self.tile.port_tag_bits, "tile.vault leaves"),
        ):
            if value != needed:
                raise ConfigurationError(
                    f"network.{name} must be {needed}, as {source}, not {value}"
                )
        _CHECK.within("axi_id_bits", self.axi_id_bits, 1, 16)
        _CHECK.one_of("host_data", self.host_data, get_args(HostData))
        if self.host_data == "none" and not isinstance(vault, AxiConfig):
            raise ConfigurationError(
                "host_data must be 'axi' or 'serial' for a vault without an AXI bus of its own, "
                "not 'none'"
            )
        # Refuses a chip too large for the register map.
        _ = self.host

    @property
    def kind(self) -> str:
        """Kind of design."""
        return "chip"

    @property
    def slots(self) -> int:
        """Engines of each vault."""
        return self.tile.pes

    @property
    def lines(self) -> int:
        """Lines of each vault's line buffer."""
        return self.tile.lines

    @property
    def engines(self) -> int:
        """Engines of all vaults."""
        return self.pes

    @property
    def vault_bytes(self) -> int:
        """Bytes of a vault's memory."""
        return self.tile.vault_bytes

    @property
    def dram_timing(self) -> DramTiming | None:
        """Timing of the DRAM; None: the memory is on buses."""
        return self.tile.dram_timing

    @property
    def on_board(self) -> bool:
        """Whether only a simulation at a board's pins runs the design."""
        return self.tile.on_board or self.host_data != "axi"

    @property
    def grid(self) -> tuple[int, int]:
        """Columns and rows of vaults."""
        return self.network.columns, self.network.rows

    @property
    def title(self) -> str:
        """Human-readable description."""
        return (
            f"chip of {self.network.columns} x {self.network.rows} vaults with processing engines "
            f"({self.pes})"
        )

    @property
    def module_name(self) -> str:
        """Default name of the top module."""
        return "chip"

    @property
    def two_clocks(self) -> bool:
        """Whether the memory has its own clock."""
        return self.tile.two_clocks

    def with_sram(self, kind: SramKind) -> Self:
        """A copy with all memories built as ``kind``.

        Raises:
            ConfigurationError: an unknown ``kind``.
        """
        tile = self.tile.with_sram(kind)
        return replace(self, tile=tile, network=replace(self.network, sram=kind))

    @property
    def pe(self) -> PeConfig:
        """Configuration of every PE, with the addresses that it can reach."""
        if not self.remote:
            return self.tile.pe
        return replace(self.tile.pe, address_bits=self.network.chip_address_bits)

    @property
    def digest(self) -> int:
        """64 bits that identify the configuration, and the version of VIP."""
        text = f"{version('vip-inference')} {describe(self)}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

    @property
    def host(self) -> HostConfig:
        """The configuration of the host port."""
        return HostConfig(
            pe=self.pe,
            columns=self.network.columns,
            rows=self.network.rows,
            pes=self.tile.pes,
            vault_address_bits=self.network.address_bits,
            tag_bits=self.network.tag_bits,
            id_bits=self.axi_id_bits,
            vault_counters=self.tile.vault.counters,
            network_counters=len(NetworkCounter) if self.network.counters and self.remote else 0,
            bases=self.host_data == "none",
        )

    @property
    def vaults(self) -> int:
        """Vaults of the chip."""
        return self.network.vaults

    @property
    def pes(self) -> int:
        """PEs of the chip."""
        return self.vaults * self.tile.pes

    @property
    def memory_bytes(self) -> int:
        """Bytes of the chip's DRAM, from address 0 on."""
        return self.vaults << self.network.address_bits
