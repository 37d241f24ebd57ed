"""``vip demo``: the whole path on real input."""

import time
from pathlib import Path
from typing import Annotated

import typer

from isa.image import DramImage
from isa.support.extras import need
from isa.support.files import write_atomically
from microkernels.bp.golden import labels as read_labels
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import bp_source
from microkernels.data.stereo import motorcycle
from microkernels.data.stereo_picture import draw
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import cosim_engine
from sim_tb.cosim.trim_check import Workload, check_trimmed
from sim_tb.runner.build import check_tools
from soc.generate.generate import check_directory, configuration_json, generate
from soc.generate.presets import preset
from synth.analysis.trim import report
from vip.cli.console import console, counted
from vip.cli.errors import UserError
from vip.output import write_json
from vip.trimming.result import Checked, show_trim, sound, trim_json

from .assembly import read_program
from .cosim import bp_report, show_bp
from .options import JsonOption, filling
from .synth import area_json, show_area
from .trim import compare_areas

__all__ = ["demo"]

#: What it writes into the folder: files, and directories of Verilog.
_FILES = ("bp.s", "bp.vip", "bp.memory", "bp.json", "motorcycle.png", "area.json", "trim.json")
_DESIGNS = ("pe", "pe-trimmed")

_WIDTH, _HEIGHT, _LABELS, _ITERATIONS = 96, 64, 16, 5


def _check_designs(folder: Path) -> None:
    for name in _DESIGNS:
        check_directory(folder / name)


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder for the results.",
            callback=filling(_FILES, check=_check_designs),
        ),
    ] = Path("build/demo"),
    json: JsonOption = None,
) -> None:
    """Depth from stereo on one engine: cosimulation, picture, Verilog, area, and trimming.

    Example: vip demo -o build/demo
    """
    started = time.perf_counter()
    check_tools()
    need("matplotlib", "pictures")
    need("skimage", "photographs")
    output.mkdir(parents=True, exist_ok=True)
    config = preset("pe")
    memory = MemoryBehaviour(latency=60)

    console.rule("1  program: BP-M for 16 labels of 16 bits")
    scene = motorcycle(_WIDTH, _HEIGHT, _LABELS)
    job = bp_job(scene.problem, _ITERATIONS)
    source = output / "bp.s"
    write_atomically(source, bp_source(_LABELS).encode())
    program = read_program(source)
    program.save(output / "bp.vip")
    with DramImage(1 << config.address_bits) as image:
        job.prepare(image)
        contents = image.read(0, job.end)
    write_atomically(output / "bp.memory", contents)
    console.print(f"{source}: {len(program.words)} instructions; its memory is bp.memory")

    console.rule("2  cosimulation: Verilog of the engine, memory latency 60 cycles")
    with counted("cosimulation (cycles)", 81 * scene.problem.updates * _ITERATIONS) as done:
        outcome = cosim_engine(job, config, memory=memory, progress=done)
    bp = bp_report(outcome, scene, config)
    write_json(output / "bp.json", bp)
    show_bp(outcome)
    if not outcome.match:
        raise UserError("the engine's messages differ from the golden model's")
    picture = output / "motorcycle.png"
    caption = f"BP-M on the engine, {_ITERATIONS} iterations"
    draw(scene, read_labels(scene.problem, outcome.outputs), picture, caption=caption)
    console.print(f"{picture}: disparities beside the true ones")

    console.rule("3  Verilog of the engine, full and trimmed to this program")
    cut = report(program, config)
    for name, chosen in zip(_DESIGNS, (cut.full, cut.trimmed), strict=True):
        written = generate(chosen, output / name)
        console.print(f"{written.directory}: {len(written.modules)} modules, {written.lines} lines")

    console.rule("4  the trimmed engine: same results, same cycles")
    work = Workload(program=program, contents=contents, parameters=job.parameters, memory=memory)
    with counted("cosimulation of both engines (cycles)", 2 * outcome.cycles) as done:
        check = check_trimmed(work, cut.full, cut.trimmed, done)

    console.rule("5  area by unit")
    areas = compare_areas(cut.full, cut.trimmed)
    show_area("the engine", {target: area.full for target, area in areas.items()})
    checks = [Checked(name=source.name, check=check, zero_memory=work.zero_memory)]
    show_trim(cut, checks, areas)
    full = {target: area.full for target, area in areas.items()}
    area = {**area_json(full), "configuration": configuration_json(config)}
    trimmed = trim_json(cut, checks, areas)
    write_json(output / "area.json", area)
    write_json(output / "trim.json", trimmed)
    write_json(json, {"bp": bp, "area": area, "trim": trimmed})
    if not sound(checks):
        raise UserError("the trimmed engine does not do what the full one does")
    seconds = time.perf_counter() - started
    console.rule(f"done in {seconds:.0f} s")
    console.print(f"Look at {picture}; everything is in {output}.")
