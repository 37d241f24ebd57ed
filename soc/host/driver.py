"""The host driver: a chip's ports as methods.

Over a transport of plain functions (:mod:`soc.host.transport`)::

    host = Host(Blocking(transport))
    run(host.write(0x1000, block))
    run(host.load(assemble(text)))
    run(host.launch(parameters=0x1000))
    run(host.wait(timeout=1.0))
    for fault in run(host.faults()):
        print(fault)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from isa.faults import FaultCause
from isa.iss.explain import fault_line
from isa.program import Program
from isa.run import EngineEnd
from isa.table import ISA_VERSION
from memory.controller.counters import LATENCY_LIMITS, VaultCounter
from memory.line_buffer.layout import LineCounter
from pe.interface import PeCounter, PeState

from .register_map import CHIP, GROUP_PES, IDENTITY, MAP_VERSION, PE, VAULT
from .register_types import WORD_BYTES, Block
from .transport import HostError, Transport

_WORD_BITS = WORD_BYTES * 8
_WORD_MASK = (1 << _WORD_BITS) - 1


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


class HostTimeout(HostError):
    """Processing engines (PEs) that did not end in time; the message names them."""


class Host:
    """Drives a chip through a :class:`soc.host.transport.Transport`.

    Methods with ``pes`` act on the PEs with these numbers, by default all. Requests that the chip
    can't serve are refused before they have any effect. Only one host may drive a chip at a time;
    after a chip reset, create a new one.

    Parameters:
        transport: to the chip's control and data ports.

    Raises (every method):
        HostError: a PE, vault or address that the chip lacks, a program that does not fit, or a
            chip unknown to this driver.
        soc.host.transport.BusError: the chip refused an access.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._identity: ChipIdentity | None = None
        #: Program that this driver loaded last into each PE.
        self._programs: dict[int, Program] = {}

    async def identify(self) -> ChipIdentity:
        """The properties of the chip."""
        if self._identity is None:
            if (answer := await self._read(CHIP, "IDENTITY")) != IDENTITY:
                raise HostError(f"not a VIP chip: the identity is {answer:#x}, not {IDENTITY:#x}")
            version = await self._fields("VERSION")
            for subject, value, supported in (
                ("register map", version["map"], MAP_VERSION),
                ("instruction set", version["isa"], ISA_VERSION),
            ):
                if value != supported:
                    raise HostError(
                        f"the chip's {subject} has version {value}, this driver knows {supported}"
                    )
            grid, pes = await self._fields("GRID"), await self._fields("PES")
            memory, counters = await self._fields("MEMORY"), await self._fields("COUNTERS")
            self._identity = ChipIdentity(
                map_version=version["map"],
                isa_version=version["isa"],
                columns=grid["columns"],
                rows=grid["rows"],
                pe_count=pes["total"],
                pes_per_vault=pes["per_vault"],
                instruction_words=await self._read(CHIP, "INSTRUCTION_WORDS"),
                scratchpad_bytes=await self._read(CHIP, "SCRATCHPAD_BYTES"),
                vault_address_bits=memory["vault_bits"],
                pe_counters=bool(counters["pe"]),
                vault_counters=bool(counters["vault"]),
                network_counters=counters["network"],
            )
        return self._identity

    async def load(
        self, program: Program | Sequence[int], pes: Iterable[int] | None = None
    ) -> None:
        """Load a program (or its words) into PEs that do not run."""
        if not isinstance(program, Program):
            program = Program(tuple(program))
        words = program.words
        identity = await self.identify()
        if not 1 <= len(words) <= identity.instruction_words:
            raise HostError(
                f"a program has 1 to {identity.instruction_words} words on this chip, "
                f"not {len(words)}"
            )
        chosen = await self._resting(pes, "loaded")
        await self._select(chosen)
        await self._transport.write_block(CHIP.address("PROGRAM"), words)
        self._programs.update(dict.fromkeys(chosen, program))

    async def launch(
        self,
        pes: Iterable[int] | None = None,
        *,
        parameters: int | Mapping[int, int] = 0,
    ) -> None:
        """Start the programs of PEs that are not running. PEs with programs of the same length
        start within a few cycles of each other.

        Parameters:
            parameters: DRAM address of the parameter block of all, or of each PE by its number.
        """
        identity = await self.identify()
        chosen = await self._resting(pes, "launched")
        unloaded = [pe for pe in chosen if pe not in self._programs]
        if unloaded:
            raise HostError(f"PE {unloaded[0]} can't be launched: it has no program")
        pointers = dict.fromkeys(chosen, parameters) if isinstance(parameters, int) else parameters
        for pe in chosen:
            if pe not in pointers:
                raise HostError(f"PE {pe} can't be launched: it has no parameter block")
            self._check_memory(identity, pointers[pe], 1, f"parameter block of PE {pe}")
        await self._write(CHIP, "INTERRUPT_STATUS", _WORD_MASK)
        if isinstance(parameters, int):
            await self._select(chosen)
            await self._parameters(CHIP, 0, parameters)
        else:
            for pe in chosen:
                await self._parameters(PE, pe, pointers[pe])
        lengths = {len(self._programs[pe].words) for pe in chosen}
        for length in sorted(lengths):
            await self._select([pe for pe in chosen if len(self._programs[pe].words) == length])
            await self._write(CHIP, "START", length)

    async def stop(self, pes: Iterable[int] | None = None) -> None:
        """Ask running PEs to halt; :meth:`wait` for them to end."""
        await self._select(await self._chosen(pes))
        await self._write(CHIP, "STOP", 0)

    async def wait(
        self, pes: Iterable[int] | None = None, *, timeout: float, poll: float = 1e-4
    ) -> None:
        """Wait until none of the PEs is running.

        Parameters:
            timeout: seconds of the chip's time (the interrupt may come earlier than a poll, so a
                little less is possible).
            poll: seconds between polls if no interrupt arrives.

        Raises:
            HostTimeout: a PE is still running; it continues.
        """
        chosen = set(await self._chosen(pes))
        done, fault = CHIP.register("INTERRUPT_ENABLE").fields
        await self._write(CHIP, "INTERRUPT_ENABLE", done.place(1) | fault.place(1))
        left = timeout
        while running := chosen & set(await self._bitmap("RUNNING")):
            if left <= 0:
                raise HostTimeout(
                    f"after {timeout:g} s {_names(running)} still "
                    f"{'runs' if len(running) == 1 else 'run'}"
                )
            await self._transport.wait_interrupt(min(poll, left))
            # A fault of one PE does not end the others; a cleared one does not end later waits.
            await self._write(CHIP, "INTERRUPT_STATUS", _WORD_MASK)
            left -= poll

    async def running(self) -> tuple[int, ...]:
        """The running PEs."""
        return await self._bitmap("RUNNING")

    async def halted(self) -> tuple[int, ...]:
        """The PEs whose program ended or was stopped."""
        return await self._bitmap("HALTED")

    async def faulted(self) -> tuple[int, ...]:
        """The PEs that stopped at a fault."""
        return await self._bitmap("FAULTED")

    async def status(self, pe: int) -> EngineEnd:
        """The present state of PE ``pe``, without what it has counted and holds; with why and where
        it stopped if it stands at a fault."""
        await self._chosen([pe])
        identity = await self.identify()
        word = await self._read(PE, "STATUS", page=pe)
        fields = {field.name: field.extract(word) for field in PE.register("STATUS").fields}
        state, pc = PeState(fields["state"]), fields["pc"]
        cause, program = FaultCause(fields["cause"]), self._programs.get(pe)
        fault = ""
        if state is PeState.FAULTED and program is not None:
            fault = fault_line(program, cause, pc)
        return EngineEnd(
            state=state.name.lower(),
            pe=pe,
            vault=pe // identity.pes_per_vault,
            slot=pe % identity.pes_per_vault,
            cause=cause,
            pc=pc,
            memory_error=bool(fields["memory_error"]),
            fault=fault,
        )

    async def faults(self) -> tuple[EngineEnd, ...]:
        """The faults: cause and place, for each PE that stopped at one."""
        return tuple([await self.status(pe) for pe in await self.faulted()])

    async def counters(self, pe: int) -> dict[PeCounter, int]:
        """The performance counters of PE ``pe``: of its last launch."""
        await self._chosen([pe])
        return {counter: await self._counter(PE, "COUNTER", counter, pe) for counter in PeCounter}

    async def vault_counters(self, vault: int) -> dict[VaultCounter, int]:
        """The counters of a vault's memory since reset, except the histogram."""
        await self._check_vault(vault)
        return {
            counter: await self._counter(VAULT, "COUNTER", counter, vault)
            for counter in VaultCounter
            if counter is not VaultCounter.LATENCY_0
        }

    async def line_counters(self, vault: int) -> dict[LineCounter, int]:
        """The counters of a vault's line buffer since reset; all 0 if it has none."""
        await self._check_vault(vault)
        return {
            counter: await self._counter(VAULT, "COUNTER", counter, vault)
            for counter in LineCounter
        }

    async def vault_latencies(self, vault: int) -> tuple[int, ...]:
        """Requests of a vault's memory since reset by their time to the column command: below each
        of :data:`memory.controller.counters.LATENCY_LIMITS`, and beyond."""
        await self._check_vault(vault)
        return tuple(
            [
                await self._counter(VAULT, "COUNTER", VaultCounter.LATENCY_0 + index, vault)
                for index in range(len(LATENCY_LIMITS) + 1)
            ]
        )

    async def network_counters(self, vault: int) -> tuple[int, ...]:
        """The counters of a vault's node in the network since reset."""
        identity = await self._check_vault(vault)
        return tuple(
            [
                await self._counter(VAULT, "NETWORK", index, vault)
                for index in range(identity.network_counters)
            ]
        )

    async def read(self, address: int, length: int) -> bytes:
        """``length`` bytes of the DRAM from byte ``address`` on."""
        self._check_memory(await self.identify(), address, length, "read")
        return await self._transport.read_memory(address, length) if length else b""

    async def write(self, address: int, content: bytes) -> None:
        """Write ``content`` to the DRAM at byte ``address``."""
        self._check_memory(await self.identify(), address, len(content), "write")
        if content:
            await self._transport.write_memory(address, content)

    async def place_vault(self, vault: int, base: int) -> None:
        """Let the memory of a vault begin at byte ``base`` of its bus, a multiple of 4096, while no
        PE runs; only of chips with ``host_data`` "none"."""
        await self._check_vault(vault)
        halves = [base & _WORD_MASK, base >> _WORD_BITS]
        await self._transport.write_block(CHIP.address("BASE_LOW", vault), halves)

    # Registers.

    async def _read(self, block: Block, name: str, index: int = 0, *, page: int = 0) -> int:
        return await self._transport.read32(block.address(name, index, page=page))

    async def _write(
        self, block: Block, name: str, value: int, index: int = 0, *, page: int = 0
    ) -> None:
        await self._transport.write32(block.address(name, index, page=page), value)

    async def _parameters(self, block: Block, page: int, address: int) -> None:
        halves = [address & _WORD_MASK, address >> _WORD_BITS]
        await self._transport.write_block(block.address("PARAMETERS_LOW", page=page), halves)

    async def _fields(self, name: str) -> dict[str, int]:
        word = await self._read(CHIP, name)
        return {field.name: field.extract(word) for field in CHIP.register(name).fields}

    async def _counter(self, block: Block, name: str, index: int, page: int) -> int:
        low = await self._read(block, f"{name}_LOW", index, page=page)
        return low | await self._read(block, f"{name}_HIGH", index, page=page) << _WORD_BITS

    async def _bitmap(self, name: str) -> tuple[int, ...]:
        """Numbers of the PEs whose bit is set."""
        identity = await self.identify()
        numbers = []
        for group in range(0, identity.pe_count, GROUP_PES):
            word = await self._read(CHIP, name, group // GROUP_PES)
            numbers += [group + bit for bit in range(GROUP_PES) if word >> bit & 1]
        return tuple(numbers)

    async def _select(self, pes: Sequence[int]) -> None:
        identity = await self.identify()
        everyone = len(pes) == identity.pe_count
        await self._write(CHIP, "SELECT_ALL", int(everyone))
        if everyone:
            return
        groups: dict[int, int] = {}
        for pe in pes:
            groups[pe // GROUP_PES] = groups.get(pe // GROUP_PES, 0) | 1 << pe % GROUP_PES
        for group, bits in groups.items():
            await self._write(CHIP, "SELECT", bits, group)

    # Checks.

    async def _chosen(self, pes: Iterable[int] | None) -> tuple[int, ...]:
        count = (await self.identify()).pe_count
        chosen = tuple(range(count)) if pes is None else tuple(sorted(set(pes)))
        if not chosen:
            raise HostError("no PE is selected")
        for pe in chosen:
            if not 0 <= pe < count:
                raise HostError(f"there is no PE {pe}; this chip has PEs 0 to {count - 1}")
        return chosen

    async def _resting(self, pes: Iterable[int] | None, action: str) -> tuple[int, ...]:
        chosen = await self._chosen(pes)
        if running := set(chosen) & set(await self.running()):
            raise HostError(f"{_names(running)} can't be {action} while running")
        return chosen

    async def _check_vault(self, vault: int) -> ChipIdentity:
        identity = await self.identify()
        if not 0 <= vault < identity.vaults:
            raise HostError(
                f"there is no vault {vault}; this chip has vaults 0 to {identity.vaults - 1}"
            )
        return identity

    def _check_memory(
        self, identity: ChipIdentity, address: int, length: int, subject: str
    ) -> None:
        if address < 0 or length < 0 or address + length > identity.memory_bytes:
            raise HostError(
                f"{subject}: {length} bytes at {address:#x} are not in the DRAM, which ends at "
                f"{identity.memory_bytes:#x}"
            )


def _names(pes: Iterable[int]) -> str:
    """The PEs ``pes``, the first few of them by number."""
    numbers = sorted(pes)
    listed = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
    return f"PE {listed}" if len(numbers) == 1 else f"PEs {listed}"
