"""The verb ``cosim``: a program on Verilog, or on the timing model, of an engine or a chip."""

from dataclasses import dataclass
from pathlib import Path

from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, RunResult
from pe.config import PeConfig
from sim_tb.cosim.chip import run_launch
from sim_tb.cosim.compare import Comparison, compare_run
from sim_tb.cosim.difference import COMMITS
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation
from sim_tb.cosim.machine import Machine, open_chip, open_engine
from sim_tb.timed.engine.pe_model import PeModel
from sim_tb.waves.activity import Activity
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json
from soc.host.driver import Host
from soc.host.transport import Blocking
from soc.host.transport import run as wait_for
from support.errors import VipError
from support.files import check_regular, open_without_waiting, write_atomically
from vip.configurations import Design, design, engine
from vip.programs import Dump, fill, load_program
from vip.progress import Progress, counting, silent

from .difference import Located, Locator
from .waves import waves

__all__ = ["ChipRun", "EngineRun", "activity_json", "chip_json", "cosim"]

#: Bytes that the host writes to a chip at a time.
_BLOCK_BYTES = 1 << 20
_STAGE = "cosimulation (cycles)"


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """A run on one engine.

    Attributes:
        config: of the engine. on: its Verilog, or the timing model. program: that ran. result: of
            the run.
        comparison: with the instruction set simulator; None: there was none.
        located: the first difference, where the Verilog differs; else None.
        dumped: the bytes asked for.
        activity: of the engine over time; None: the run was not followed.
    """

    config: PeConfig
    on: Machine
    program: Program
    result: RunResult
    comparison: Comparison | None
    dumped: bytes
    activity: Activity | None = None
    located: Located | None = None

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data; None for those of a missing comparison."""
        end, compared = self.result.engine, self.comparison
        return {
            "machine": self.on,
            "state": end.state,
            "cause": end.cause.name,
            "pc": end.pc,
            "cycles": self.result.program_cycles,
            "counters": end.counters,
            "registers": end.registers,
            "match": None if compared is None else compared.match,
            "differences": None if compared is None else list(compared.differences),
            "first_difference": None if self.located is None else self.located.to_json(),
            "hazards": None if compared is None else [item.report() for item in compared.hazards],
            "saturated": None if compared is None else sum(compared.saturated),
            "configuration": configuration_json(self.config),
            **activity_json(self.activity),
        }


@dataclass(frozen=True, kw_only=True)
class ChipRun:
    """A run on all engines of a chip; attributes as of :class:`EngineRun`."""

    config: ChipConfig
    on: Machine
    program: Program
    result: RunResult
    dumped: bytes
    activity: Activity | None = None

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        return {
            "machine": self.on,
            **chip_json(self.result, self.config),
            **activity_json(self.activity),
        }


def activity_json(found: Activity | None) -> dict[str, object]:
    """The activity of engines over time as a part of plain JSON data; empty without one."""
    return {} if found is None else {"activity": found.to_json()}


def chip_json(result: RunResult, config: ChipConfig) -> dict[str, object]:
    """The numbers of any run of a chip as plain JSON data."""
    return {
        "faults": [
            {
                "pe": fault.pe,
                "vault": fault.vault,
                "cause": fault.cause.name,
                "pc": fault.pc,
                "memory_error": fault.memory_error,
            }
            for fault in result.faults
        ],
        "cycles": result.program_cycles,
        "bandwidth_gbs": round(result.gbs, 3),
        "remote_request_share": round(result.remote_share, 6),
        "flits": result.flits,
        "counters": list(result.counters),
        "vault_counters": list(result.vaults),
        "network_counters": list(result.network),
        "simulation_seconds": round(result.seconds, 3),
        "simulated_cycles_per_second": round(result.cycles_per_second),
        "configuration": configuration_json(config),
    }


def cosim(
    program: Program | Path,
    config: Design = "pe",
    *,
    on: Machine = "rtl",
    memory: bytes | Path | None = None,
    parameters: int = 0,
    max_cycles: int = 100_000_000,
    dump: Dump | None = None,
    behaviour: MemoryBehaviour | None = None,
    compare: bool = True,
    outer: bool = False,
    trace: Path | None = None,
    pipeline: Path | None = None,
    window: Path | None = None,
    saved: Path | None = None,
    commits: int = COMMITS,
    progress: Progress = silent,
) -> EngineRun | ChipRun:
    """Run a program on the Verilog of one engine, or of all engines of a chip.

    An engine is compared with the instruction set simulator:
    ``cosim(Path("kernel.s")).comparison.match`` is true if end, registers, scratchpad and memory
    are the same. Where the Verilog differs, some twenty more runs find the instruction after which
    it first does. Of a chip the host drives the AXI ports, and nothing is compared. The first run
    of a configuration builds its simulator, which takes half a minute or more.

    Parameters:
        program: a program, or a file of one or of assembly.
        config: of an engine or a chip.
        on: the Verilog, or the timing model.
        memory: contents from address 0 on, bytes or a file; None: zeros.
        parameters: DRAM address of the parameter block (r5).
        max_cycles: a longer run is an error.
        dump: bytes of the memory to read afterwards.
        behaviour: of the memory beside one engine; None: the default one. A chip has its own.
        compare: whether to compare one engine with the simulator.
        outer: let cocotbext-axi's masters drive a chip's buses.
        trace: file for waveforms, ``.fst`` or ``.vcd``, or for events over time, ``.json``, that
            Perfetto opens.
        pipeline: file for the way of each instruction through the pipeline, which Konata opens.
            Both need the Verilog.
        window: file for the waveforms, ``.vcd``, of the last instructions up to the first
            difference from the simulator; written if there is one.
        saved: file for the signals of ``window`` that GTKWave (``.gtkw``) or Surfer (``.sucl``)
            shows, by unit.
        commits: how many these are, and how many are reported; at least 1.
        progress: called with the cycles so far.

    Raises:
        VipError: a program, configuration or memory that can't be used, a dump outside it, a run
            that does not end, or a simulator that can't be built.
        OSError: a file that can't be read or written.
    """
    chosen = design(config)
    if isinstance(chosen, ChipConfig):
        return _on_chip(
            load_program(program, chosen.tile.pe.instruction_words),
            chosen,
            on=on,
            memory=memory,
            parameters=parameters,
            max_cycles=max_cycles,
            dump=dump,
            outer=outer,
            trace=trace,
            pipeline=pipeline,
            progress=progress,
        )
    one = engine(config)
    return _on_engine(
        load_program(program, one.instruction_words),
        one,
        on=on,
        memory=memory,
        parameters=parameters,
        max_cycles=max_cycles,
        dump=dump,
        behaviour=behaviour,
        compare=compare,
        trace=trace,
        pipeline=pipeline,
        window=window,
        saved=saved,
        commits=commits,
        progress=progress,
    )


def _on_engine(
    program: Program,
    config: PeConfig,
    *,
    on: Machine,
    memory: bytes | Path | None,
    parameters: int,
    max_cycles: int,
    dump: Dump | None,
    behaviour: MemoryBehaviour | None,
    compare: bool,
    trace: Path | None,
    pipeline: Path | None,
    window: Path | None,
    saved: Path | None,
    commits: int,
    progress: Progress,
) -> EngineRun:
    size = 1 << config.address_bits
    if dump is not None:
        dump.check(size)
    comparison: Comparison | None = None
    located: Located | None = None
    launch = Launch(program=program, max_cycles=max_cycles, parameters=parameters)
    locator = Locator(
        program=program,
        config=config,
        memory=memory,
        parameters=parameters,
        max_cycles=max_cycles,
        behaviour=behaviour or MemoryBehaviour(),
        commits=commits,
        window=window,
        saved=saved,
        progress=progress,
    )
    with DramImage(size) as image, DramImage(size) as start:
        for each in (image, start) if compare else (image,):
            fill(each, memory)
        with (
            waves(program, config, on, trace=trace, pipeline=pipeline) as wave,
            open_engine(config, on, trace=wave.path) as machine,
        ):
            result = _result(machine, launch, image, locator, compare=compare, progress=progress)
        if compare:
            comparison = compare_run(
                program, result.engine, image, start, config=config, parameters=parameters
            )
        dumped = b"" if dump is None else dump.take(image)
    if comparison is not None and not comparison.match and on == "rtl":
        located = locator.locate()
    return EngineRun(
        config=config,
        on=on,
        program=program,
        result=result,
        comparison=comparison,
        dumped=dumped,
        activity=wave.activity,
        located=located,
    )


def _result(
    machine: PeSimulation | PeModel,
    launch: Launch,
    image: DramImage,
    locator: Locator,
    *,
    compare: bool,
    progress: Progress,
) -> RunResult:
    """The result of ``launch``. Where the engine breaks down though the simulator comes to an end,
    the error names their first difference."""
    try:
        return machine.run(
            launch, image, memory=locator.behaviour, progress=counting(progress, _STAGE)
        )
    except CosimError as error:
        if not compare or not isinstance(machine, PeSimulation) or not locator.ends():
            raise
        located = locator.locate()
        if located is None:
            raise
        first = located.difference.instruction
        raise CosimError(
            f"{error}; it first differs from the simulator after instruction {first.number}, word "
            f"{first.pc}: {first.text}"
        ) from None


def _on_chip(
    program: Program,
    config: ChipConfig,
    *,
    on: Machine,
    memory: bytes | Path | None,
    parameters: int,
    max_cycles: int,
    dump: Dump | None,
    outer: bool,
    trace: Path | None,
    pipeline: Path | None,
    progress: Progress,
) -> ChipRun:
    """Run ``program`` on all engines. The host writes ``memory`` to the DRAM before the run, and
    reads the bytes of ``dump`` after it, through the chip's AXI ports."""
    if dump is not None:
        dump.check(config.memory_bytes)
    held = check_regular(memory) if isinstance(memory, Path) else len(memory or b"")
    if held > config.memory_bytes:
        name = f"{memory}: it" if isinstance(memory, Path) else "the memory's contents"
        raise VipError(f"{name} has {held:,} bytes, the chip's memory {config.memory_bytes:,}")
    cycles = counting(progress, _STAGE)
    with (
        DramImage(config.memory_bytes) as image,
        waves(program, config, on, trace=trace, pipeline=pipeline) as wave,
        open_chip(config, image, on, outer=outer, trace=wave.path, progress=cycles) as chip,
    ):
        host = Host(Blocking(chip))
        if isinstance(memory, Path):
            _load(host, memory)
        elif memory is not None:
            wait_for(host.write(0, memory))
        launch = Launch(program=program, max_cycles=max_cycles, parameters=parameters)
        result = run_launch(chip, launch)
        dumped = wait_for(host.read(dump.address, dump.size)) if dump is not None else b""
    if dump is not None and dump.path is not None:
        write_atomically(dump.path, dumped)
        dumped = b""
    return ChipRun(
        config=config,
        on=on,
        program=program,
        result=result,
        dumped=dumped,
        activity=wave.activity,
    )


def _load(host: Host, path: Path) -> None:
    """Write the file to the chip's memory from address 0 on, never all of it at once in ours."""
    address = 0
    with open(path, "rb", opener=open_without_waiting) as file:
        while block := file.read(_BLOCK_BYTES):
            wait_for(host.write(address, block))
            address += len(block)
