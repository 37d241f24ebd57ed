"""The verb ``report``: a page on an engine."""

from collections.abc import Sequence
from pathlib import Path

from microkernels.data.pictures import need_photographs
from sim_tb.runner.build import check_tools, need_simulator
from support.extras import need, together
from support.files import write_atomically
from support.picture import SUFFIXES
from synth.physical.asic import NANGATE45, need_nangate
from synth.physical.devices import find_placed
from synth.physical.nextpnr import need_nextpnr
from vip.configurations import Design, engine
from vip.progress import Progress, naming, silent

from .collect import Report, collect
from .page import FIGURES, page

_PAGE = "index.html"
#: Names of the files of a report.
FILES = (_PAGE, *(f"{name}{suffix}" for name in FIGURES for suffix in SUFFIXES))


def report(
    config: Design,
    folder: Path | str,
    *,
    devices: Sequence[str] = (),
    seeds: int = 5,
    jobs: int | None = None,
    progress: Progress = silent,
) -> Report:
    """Write a page on an engine: area beside the thesis's, clock, power, scaling, devices.

    ``report("pe", "build/report").page`` needs no other file; the figures are beside it as PNG
    and SVG. The first call takes about ten minutes; finished units are cached.

    Parameters:
        config: of an engine.
        folder: created if missing.
        devices: FPGAs to place on (:func:`synth.physical.devices.find_placed`), which takes minutes
            per seed.
        seeds: placements on each, at least 1.
        jobs: tools in parallel; None: one per processor.
        progress: called with each step.

    Raises:
        VipError: an unknown preset or device, an engine that does not fit, or a missing tool or
            extra.
        OSError: a file can't be written.
    """
    with together():
        need("matplotlib", "pictures")
        need_photographs()
        need_simulator()
        need_nangate(NANGATE45)
        for name in devices:
            find_placed(name)
            need_nextpnr()
    check_tools()
    target = Path(folder)
    report = collect(
        target / _PAGE,
        config if isinstance(config, str) else "engine",
        engine(config),
        devices=devices,
        seeds=seeds,
        jobs=jobs,
        step=naming(progress, "report"),
    )
    target.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        for suffix in SUFFIXES:
            draw(report, target / f"{name}{suffix}")
    figures = {name: (target / f"{name}.png").read_bytes() for name in FIGURES}
    write_atomically(report.page, page(report, figures).encode())
    return report
