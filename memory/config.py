"""Configuration of a vault's memory: checked values, and sizes derived from them."""

from dataclasses import dataclass, field
from typing import Literal, get_args

from hdl.config import ConfigurationError, SramKind
from hdl.ports import COLUMN_BYTES
from support.checks import Checks
from support.errors import Shown

from .agent.config import AgentConfig
from .preload import check_preload
from .timing import DramTiming

#: ``open`` leaves a row open until another is requested; ``closed`` closes it after each access,
#: as the HMC does (thesis 5.2); ``adaptive`` closes it as soon as no request in the bank's command
#: queue accesses it next.
PagePolicy = Literal["open", "closed", "adaptive"]
#: Order of the fields of a vault's byte address, from the top (see :mod:`memory.address_map`).
AddressMap = Literal["row-bank-column", "bank-row-column", "row-column-bank"]
#: See :class:`memory.controller.first_ready.FirstReady` (also for "first-ready-timed"),
#: :class:`memory.controller.policies.InOrder` and :class:`memory.controller.learned.Learned`.
SchedulerPolicy = Literal["first-ready", "in-order", "first-ready-timed", "learned"]


_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class VaultConfig(Shown, line=False):
    """One vault's memory. The defaults are the thesis's (5.2, Table 7.1): 256 MiB.

    Attributes:
        banks: power of two, 2..64.
        rows: rows of a bank; power of two, 2..2**20.
        row_bytes: power of two, 64..8192.
        timing: of the DRAM.
        page_policy: see :data:`PagePolicy`.
        address_map: see :data:`AddressMap`.
        scheduler: policy of :mod:`memory.controller.policies` that selects requests and commands.
        transaction_queue: requests that the scheduler selects from; power of two, 4..64.
        command_queue: requests queued at each bank, in order; power of two, 2..32.
        agent: of the policy "learned"; the others have none.
        tag_bits: width of the tags on the port of the controller; 1..16.
        port_address_bits: width of byte addresses on the port; an access beyond the memory is
            answered with ``error``. 0, the default, means exactly ``address_bits``.
        counters: whether the counters of :mod:`memory.controller.counters` exist (else they read
            0).
        preload_bytes: of the vault's addresses, from ``preload_base`` on, that are on-chip memory
            (:class:`memory.preload.Preload`); 0, or a power of two, 256..2**20.
        preload_base: byte address in the vault; a multiple of ``preload_bytes``.
        sram: implementation of the data memories.

    Raises:
        ConfigurationError: a value outside its range.
    """

    banks: int = 16
    rows: int = 65536
    row_bytes: int = 256
    timing: DramTiming = field(default_factory=DramTiming)
    page_policy: PagePolicy = "open"
    address_map: AddressMap = "row-bank-column"
    scheduler: SchedulerPolicy = "first-ready"
    transaction_queue: int = 32
    command_queue: int = 8
    agent: AgentConfig = field(default_factory=AgentConfig, metadata={"optional": True})
    tag_bits: int = 9
    port_address_bits: int = 0
    counters: bool = True
    preload_bytes: int = 0
    preload_base: int = 0
    sram: SramKind = "behavioural"

    def __post_init__(self) -> None:
        _CHECK.power_of_two("banks", self.banks, 2, 64)
        _CHECK.power_of_two("rows", self.rows, 2, 1 << 20)
        _CHECK.power_of_two("row_bytes", self.row_bytes, 2 * COLUMN_BYTES, 8192)
        _CHECK.kind("timing", self.timing, DramTiming)
        if self.timing.trefi < 8 * self.banks:
            raise ConfigurationError(
                f"timing.trefi_ns must be at least 8 clocks for each of {self.banks} banks "
                f"({8 * self.banks} clocks), because banks refresh one after the other; not "
                f"{self.timing.trefi_ns!r} ns ({self.timing.trefi} clocks)"
            )
        _CHECK.one_of("page_policy", self.page_policy, get_args(PagePolicy))
        _CHECK.one_of("address_map", self.address_map, get_args(AddressMap))
        _CHECK.one_of("scheduler", self.scheduler, get_args(SchedulerPolicy))
        _CHECK.power_of_two("transaction_queue", self.transaction_queue, 4, 64)
        _CHECK.power_of_two("command_queue", self.command_queue, 2, 32)
        _CHECK.within("tag_bits", self.tag_bits, 1, 16)
        _CHECK.whole("port_address_bits", self.port_address_bits)
        if self.port_address_bits != 0:
            _CHECK.within("port_address_bits", self.port_address_bits, self.address_bits, 48)
        _CHECK.flag("counters", self.counters)
        check_preload(self.preload_bytes, self.preload_base, self.size_bytes)
        _CHECK.one_of("sram", self.sram, get_args(SramKind))
        _CHECK.kind("agent", self.agent, AgentConfig)

    @property
    def learns(self) -> bool:
        """Whether the scheduler has an agent."""
        return self.scheduler == "learned"

    @property
    def timed_turns(self) -> bool:
        """Whether the scheduler turns to the other direction only when a bank of it is ready by its
        own timers (:class:`memory.controller.first_ready.FirstReady`)."""
        return self.scheduler in ("first-ready-timed", "learned")

    @property
    def columns(self) -> int:
        """32-byte columns of a row."""
        return self.row_bytes // COLUMN_BYTES

    @property
    def bank_bits(self) -> int:
        """Bits of a bank number."""
        return (self.banks - 1).bit_length()

    @property
    def row_bits(self) -> int:
        """Bits of a row number."""
        return (self.rows - 1).bit_length()

    @property
    def column_bits(self) -> int:
        """Bits of a column number."""
        return (self.columns - 1).bit_length()

    @property
    def size_bytes(self) -> int:
        """Bytes of the vault; a power of two."""
        return self.banks * self.rows * self.row_bytes

    @property
    def address_bits(self) -> int:
        """Bits of a byte address within the vault."""
        return (self.size_bytes - 1).bit_length()

    @property
    def write_slots(self) -> int:
        """Writes whose data the controller can store."""
        return 2 * self.transaction_queue

    @property
    def request_address_bits(self) -> int:
        """Bits of a byte address on the port."""
        return self.port_address_bits or self.address_bits
