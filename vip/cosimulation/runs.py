"""What a run of a cosimulation needs before it, and leaves beside its result: a netlist, waveforms,
the pipeline logs and event traces derived from them, and the disk space for them."""

import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, Unpack

from isa.image import DramImage
from isa.limits import REGISTER_WIDTH
from isa.program import Program
from isa.run import Launch, RunError, RunResult
from pe.config import PeConfig
from sim_tb.cosim.machine import MachineOptions, On, check_machine, open_machine
from sim_tb.runner.build import need_simulator
from sim_tb.waves.cycles import TraceError
from sim_tb.waves.fst import write_fst
from sim_tb.waves.konata import konata_log
from sim_tb.waves.record import activity, read_record, trace_events
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig
from support.errors import VipError
from support.extras import need, together
from support.files import write_atomically
from support.scratch import scratch_folder
from synth.physical.asic import need_nangate
from synth.physical.mapping import mapped_verilog
from synth.physical.targets import check_target
from vip.programs import assemble
from vip.progress import Progress, by_part

_Result = TypeVar("_Result")

#: Bytes of a file above which a run warns.
LARGE = 10**9
#: A pipeline log, whatever its ending.
LOG = ""
#: A run of the same work on the timing model of a design.
Rehearsal = Callable[[Configuration], Iterable[RunResult]]

#: Ending of a file -> bytes for a cycle of an engine, for an instruction, and for a cycle in which
#: a vector unit is busy. Fitted to runs on one engine (``tests/vip/test_trace_room.py``).
_BYTES: Mapping[str, tuple[int, int, int]] = {
    ".vcd": (170, 11_500, 4_900),
    ".fst": (10, 420, 140),
    ".json": (3, 70, 26),
    LOG: (0, 320, 0),
}
#: Other ways to make a program's file smaller.
_LIMIT = ", or give --limit"
_ISSUED = ("ISSUED_SCALAR", "ISSUED_VECTOR", "ISSUED_LOAD_STORE", "ISSUED_CONTROL")


def file_bytes(ending: str, results: Iterable[RunResult]) -> int:
    """The approximate size of a file in bytes.

    Parameters:
        ending: of waveforms or of a trace of events; :data:`LOG`: a pipeline log.
        results: of the runs that it shows, with counters.
    """
    per_cycle, per_instruction, per_busy = _BYTES[ending]
    total = 0
    for result in results:
        total += per_cycle * result.simulated_cycles * len(result.engines)
        for counters in result.counters:
            total += per_instruction * sum(counters[name] for name in _ISSUED)
            total += per_busy * counters["VECTOR_BUSY"]
    return total


def check_room(
    files: Mapping[Path, str],
    config: Configuration,
    rehearse: Rehearsal,
    *,
    made_for: Mapping[Path, Path],
    max_cycles: int | None = None,
) -> None:
    """Warn about files above :data:`LARGE` bytes; refuse those that don't fit their disk.

    A run on the timing model predicts their size. Nothing is checked for designs that the model
    does not cover, such as a vault on an AXI bus.

    Parameters:
        files: files to write -> their endings, as for :func:`file_bytes`.
        made_for: temporary file -> the file derived from it, for messages.
        max_cycles: of the run, where the work may not end; None: an error of ``rehearse`` is one.

    Raises:
        TraceError: a disk has less room than a file needs. RunError: as of ``rehearse``.
    """
    design = _modelled(config)
    if not _is_covered(design):
        return
    results: list[RunResult] = []
    try:
        results += rehearse(design)
    except RunError:
        if max_cycles is None:
            raise
    for path, ending in files.items():
        size = file_bytes(ending, results)
        if not results and max_cycles is not None:
            size = sum(_BYTES[ending][:2]) // 3 * max_cycles * config.engines
        room = shutil.disk_usage(path.parent).free
        name = made_for.get(path, path)
        file = "the file" if name == path else "the waveforms that it is made from"
        if size > room:
            raise TraceError(
                f"{name}: {file} would take about {_amount(size)}, and {path.parent.resolve()} "
                f"has {_amount(room)} free: run a smaller problem{_LIMIT if max_cycles else ''}"
            )
        if size > LARGE:
            warnings.warn(
                f"{name}: {file} will take about {_amount(size)}; a smaller problem takes less",
                stacklevel=2,
            )


def _modelled(config: Configuration) -> Configuration:
    """A design with the same cycles that counts them, and that the timing model covers."""
    if isinstance(config, PeConfig):
        return _counted(config)
    if isinstance(config, VaultTileConfig):
        return replace(config, pe=_counted(config.pe))
    return replace(config, tile=replace(config.tile, pe=_counted(config.tile.pe)))


def _counted(pe: PeConfig) -> PeConfig:
    return replace(pe, counters=True, register_width=REGISTER_WIDTH, program=None)


def _is_covered(design: Configuration) -> bool:
    """Whether the timing model runs a program of one instruction."""
    try:
        with (
            DramImage(design.memory_bytes) as image,
            open_machine(design, "model", preload=True) as machine,
        ):
            machine.run(Launch(program=assemble("halt"), max_cycles=10_000), image)
    except RunError:
        return False
    return True


def _amount(size: int) -> str:
    return f"{size / 10**9:,.1f} GB" if size >= 10**8 else f"{size / 10**6:,.1f} MB"


#: Of a netlist, unless the run names another.
_TARGET = "generic"
#: Ending of a trace of events; other endings are those of waveforms.
EVENTS = ".json"
_FST = ".fst"


def netlist_of(
    config: Configuration,
    on: On,
    target: str | None,
    progress: Progress,
    **options: Unpack[MachineOptions],
) -> tuple[Configuration, str]:
    """What a run needs on the netlist: the engine with the memories of ``target``, and Verilog;
    elsewhere ``config`` as it is, and "".

    Parameters:
        on: where the run is.
        target: as of :func:`vip.synth`; None: ``generic``.
        options: of the run, to be refused before the work.

    Raises:
        VipError: a target of another run, or one that does not exist; a design that is not one
            engine, or an option that a netlist does not take.
        MissingExtraError: a tool is not installed.
    """
    if on != "netlist":
        if target is not None:
            raise VipError(f"target {target}: only a run on the netlist has a target")
        return config, ""
    check_machine(config, on, **options)
    name = target or _TARGET
    with together():
        need_simulator()
        need_nangate(name)
    check_target(name)
    return mapped_verilog(config.pe, name, by_part(progress, f"mapping to {name}"))


def with_waves(
    run: Callable[[Path | None], _Result],
    program: Program,
    config: Configuration,
    on: On,
    *,
    trace: Path | None,
    pipeline: Path | None,
    rehearse: Rehearsal,
    max_cycles: int | None = None,
) -> tuple[_Result, Mapping[str, object] | None]:
    """The result of ``run`` of ``program``, whose waveforms become ``trace`` and ``pipeline``, and
    the engines' activity over time (:func:`sim_tb.waves.record.activity`); None: not recorded.

    Parameters:
        run: takes the file for waveforms; None: no waveforms.
        config: of the hardware. on: what runs it; only the Verilog writes waveforms, and others
            refuse a path (:func:`sim_tb.cosim.machine.open_machine`).
        trace: waveforms (``.vcd``, ``.fst``), or a trace of events (``.json``).
        pipeline: Konata log.
        rehearse, max_cycles: as for :func:`check_room`.

    Raises:
        TraceError: a pipeline log or event trace needs counters that the engines lack, or a disk
            lacks space.
        MissingExtraError: the Verilog simulator or, for ``.fst``, pylibfst is not installed.
        OSError: a file can't be written.
    """
    ending = "" if trace is None else trace.suffix.lower()
    events, fst = ending == EVENTS, ending == _FST
    asked = pipeline or trace
    if on != "rtl" or asked is None:
        # A machine without waveforms must refuse the file, whatever is derived from it.
        return run(asked), None
    if not config.pe.counters and (events or pipeline is not None):
        raise TraceError(
            f"{asked}: following instructions needs counters, which these engines lack"
        )
    need_machine(on, trace)
    with scratch_folder("waves") as folder:
        wave = folder / "wave.vcd" if events or fst or trace is None else trace
        outputs = ((wave, ".vcd"), (trace, ending), (pipeline, LOG))
        files = {path: kind for path, kind in outputs if path is not None}
        made_for = {} if wave == trace else {wave: asked}
        check_room(files, config, rehearse, made_for=made_for, max_cycles=max_cycles)
        result = run(wave)
        if fst and trace is not None:
            write_fst(wave, trace)
        if not events and pipeline is None:
            return result, None
        record = read_record(wave)
    if pipeline is not None:
        write_atomically(pipeline, konata_log(program, list(record.engines.values())).encode())
    if events and trace is not None:
        text = trace_events(record, program, _refresh_cycles(config))
        write_atomically(trace, text.encode())
    return result, activity(record.engines)


def need_machine(on: str, trace: Path | None, *, outer: bool = False) -> None:
    """Check, before the work, that what a run of :func:`waves` uses is installed.

    Parameters:
        outer: whether cocotbext-axi's masters drive a chip's buses.

    Raises:
        MissingExtraError: something is not; the message names all of it.
    """
    if on != "rtl":
        return
    with together():
        need_simulator()
        if trace is not None and trace.suffix.lower() == _FST:
            need("pylibfst", "FST waveforms")
        if outer:
            need("cocotbext.axi", "accesses by another master")


def _refresh_cycles(config: Configuration) -> int:
    """Cycles of a refresh of a DRAM bank; 1 without DRAM."""
    timing = config.dram_timing
    return 1 if timing is None else timing.trfc
