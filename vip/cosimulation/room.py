"""Disk space for the waveforms of a run and for files derived from them."""

import shutil
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from isa.image import DramImage
from isa.limits import REGISTER_WIDTH
from isa.run import Launch, RunError, RunResult
from pe.config import PeConfig
from sim_tb.cosim.machine import open_machine
from sim_tb.runner.port_trace import TraceError
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig
from vip.programs import assemble

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
        what = "the file" if name == path else "the waveforms that it is made from"
        if size > room:
            raise TraceError(
                f"{name}: {what} would take about {_amount(size)}, and {path.parent.resolve()} "
                f"has {_amount(room)} free: run a smaller problem{_LIMIT if max_cycles else ''}"
            )
        if size > LARGE:
            warnings.warn(
                f"{name}: {what} will take about {_amount(size)}; a smaller problem takes less",
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
