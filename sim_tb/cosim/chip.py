"""Cosimulation of a chip: one program on all engines, driven only through the AXI ports.

A session is a chip in simulation behind its host ports, as Verilog or as another model.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from hdl.axi import AxiResponse
from hdl.ports import WORD_BITS
from isa.image import DramImage
from isa.program import still_running
from isa.run import EngineEnd, Launch, Machine, Memory, RunResult
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from memory.model.device_model import device_setup
from noc.node.counters import NetworkCounter
from sim_tb.dut.chip import TOP, chip_design
from sim_tb.dut.top import trace_format
from sim_tb.harness.chip import AxiMemory, Kind, Operation, Outcome, Result
from sim_tb.harness.models import (
    PERIOD_PS,
    SETTLE_CYCLES,
    SLOW_RESET_CYCLES,
    SLOW_SETTLE_CYCLES,
    clock_arguments,
)
from sim_tb.runner.build import build
from sim_tb.runner.session import Session
from soc.chip.config import ChipConfig
from soc.host.driver import Host, HostTimeout
from soc.host.register_types import WORD_BYTES
from soc.host.transport import Blocking, BusError, run
from support.checks import Checks
from support.extras import need

from .engine import CosimError, TooLong

_RESET_CYCLES = 2
#: Cycles after which an unanswered access counts as lost.
_PATIENCE = 1_000_000
#: Maximum bytes of DRAM that one operation moves.
_BLOCK_BYTES = 1 << 16
#: Latency in cycles of a memory on an AXI bus: about 250 ns at an FPGA's clock, as through a
#: board's DDR3 controller.
AXI_LATENCY = 25
_AXI_PERIOD_NS = 10.0
#: The memory's clock is at most this many times as fast or as slow as the engines'.
MOST_RATIO = 8
_LEAST_PS, _MOST_PS = 200, 200_000

_CHECK = Checks(CosimError)


@dataclass(frozen=True)
class Periods:
    """The periods of the two clocks of a simulation.

    Attributes:
        engine_ps, memory_ps: periods of the engines' and of the memory's clock in ps; even,
            200..200,000, neither more than 8 times the other.
        jitter_ps: most by which each edge of the memory's clock is early or late, at random; 0 .. a
            quarter of ``memory_ps``.

    Raises:
        CosimError: a value outside its range.
    """

    engine_ps: int = PERIOD_PS
    memory_ps: int = PERIOD_PS
    jitter_ps: int = 0

    def __post_init__(self) -> None:
        for name in ("engine_ps", "memory_ps"):
            value = getattr(self, name)
            _CHECK.within(name, value, _LEAST_PS, _MOST_PS)
            if value % 2:
                raise CosimError(f"{name} must be even, not {value}")
        low, high = sorted((self.engine_ps, self.memory_ps))
        if high > MOST_RATIO * low:
            raise CosimError(
                f"memory_ps must be from 1/{MOST_RATIO} of engine_ps to {MOST_RATIO} times it "
                f"({-(-self.engine_ps // MOST_RATIO)} to {MOST_RATIO * self.engine_ps}), not "
                f"{self.memory_ps}"
            )
        _CHECK.within("jitter_ps", self.jitter_ps, 0, self.memory_ps // 4)


class ChipSession(ABC):
    """A chip in simulation, driven through its host ports: a context manager, and a
    :class:`soc.host.transport.BlockingTransport` for :class:`soc.host.driver.Host`.

    Simulated time passes only within its methods.

    Parameters:
        config: of the chip. Vaults with an AXI back end have a memory on their bus that moves one
            beat per cycle, in or out.
        image: the DRAM, of ``config.memory_bytes``, which the chip changes. A write reaches it some
            time after its acknowledgement (:meth:`settle`).
        axi_latency: latency in cycles of the memory on an AXI bus, at least 1.

    Attributes:
        cycles: since reset. seconds: host time that their simulation took.

    Raises:
        CosimError: the image is not of the chip's size; from each method: an access is not
            answered, or a controller breaks a DRAM rule.
    """

    def __init__(
        self, config: ChipConfig, image: DramImage, *, axi_latency: int = AXI_LATENCY
    ) -> None:
        if image.size != config.memory_bytes:
            raise CosimError(
                f"the image has {image.size} bytes, the chip's DRAM {config.memory_bytes}"
            )
        self.config = config
        self.image = image
        self.axi_latency = axi_latency
        self._errors = (0, 0)
        self.cycles = 0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._start()
        try:
            self._reset(**self._memories())
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    @abstractmethod
    def __exit__(self, *error: Any) -> None:
        """End the simulation."""

    @abstractmethod
    def _start(self) -> None:
        """Prepare the simulation for its first operation, a reset."""

    @abstractmethod
    def _perform(self, operation: Operation) -> Result:
        """Perform one operation."""

    @property
    def period_ns(self) -> float:
        """Clock period in ns: that of the DRAM, or 10 with AXI buses to a board's memory."""
        vault = self.config.tile.vault
        return vault.timing.tck_ns if isinstance(vault, VaultConfig) else _AXI_PERIOD_NS

    def reset(self) -> None:
        """Reset the chip, but not its DRAM."""
        self.seconds = 0.0
        self._reset()

    def fail(self, begin: int, end: int) -> None:
        """Let memories on AXI buses answer DRAM addresses from ``begin`` to below ``end`` with
        errors, and no others. No access may be in flight."""
        self._errors = (begin, end)
        self.perform(Operation(kind=Kind.RUN, count=1, **self._memories()))

    def run(self, cycles: int, *, until_interrupt: bool = False) -> Result:
        """Let ``cycles`` (at least 1) pass, or fewer if an interrupt comes first."""
        return self.perform(Operation(kind=Kind.RUN, count=max(1, cycles), stop=until_interrupt))

    def settle(self) -> None:
        """Let time pass until acknowledged writes have reached the DRAM and been counted."""
        self.run(SLOW_SETTLE_CYCLES if self.config.tile.clocks.two else SETTLE_CYCLES)

    # The transport.

    def read32(self, address: int) -> int:
        """See :class:`soc.host.transport.Transport`, as for the other methods."""
        operation = Operation(kind=Kind.READ_REGISTER, address=address, count=WORD_BYTES)
        return int.from_bytes(self._access("read of register", operation).data, "little")

    def write32(self, address: int, value: int) -> None:
        self.write_block(address, [value])

    def write_block(self, address: int, words: Sequence[int]) -> None:
        content = b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)
        self._access(
            "write to register",
            Operation(kind=Kind.WRITE_REGISTERS, address=address, count=len(content), data=content),
        )

    def read_memory(self, address: int, length: int) -> bytes:
        blocks = []
        for start in range(address, address + length, _BLOCK_BYTES):
            count = min(_BLOCK_BYTES, address + length - start)
            operation = Operation(kind=Kind.READ_MEMORY, address=start, count=count)
            blocks.append(self._access("read of the DRAM at", operation).data)
        return b"".join(blocks)

    def write_memory(self, address: int, content: bytes) -> None:
        for start in range(0, len(content), _BLOCK_BYTES):
            block = content[start : start + _BLOCK_BYTES]
            operation = Operation(
                kind=Kind.WRITE_MEMORY, address=address + start, count=len(block), data=block
            )
            self._access("write to the DRAM at", operation)

    def wait_interrupt(self, seconds: float) -> None:
        self.run(round(seconds / (self.period_ns * 1e-9)), until_interrupt=True)

    # The operations.

    def _reset(self, **memories: Any) -> None:
        two = self.config.tile.clocks.two
        cycles = SLOW_RESET_CYCLES if two else _RESET_CYCLES
        self.perform(Operation(kind=Kind.RESET, count=cycles, **memories))
        if two:
            self.settle()

    def _memories(self) -> dict[str, Any]:
        """Fields of an operation that describe each vault's DRAM and its part of the image."""
        config, vault = self.config, self.config.tile.vault
        size = 1 << config.network.address_bits
        bases = [number * size for number in range(config.vaults)]
        image = str(self.image.path.absolute())
        if isinstance(vault, AxiConfig):
            lanes = vault.data_bits // WORD_BITS
            buses = tuple(
                AxiMemory(
                    base=base,
                    size=size,
                    latency=self.axi_latency,
                    lanes=lanes,
                    errors=(
                        max(self._errors[0] - base, 0),
                        max(self._errors[1] - base, 0),
                    ),
                )
                for base in bases
            )
            return {"image": image, "buses": buses}
        devices = tuple(
            device_setup(config.tile.dram, base=base, noise=number + 1)
            for number, base in enumerate(bases)
        )
        return {"image": image, "devices": devices}

    def perform(self, operation: Operation) -> Result:
        """Perform one operation."""
        result = self._perform(operation)
        self.cycles = result.cycles
        self.seconds += result.seconds
        for vault, rule in result.violations.items():
            raise CosimError(f"DRAM rule broken in vault {vault}: {rule}")
        return result

    def _access(self, access: str, operation: Operation) -> Result:
        result = self.perform(replace(operation, limit=_PATIENCE))
        if result.outcome is Outcome.LATE:
            raise TooLong(f"{access} {operation.address:#x}: no answer within {_PATIENCE} cycles")
        if result.response:
            response = AxiResponse(result.response).name
            raise BusError(access, operation.address, response)
        return result


class ChipSimulation(ChipSession):
    """The Verilog of a chip in Verilator. The first use of a configuration builds its simulator
    (a few minutes).

    Parameters:
        config, image, axi_latency: see :class:`ChipSession`.
        periods: of the clocks of a chip with two; by default both 800 ps.
        outer: cocotbext-axi's managers, which are slow, make the accesses instead of a C++ model.
        trace: waveform file, ``.vcd`` or ``.fst``.
        progress: called periodically with the cycles so far.

    Raises:
        CosimError: as for :class:`ChipSession`; or ``periods`` are given for a chip with one clock.
        MissingExtraError: cocotbext-axi is requested and not installed.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
    """

    def __init__(
        self,
        config: ChipConfig,
        image: DramImage,
        *,
        outer: bool = False,
        trace: Path | None = None,
        progress: Callable[[int], None] | None = None,
        axi_latency: int = AXI_LATENCY,
        periods: Periods | None = None,
    ) -> None:
        super().__init__(config, image, axi_latency=axi_latency)
        if periods is not None and not config.tile.clocks.two:
            raise CosimError("a chip with one clock has no periods (clocks.domains must be 'two')")
        self.periods = periods or Periods()
        if outer:
            need("cocotbext.axi", "accesses by another master")
        self.outer = outer
        self._progress = progress
        folder = build(chip_design(config, trace_format(trace)))
        arguments = clock_arguments(**vars(self.periods)) if config.tile.clocks.two else ()
        self._session = Session(folder, TOP, trace=trace, arguments=arguments)

    @property
    def period_ns(self) -> float:
        """Clock period in ns, with two clocks that of the engines."""
        if self.config.tile.clocks.two:
            return self.periods.engine_ps / 1000
        return super().period_ns

    def _start(self) -> None:
        self._session.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)

    def _perform(self, operation: Operation) -> Result:
        outer = self.outer and operation.kind not in (Kind.RESET, Kind.RUN)
        (result,) = self._session.run_many([replace(operation, outer=outer)], self._progress)
        return result


def run_launch(
    chip: ChipSession,
    launch: Launch,
    *,
    pes: Iterable[int] | None = None,
    counters: bool = True,
) -> RunResult:
    """Load a program into engines of a simulated chip, run it to its end, and return the result.

    Parameters:
        launch: an engine that runs longer than its ``max_cycles`` is an error. pes: None: all.
        counters: whether to read the counters, if there are any; on a chip of 32 vaults this takes
            about 500,000 cycles.

    Raises:
        CosimError: an engine does not end in time (the message names those that faulted), or the
            launch has a stop or limits.
        soc.host.transport.HostError: the chip can't take the program or the address.
    """
    if launch.stop_after is not None or launch.limits is not None:
        raise CosimError("the host of a chip does not stop or limit its engines")
    host = Host(Blocking(chip))
    period = chip.period_ns * 1e-9
    chosen = None if pes is None else tuple(pes)
    run(host.identify())
    loading = chip.cycles
    run(host.load(launch.program, chosen))
    loading = chip.cycles - loading
    before = _of_vaults(chip, host, counters)
    started = chip.cycles
    run(host.launch(chosen, parameters=launch.parameters))
    late = ""
    running = True
    while running and not late:
        left = started + launch.max_cycles - chip.cycles
        try:
            run(host.wait(chosen, timeout=left * period))
            running = False
        except HostTimeout as error:
            # An interrupt, perhaps from a fault, makes the host give up earlier.
            if chip.cycles >= started + launch.max_cycles:
                late = f"{still_running('the program', launch.max_cycles, 'cycle')} ({error})"
    cycles = chip.cycles - started
    faults = run(host.faults())
    if late:
        raise TooLong("; ".join([*(f"{fault}" for fault in faults), late]))
    after = _of_vaults(chip, host, counters)
    counted = range(chip.config.pes if counters and chip.config.pe.counters else 0)
    ends = {end.pe: end for end in faults}
    engines = []
    for pe in range(chip.config.pes):
        vault, slot = divmod(pe, chip.config.tile.pes)
        state = "halted" if chosen is None or pe in chosen else "idle"
        end = ends.get(pe) or EngineEnd(state=state, pe=pe, vault=vault, slot=slot)
        values = _named(run(host.counters(pe))) if pe in counted else {}
        program_cycles = values.get("CYCLES", cycles)
        engines.append(
            replace(end, counters=values, cycles=program_cycles, elapsed_cycles=program_cycles)
        )
    return RunResult(
        engines=tuple(engines),
        vaults=tuple(_less(one, other) for one, other in zip(after[0], before[0], strict=True)),
        network=tuple(_less(one, other) for one, other in zip(after[1], before[1], strict=True)),
        host_cycles=cycles,
        loading=loading,
        tck_ns=chip.period_ns,
        simulated_cycles=chip.cycles,
        seconds=chip.seconds,
    )


_Counts = tuple[Mapping[str, int], ...]


def _of_vaults(chip: ChipSession, host: Host, counted: bool) -> tuple[_Counts, _Counts]:
    """Counters of all vaults and nodes, after they have settled."""
    chip.settle()
    config = chip.config
    vaults = range(config.vaults if counted and config.tile.vault.counters else 0)
    nodes = range(config.vaults if counted and config.host.network_counters else 0)
    network = [run(host.network_counters(vault)) for vault in nodes]
    memories = [_named(run(host.vault_counters(vault))) for vault in vaults]
    if config.tile.line_buffer:
        lines = [_named(run(host.line_counters(vault))) for vault in vaults]
        memories = [{**one, **other} for one, other in zip(memories, lines, strict=True)]
    return (
        tuple(memories),
        tuple({item.name: node[item] for item in NetworkCounter} for node in network),
    )


def _named(counters: Mapping[Any, int]) -> Mapping[str, int]:
    return {item.name: value for item, value in counters.items()}


def _less(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return {name: value - other[name] for name, value in one.items()}


class HostMemory:
    """The DRAM of a chip, simulated or on a board, through its host."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, address: int, n: int, /) -> bytes:
        return run(self._host.read(address, n))

    def write(self, address: int, data: bytes, /) -> None:
        run(self._host.write(address, data))


class ChipMachine(Machine):
    """A machine made of a chip and its host, which loads programs, launches and waits.

    Parameters:
        config: of the chip.
        session: opens a session with an image and a function to call with the cycles so far.
        preload: data bypass the host, which at 8 bytes per cycle may take longer to write them than
            the engines to process them.
        counters: as for :func:`run_launch`.

    Raises:
        CosimError: ``preload`` on a chip with preload memories (:class:`memory.preload.Preload`).
    """

    def __init__(
        self,
        config: ChipConfig,
        session: Callable[[DramImage, Callable[[int], None]], ChipSession],
        *,
        preload: bool = False,
        counters: bool = True,
    ) -> None:
        if preload and config.tile.vault.preload_bytes:
            raise CosimError(
                "data put into the DRAM are not in a preload memory: the host has to write them"
            )
        self.config = config
        self._open, self._preload, self._counters = session, preload, counters
        self._stack = ExitStack()
        self._chip: ChipSession | None = None
        self._progress: Callable[[int], None] | None = None

    def __exit__(self, *error: Any) -> None:
        self._chip = None
        self._stack.__exit__(*error)

    def _session_of(self, image: DramImage) -> ChipSession:
        """The session of the chip whose DRAM is ``image``."""
        if self._chip is None or self._chip.image is not image:
            self._stack.close()
            self._chip = self._stack.enter_context(self._open(image, self._report))
        return self._chip

    def _report(self, cycles: int) -> None:
        if self._progress is not None:
            self._progress(cycles)

    def memory(self, image: DramImage) -> Memory:
        """With ``preload`` the image itself, otherwise the DRAM through the host."""
        chip = self._session_of(image)
        return image if self._preload else HostMemory(Host(Blocking(chip)))

    def restart(self) -> None:
        """Reset the chip, but not its DRAM."""
        if self._chip is not None:
            self._chip.reset()

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch on all engines; on those beyond ``engines`` the program ends at once.

        Raises:
            CosimError: as for :func:`run_launch`.
            soc.host.transport.HostError: the chip can't take the program or the address.
        """
        self._progress = progress
        return run_launch(self._session_of(image), launch, counters=self._counters)
