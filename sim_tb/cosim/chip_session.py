"""A simulated chip, driven through its host ports: its Verilog, or another machine."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from hdl.axi import AxiResponse
from hdl.ports import WORD_BITS
from isa.image import DramImage
from memory.axi.layout import AxiConfig
from memory.model.device_model import device_setup
from sim_tb.dut.chip import TOP, build_chip
from sim_tb.harness.chip import AxiMemory, Kind, Memories, Operation, Outcome, Result
from sim_tb.harness.models import PERIOD_PS, clock_arguments
from sim_tb.runner.session import Session
from soc.chip.config import ChipConfig
from soc.host.register_types import WORD_BYTES
from soc.host.transport import BusError
from support.checks import Checks
from support.extras import need

from .engine import CosimError

__all__ = ["AXI_LATENCY", "ChipSession", "ChipSimulation", "Periods"]

_RESET_CYCLES = 8
#: Cycles after which an acknowledged write is in the DRAM and every counter includes it.
_SETTLE = 256
#: Cycles after which an access that has not been answered never will be.
_PATIENCE = 1_000_000
#: Bytes of DRAM that one operation moves at most.
_BLOCK_BYTES = 1 << 16
#: Cycles in which a memory on an AXI bus answers: some 250 ns, as through the controller of a
#: board's DDR3, at the clock of an FPGA.
AXI_LATENCY = 25
_AXI_PERIOD_NS = 10.0
#: With two clocks: cycles of the engines' in which the slowest of the memory's has seen a reset,
#: and those after which every copy of a counter is new (:class:`memory.crossing.CounterMirror`).
_SLOW_RESET_CYCLES = 64
_SLOW_SETTLE = 4096
#: The memory's clock is at most so many times as fast, or as slow, as the engines'.
MOST_RATIO = 8
_LEAST_PS, _MOST_PS = 200, 200_000

_CHECK = Checks(CosimError)


@dataclass(frozen=True, kw_only=True)
class Periods:
    """The periods of two clocks in a simulation.

    Attributes:
        engine_ps, memory_ps: of the engines' clock and of the memory's, in ps; even, 200..200,000,
            and neither more than 8 times the other.
        jitter_ps: by how much each edge of the memory's clock comes too early or too late, at
            random, at most; 0 .. a quarter of ``memory_ps``.

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
    """A chip in simulation, driven through its host ports, to be used in a ``with`` statement; a
    :class:`soc.host.transport.BlockingTransport` for :class:`soc.host.driver.Host`.

    The chip's time passes only while one of the methods is at work.

    Parameters:
        config: of the chip. Vaults with an AXI back end have a memory on their bus that moves a
            beat a cycle, in or out.
        image: the DRAM, ``config.memory_bytes``; the chip changes it. It holds a write some time
            after the write was acknowledged (:meth:`settle`).
        axi_latency: cycles after which the memory on an AXI bus answers, 1 or more.

    Attributes:
        cycles: since reset. seconds: that the simulation of them took on this machine.

    Raises:
        CosimError: the image is not of the chip's size; by each method, when an access is not
            answered, or a controller breaks a rule of the DRAM.
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
        self.cycles = 0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._start()
        try:
            memories = _memories(self.config, self.image, self.axi_latency)
            self._reset(memories)
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    @abstractmethod
    def __exit__(self, *error: Any) -> None:
        """End the simulation."""

    @abstractmethod
    def _start(self) -> None:
        """Make the simulation ready for its first operation, a reset."""

    @abstractmethod
    def _perform(self, operation: Operation) -> Result:
        """Perform one operation."""

    @property
    def period_ns(self) -> float:
        """Clock period in ns: that of the DRAM, or 10 where boards have theirs on AXI buses."""
        vault = self.config.tile.vault
        return _AXI_PERIOD_NS if isinstance(vault, AxiConfig) else vault.timing.tck_ns

    def reset(self) -> None:
        """Reset the chip, but not its DRAM."""
        self.seconds = 0.0
        self._reset()

    def run(self, cycles: int, *, until_interrupt: bool = False) -> Result:
        """Let time pass: ``cycles``, at least 1, or less if an interrupt comes."""
        return self._do(Operation(kind=Kind.RUN, count=max(1, cycles), stop=until_interrupt))

    def settle(self) -> None:
        """Let time pass until acknowledged writes are in the DRAM and have been counted."""
        self.run(_SLOW_SETTLE if self.config.tile.clocks.two else _SETTLE)

    # The transport.

    def read32(self, address: int) -> int:
        """See :class:`soc.host.transport.Transport`, also for the other methods."""
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

    def _reset(self, memories: Memories | None = None) -> None:
        two = self.config.tile.clocks.two
        cycles = _SLOW_RESET_CYCLES if two else _RESET_CYCLES
        operation = Operation(kind=Kind.RESET, count=cycles)
        self._do(operation if memories is None else replace(operation, memories=memories))
        if two:
            self.settle()

    def _do(self, operation: Operation) -> Result:
        result = self._perform(operation)
        self.cycles = result.cycles
        self.seconds += result.seconds
        for vault, rule in result.violations.items():
            raise CosimError(f"DRAM rule broken in vault {vault}: {rule}")
        return result

    def _access(self, access: str, operation: Operation) -> Result:
        result = self._do(replace(operation, limit=_PATIENCE))
        if result.outcome is Outcome.LATE:
            raise CosimError(
                f"{access} {operation.address:#x}: no answer within {_PATIENCE} cycles"
            )
        if result.response:
            response = AxiResponse(result.response).name
            raise BusError(access, operation.address, response)
        return result


class ChipSimulation(ChipSession):
    """The Verilog of a chip in Verilator. The first use of a configuration builds its simulator
    (some minutes).

    Parameters:
        config, image, axi_latency: see :class:`ChipSession`.
        periods: of the clocks of a chip with two; by default 800 ps both.
        outer: accesses are made by cocotbext-axi's managers, which are slow, not by a model in C++.
        trace: waveform file, ``.vcd`` or ``.fst``.
        progress: called now and then with the cycles so far.

    Raises:
        CosimError: as there, or the chip has one clock and ``periods`` are given.
        MissingExtraError: cocotbext-axi is wanted and not installed.
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
        folder = build_chip(config, trace.suffix.lstrip(".") or "?" if trace else "")
        arguments = clock_arguments(**vars(self.periods)) if config.tile.clocks.two else ()
        self._session = Session(folder, TOP, trace=trace, arguments=arguments)

    @property
    def period_ns(self) -> float:
        """As there; of two clocks, that of the engines."""
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


def _memories(config: ChipConfig, image: DramImage, axi_latency: int) -> Memories:
    """The DRAM of the vaults, each with its part of the image."""
    size = 1 << config.network.address_bits
    bases = [vault * size for vault in range(config.vaults)]
    path = str(image.path.absolute())
    vault = config.tile.vault
    if isinstance(vault, AxiConfig):
        lanes = vault.data_bits // WORD_BITS
        buses = tuple(
            AxiMemory(base=base, size=size, latency=axi_latency, lanes=lanes) for base in bases
        )
        return Memories(path=path, buses=buses)
    devices = tuple(
        device_setup(vault, base=base, noise=number + 1) for number, base in enumerate(bases)
    )
    return Memories(path=path, devices=devices)
