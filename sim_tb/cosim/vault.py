"""Cosimulation of a vault with its engines: one program on all of them.

Engines and their shared memory are Verilog; the DRAM is a model that checks every command.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from isa.image import DramImage
from isa.program import Program, still_running
from isa.run import EngineEnd, Launch, Machine, RunResult
from memory.controller.counters import LAG_CYCLES, LATENCY_LIMITS, VaultCounter
from memory.line_buffer.layout import LineCounter
from memory.model.device_model import device_setup
from sim_tb.dut.chip import TileTop, tile_design
from sim_tb.dut.top import trace_format
from sim_tb.harness.engine import NEVER, HostJob, Outcome
from sim_tb.harness.models import SETTLE_CYCLES
from sim_tb.harness.tile import TileJob, TileResult
from sim_tb.runner.build import build
from sim_tb.runner.session import Session
from soc.tile.config import VaultTileConfig

from .engine import CosimError, TooLong, WasReset, check_launch

#: Length in cycles of the intervals for which the DRAM's traffic is reported.
WINDOW_CYCLES = 256

#: Cycles after ``stop`` within which an engine must complete the instructions that it has issued.
_STOP = 1_000_000


def check_alone(config: VaultTileConfig) -> None:
    """Refuse a vault that can't run without a chip around it.

    Raises:
        CosimError: it has two clocks, or a preload memory, which only a host fills.
    """
    if config.clocks.two:
        raise CosimError(
            "a vault alone runs with one clock (clocks.domains must be 'one'); a chip may have two"
        )
    if config.vault.preload_bytes:
        raise CosimError(
            "the host of a chip fills a preload memory; a vault alone has none (preload_bytes must "
            "be 0)"
        )


def launched_engines(launch: Launch, config: VaultTileConfig, engines: int | None) -> int:
    """Number of engines that a run of a vault launches.

    Raises:
        CosimError: a value is outside its range, or the program does not fit.
    """
    count = config.pes if engines is None else engines
    if not 1 <= count <= config.pes:
        raise CosimError(f"{count} engines can't be launched in a vault of {config.pes}")
    check_launch(launch, config.pe)
    if launch.stop_after is not None or launch.limits is not None:
        raise CosimError("the host of a vault does not stop or limit its engines")
    return count


class VaultSimulation(Machine):
    """The simulator of a vault, which runs one program after another.

    Parameters:
        config: of the vault and its engines. Its first use builds the simulator (about a minute).
        trace: file for the waveforms of all runs, ``.vcd`` or ``.fst``.

    Raises:
        CosimError: as for :func:`check_alone`.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """

    _session: Session

    def __init__(self, config: VaultTileConfig, *, trace: Path | None = None) -> None:
        check_alone(config)
        self.config = config
        folder = build(tile_design(config, trace_format(trace)))
        self._session = Session(folder, TileTop.name, trace=trace)

    def run(
        self,
        launch: Launch,
        image: DramImage,
        *,
        engines: int | None = None,
        reset: bool = True,
        reset_after: int = NEVER,
        progress: Callable[[int], None] | None = None,
    ) -> RunResult:
        """Run a launch on the engines.

        All engines are loaded with the program and launched in the same cycle. The start registers
        (:mod:`isa.launch`) tell it its engine; the vault has index 0 and is alone in its chip.

        Parameters:
            image: the memory, of the vault's size; the engines change it.
            engines: number of engines launched, from slot 0 on; None: all. The others stay idle.
            reset: reset engines and DRAM first; False only after a run that was reset.
            reset_after: see :meth:`sim_tb.cosim.engine.PeSimulation.job`; the DRAM is reset with
                the engines, and keeps its contents.
            progress: called periodically with the cycles so far.

        Raises:
            WasReset: the run ended with the reset for which it had asked.
            CosimError: the program does not fit, an engine does not end in time, the controller
                breaks a rule of the DRAM, or there are not that many engines.
            sim_tb.runner.session.SessionError: the simulator ended by itself.
        """
        count = launched_engines(launch, self.config, engines)
        host = HostJob(
            words=launch.program.words,
            parameters=launch.parameters,
            max_cycles=launch.max_cycles,
            stop_cycles=_STOP,
            reset=reset,
            reset_after=reset_after,
        )
        job = TileJob(
            host=host,
            memory=str(image.path.absolute()),
            setup=device_setup(self.config.dram),
            engines=count,
            lag=LAG_CYCLES,
            settle=SETTLE_CYCLES,
            window=WINDOW_CYCLES,
        )
        (result,) = self._session.run_many([job], progress)
        return _result(result, self.config, launch.program, launch.max_cycles)


def _result(
    result: TileResult, config: VaultTileConfig, program: Program, max_cycles: int
) -> RunResult:
    if any(engine.outcome is Outcome.WAS_RESET for engine in result.engines):
        raise WasReset("the vault was reset")
    if result.violation:
        raise CosimError(f"DRAM rule broken: {result.violation}")
    late = [
        f"engine {slot} hangs: still running after {max_cycles} cycles and a stop"
        if engine.outcome is Outcome.HUNG
        else still_running(f"engine {slot}", max_cycles, "cycle")
        for slot, engine in enumerate(result.engines)
        if engine.outcome is not Outcome.ENDED
    ]
    ends = tuple(engine.end(program, config.pe, slot) for slot, engine in enumerate(result.engines))
    if late:
        raise TooLong("; ".join([*fault_lines(ends), late[0]]))
    return vault_result(
        ends,
        config,
        counters=result.counters,
        commands=result.commands,
        windows=result.windows,
        seconds=result.wall_seconds,
    )


def fault_lines(ends: Iterable[EngineEnd]) -> list[str]:
    """One line per faulted engine."""
    return [f"engine {end.slot}: {end.fault}" for end in ends if end.fault]


def vault_result(
    ends: tuple[EngineEnd, ...],
    config: VaultTileConfig,
    *,
    counters: Sequence[int],
    commands: Mapping[str, int],
    windows: tuple[tuple[int, int], ...],
    seconds: float,
) -> RunResult:
    """The result of a vault's run; ``counters`` are those of its memory, by index."""
    first = int(VaultCounter.LATENCY_0)
    names = [*(f"<{limit}" for limit in LATENCY_LIMITS), "more"]
    return RunResult(
        engines=ends,
        vaults=({item.name: counters[item] for item in _named_counters(config)},),
        latencies=dict(zip(names, counters[first:], strict=False)),
        commands=commands,
        windows=windows,
        window_cycles=WINDOW_CYCLES,
        tck_ns=config.dram.timing.tck_ns,
        simulated_cycles=commands["cycles"],
        seconds=seconds,
    )


def _named_counters(config: VaultTileConfig) -> list[VaultCounter | LineCounter]:
    """The counters of a vault of ``config``, except the histogram of latencies."""
    return [
        *(item for item in VaultCounter if item < VaultCounter.LATENCY_0),
        *(LineCounter if config.line_buffer else ()),
    ]
