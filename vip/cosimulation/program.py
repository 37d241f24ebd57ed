"""The verb ``cosim``: a program on Verilog, or on a model, of an engine, a vault or a chip."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from isa.program import Program
from isa.run import Launch, Memory, RunError, RunResult
from pe.config import PeConfig
from sim_tb.cosim.difference import (
    COMMITS,
    Comparison,
    FirstDifference,
    compare_run,
    first_difference,
)
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation
from sim_tb.cosim.machine import On, open_machine
from sim_tb.waves.pipeline import TracedInstruction
from sim_tb.waves.record import read_record
from sim_tb.waves.saved import cut_waves, save_file, texts_of
from soc.generate.designs import Configuration
from soc.generate.presets import Design, advised, configuration_json, design
from support.errors import Shown
from support.files import open_without_waiting, write_atomically
from support.scratch import scratch_folder
from vip.programs import LIMIT, Dump, check_size, fill, load_program, memory_contents
from vip.progress import Progress, counting, silent

from .runs import netlist_of, with_waves

_SEARCH = "first difference (runs)"
#: Clock cycles of waveforms before the first and after the last instruction shown.
_MARGIN = 4


@dataclass(frozen=True, kw_only=True)
class Locator:
    """Finds the first difference of a run.

    Parameters:
        launch: of the program. config: of the engine.
        memory, behaviour, progress: as for :func:`vip.cosimulation.program.cosim`.
        commits: number of last instructions to report, at least 1.
        window: file for the waveforms of these, ``.vcd``; None: none.
        saved: file for the signals of ``window`` that GTKWave (``.gtkw``) or Surfer (``.sucl``)
            shows; None: none.

    Raises:
        CosimError: ``commits`` below 1, or ``saved`` without ``window``.
    """

    launch: Launch
    config: PeConfig
    memory: bytes | Path | None
    behaviour: MemoryBehaviour
    commits: int
    window: Path | None
    saved: Path | None = None
    progress: Progress = silent

    def __post_init__(self) -> None:
        if self.commits < 1:
            raise CosimError(f"commits must be 1 or more, not {self.commits}")
        if self.saved is not None and self.window is None:
            raise CosimError(f"{self.saved}: signals are saved for waveforms; name a window, too")

    def locate(self) -> FirstDifference | None:
        """The first difference; None: there is none, or the engine lacks the counters to find it.

        Raises:
            VipError: a simulator that can't be built. OSError: a file can't be written.
        """
        if not self.config.counters:
            return None
        with PeSimulation(self.config) as machine:
            difference = first_difference(
                machine,
                self.launch,
                lambda image: fill(image, self.memory),
                memory_bytes=1 << self.config.address_bits,
                behaviour=self.behaviour,
                commits=self.commits,
                progress=lambda runs: self.progress(_SEARCH, runs),
            )
        if difference is None or self.window is None:
            return difference
        return replace(difference, passages=self._waves(difference, self.window))

    def explain(self, error: RunError) -> None:
        """Raise the ``error`` of an engine that breaks down; if the program ends on the simulator,
        with the first difference from it."""
        located = self.locate() if self._ends() else None
        if located is not None:
            first = located.instruction
            raise CosimError(
                f"{error}; it first differs from the simulator after instruction {first.number}, "
                f"word {first.pc}: {first.text}"
            ) from None

    def _ends(self) -> bool:
        """Whether the program ends on the simulator, with the engine's limit of cycles as
        instructions."""
        with DramImage(1 << self.config.address_bits) as image:
            fill(image, self.memory)
            simulator = CompiledSimulator(
                self.launch.program,
                image,
                parameters=self.launch.parameters,
                **self.config.limits,
            )
            return simulator.run(self.launch.max_cycles).state != "running"

    def _waves(self, difference: FirstDifference, window: Path) -> tuple[TracedInstruction, ...]:
        with scratch_folder("waves") as folder, DramImage(1 << self.config.address_bits) as image:
            recorded = folder / "wave.vcd"
            fill(image, self.memory)
            launch = replace(self.launch, stop_after=difference.cycle)
            with PeSimulation(self.config, trace=recorded) as machine:
                # If an engine breaks down, the waveforms are the result.
                job = machine.job(launch, image, memory=self.behaviour)
                list(machine.run_many([job]))
            record = read_record(recorded)
            (engine,) = record.engines.values()
            executed = [instruction for instruction in engine.found if instruction.retired][
                -self.commits :
            ]
            first = executed[0].start if executed else 0
            last = max((instruction.end for instruction in executed), default=record.cycles)
            texts = texts_of(self.launch.program, engine.found)
            cut_waves(recorded, window, max(0, first - _MARGIN), last + _MARGIN, texts)
            if self.saved is not None:
                write_atomically(self.saved, save_file(window, texts, self.saved.suffix).encode())
        return tuple(executed)


#: Bytes per write of the host to a chip.
_BLOCK_BYTES = 1 << 20
_STAGE = "cosimulation (cycles)"
#: A program with hazards, on the timing model, whose vector unit has none.
_UNKNOWN = "has hazards, so only the Verilog (--on rtl) shows what an engine computes"


@dataclass(frozen=True, kw_only=True)
class CosimRun(Shown):
    """A run of a program.

    Attributes:
        config: of the engine, vault or chip. on: as for :func:`cosim`.
        program: the one that ran. result: of the run.
        comparison: of one engine with the instruction set simulator; None: not compared.
        located: the first difference, where the Verilog differs; else None.
        dumped: the requested bytes.
        activity: of the engines over time; None: not recorded.
    """

    config: Configuration
    on: On
    program: Program
    result: RunResult
    comparison: Comparison | None = None
    dumped: bytes = b""
    activity: Mapping[str, object] | None = None
    located: FirstDifference | None = None

    @property
    def cycles(self) -> int:
        """Cycles of the engine that ran longest; 0 on the simulator."""
        return self.result.cycles

    @property
    def unknown(self) -> bool:
        """Whether the engine's values are unknown: on a program with hazards, the timing model
        gives only the cycles."""
        hazards = self.comparison is not None and self.comparison.hazards
        return self.on == "model" and bool(hazards)

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data; None where nothing was compared."""
        engine = self.config.kind == "engine"
        numbers = self._engine_json() if engine else self.result.numbers()
        activity = {} if self.activity is None else {"activity": self.activity}
        configuration = configuration_json(self.config)
        return {"machine": self.on, **numbers, "configuration": configuration, **activity}

    def _engine_json(self) -> dict[str, object]:
        end, compared = self.result.engine, self.comparison
        return {
            "state": end.state,
            "cause": end.cause.name,
            "pc": end.pc,
            "fault": end.fault,
            "cycles": self.cycles,
            "counters": end.counters,
            "registers": end.registers,
            "match": None if compared is None else compared.match,
            "differences": None if compared is None else list(compared.differences),
            "first_difference": None if self.located is None else self.located.to_json(),
            "hazards": None if compared is None else [item.report() for item in compared.hazards],
            "saturated": None if compared is None else sum(compared.saturated),
        }


def cosim(
    program: Program | Path | str,
    config: Design = "pe",
    *,
    on: On = "rtl",
    target: str | None = None,
    memory: bytes | NDArray[Any] | Path | str | None = None,
    parameters: int = 0,
    max_cycles: int = LIMIT,
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
) -> CosimRun:
    """Run a program on the Verilog of one engine, or of all engines of a vault or a chip.

    An engine is compared with the instruction set simulator:
    ``cosim(Path("kernel.s")).comparison.match`` is true if end, registers, scratchpad and memory
    are the same. It is false for a program with hazards on the timing model, which models their
    cycles but computes the simulator's values. If the Verilog differs, about twenty more runs find
    the instruction after which it first does. Runs of a vault or a chip are not compared; a chip's
    host drives the AXI ports. The first run of a configuration builds its simulator, which takes
    half a minute or more.

    Parameters:
        program: a program, or the name or path of a program file or of assembly.
        config: of an engine, a vault or a chip.
        on: the Verilog, the timing model, the instruction set simulator, or an engine's netlist,
            whose registers and scratchpad can't be read.
        target: of the netlist, as of :func:`vip.synth`; None: ``generic``.
        memory: contents from address 0 on: bytes, an array as it lies in memory, or the name or
            path of a file; None: zeros.
        parameters: DRAM address of the parameter block (r5).
        max_cycles: a longer run is an error.
        dump: bytes of memory to read after the run.
        behaviour: of the memory beside one engine; None: the default. Vaults and chips have their
            own.
        compare: whether to compare one engine with the simulator.
        outer: let cocotbext-axi's masters drive a chip's buses.
        trace: file for waveforms, ``.fst`` or ``.vcd``, or for events over time, ``.json``, that
            Perfetto opens.
        pipeline: file that logs each instruction's path through the pipeline, for Konata. Both need
            the Verilog.
        window: file for the waveforms, ``.vcd``, of the last instructions up to the first
            difference from the simulator; written if there is one.
        saved: file for the signals of ``window`` that GTKWave (``.gtkw``) or Surfer (``.sucl``)
            shows, by unit.
        commits: number of these instructions, and of those reported; at least 1.
        progress: called with the cycles so far.

    Raises:
        VipError: a program, configuration or memory that can't be used, a dump outside it, a run
            that does not end, or a simulator that can't be built.
        OSError: a file that can't be read or written.
    """
    chosen = design(config)
    program = load_program(program, chosen.pe.instruction_words)
    launch = Launch(program=program, parameters=parameters, max_cycles=max_cycles)
    if dump is not None:
        dump = Dump(*dump)
        dump.check(chosen.memory_bytes)
    contents = memory_contents(memory)
    check_size(contents, chosen.memory_bytes)
    chosen, netlist = netlist_of(chosen, on, target, progress, trace=pipeline or trace)
    locator = Locator(
        launch=launch,
        config=chosen.pe,
        memory=contents,
        behaviour=behaviour or MemoryBehaviour(),
        commits=commits,
        window=window,
        saved=saved,
        progress=progress,
    )
    return _run(
        locator,
        chosen,
        on,
        behaviour,
        netlist=netlist,
        dump=dump,
        compare=compare and chosen.kind == "engine" and on != "iss",
        outer=outer,
        trace=trace,
        pipeline=pipeline,
    )


def _run(
    locator: Locator,
    config: Configuration,
    on: On,
    behaviour: MemoryBehaviour | None,
    *,
    netlist: str,
    dump: Dump | None,
    compare: bool,
    outer: bool,
    trace: Path | None,
    pipeline: Path | None,
) -> CosimRun:
    """The run of the locator's launch; parameters as for :func:`cosim`, checked."""
    launch = locator.launch
    with DramImage(config.memory_bytes) as image:

        def simulated(wave: Path | None) -> tuple[RunResult, bytes]:
            with open_machine(
                config, on, trace=wave, memory=behaviour, netlist=netlist, outer=outer
            ) as machine:
                contents = machine.memory(image)
                _fill(contents, image, locator.memory)
                try:
                    result = machine.run(launch, image, progress=counting(locator.progress, _STAGE))
                except RunError as error:
                    if compare and on == "rtl":
                        locator.explain(error)
                    raise
                return result, b"" if dump is None else _dumped(contents, image, dump)

        (result, dumped), activity = with_waves(
            simulated,
            launch.program,
            config,
            on,
            trace=trace,
            pipeline=pipeline,
            rehearse=lambda model: [_rehearsed(locator, model, behaviour)],
            max_cycles=launch.max_cycles,
        )
        comparison = _compared(locator, on, result, image) if compare else None
    differs = comparison is not None and not comparison.match
    return CosimRun(
        config=config,
        on=on,
        program=launch.program,
        result=_explained(result, launch.program, config, comparison),
        comparison=comparison,
        dumped=dumped,
        activity=activity,
        located=locator.locate() if differs and on == "rtl" else None,
    )


def _rehearsed(
    locator: Locator, config: Configuration, behaviour: MemoryBehaviour | None
) -> RunResult:
    """The run on the timing model, of a memory of its own."""
    with (
        DramImage(config.memory_bytes) as image,
        open_machine(config, "model", memory=behaviour, preload=True) as machine,
    ):
        fill(image, locator.memory)
        return machine.run(locator.launch, image)


def _explained(
    result: RunResult, program: Program, config: Configuration, comparison: Comparison | None
) -> RunResult:
    """``result`` with a line about each fault; the operands come from the simulator."""
    with_operands = comparison.fault if comparison is not None and comparison.match else ""
    ends = []
    for end in result.engines:
        if end.fault:
            fault = advised(with_operands or end.fault, program, end.cause, end.pc, config)
            end = replace(end, fault=fault)
        ends.append(end)
    return replace(result, engines=tuple(ends))


def _compared(locator: Locator, on: On, result: RunResult, image: DramImage) -> Comparison:
    """The comparison of an engine that left ``image`` with the simulator."""
    launch = locator.launch
    with DramImage(image.size) as start:
        fill(start, locator.memory)
        comparison = compare_run(
            launch.program,
            result.engine,
            image,
            start,
            config=locator.config,
            parameters=launch.parameters,
        )
    if on == "model" and comparison.hazards and comparison.match:
        return replace(comparison, differences=(_UNKNOWN,))
    return comparison


def _fill(contents: Memory, image: DramImage, memory: bytes | Path | None) -> None:
    """Write ``memory``, which fits, into a machine; a chip's host writes it in parts."""
    if contents is image:
        fill(image, memory)
        return
    if isinstance(memory, Path):
        address = 0
        with open(memory, "rb", opener=open_without_waiting) as file:
            while block := file.read(_BLOCK_BYTES):
                contents.write(address, block)
                address += len(block)
    elif memory is not None:
        contents.write(0, memory)


def _dumped(contents: Memory, image: DramImage, dump: Dump) -> bytes:
    """The bytes of ``dump``, unless they are written to its file."""
    if contents is image:
        return dump.take(image)
    dumped = contents.read(dump.address, dump.size)
    if dump.path is None:
        return dumped
    write_atomically(dump.path, dumped)
    return b""
