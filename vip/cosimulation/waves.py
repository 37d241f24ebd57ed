"""Waveforms of a cosimulation, and the pipeline logs and event traces derived from them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from isa.program import Program
from sim_tb.cosim.machine import On
from sim_tb.runner.build import need_simulator
from sim_tb.runner.port_trace import TraceError
from sim_tb.waves.fst import write_fst
from sim_tb.waves.konata import konata_log
from sim_tb.waves.record import activity, read_record, trace_events
from soc.generate.designs import Configuration
from support.extras import need, together
from support.files import write_atomically
from support.scratch import scratch_folder

from .room import LOG, Rehearsal, check_room

#: Ending of a trace of events; other endings are those of waveforms.
EVENTS = ".json"
_FST = ".fst"


@dataclass
class Waves:
    """Waveforms of a run.

    Attributes:
        path: file for them; None: no waveforms.
        activity: of the engines over time (:func:`sim_tb.waves.record.activity`), once the run has
            ended; None: not recorded.
    """

    path: Path | None
    activity: Mapping[str, object] | None = None


@contextmanager
def waves(
    program: Program,
    config: Configuration,
    on: On,
    *,
    trace: Path | None,
    pipeline: Path | None,
    rehearse: Rehearsal,
    max_cycles: int | None = None,
) -> Iterator[Waves]:
    """The waveforms of a run of ``program``. At the end of the ``with`` statement, they become
    ``trace`` and ``pipeline``.

    Parameters:
        config: of the hardware. on: what runs it; only the Verilog writes waveforms, and others
            refuse a path (:func:`sim_tb.cosim.machine.open_machine`).
        trace: waveforms (``.vcd``, ``.fst``), or a trace of events (``.json``).
        pipeline: Konata log.
        rehearse, max_cycles: as for :func:`vip.cosimulation.room.check_room`.

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
        yield Waves(asked)
        return
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
        waves = Waves(wave)
        yield waves
        if fst and trace is not None:
            write_fst(wave, trace)
        if not events and pipeline is None:
            return
        record = read_record(wave)
        waves.activity = activity(record.engines)
    if pipeline is not None:
        write_atomically(pipeline, konata_log(program, list(record.engines.values())).encode())
    if events and trace is not None:
        text = trace_events(record, program, _refresh_cycles(config))
        write_atomically(trace, text.encode())


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
