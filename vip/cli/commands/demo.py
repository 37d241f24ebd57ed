"""``vip demo``: the whole path on real input."""

import time
from pathlib import Path
from typing import Annotated

import vip
from isa.image import DramImage
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.data.pictures import need_photographs
from microkernels.data.stereo import StereoScene, motorcycle
from sim_tb.runner.build import check_tools, need_simulator
from soc.generate.generate import check_directory
from support.extras import need, together
from support.files import write_atomically
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.cli.tables.area import show_area
from vip.cli.tables.cosim import show_bp
from vip.cli.tables.trim import show_trim
from vip.output import write_json

from .options import filling, output_option

#: What is written into the folder: files, and directories of Verilog.
_PICTURE = "motorcycle.png"
_FILES = ("bp.s", "bp.vip", "bp.memory", "bp.json", _PICTURE, "area.json", "trim.json")
_DESIGNS = ("pe", "pe-trimmed")

_PRESET = "pe"
_WIDTH, _HEIGHT, _LABELS, _ITERATIONS = 96, 64, 16, 5
#: Cycles of the memory.
_LATENCY = 60


def _check_designs(folder: Path) -> None:
    for name in _DESIGNS:
        check_directory(folder / name)


def demo(
    output: Annotated[
        Path,
        output_option("Folder for the results.", filling(_FILES, check=_check_designs), "DIR"),
    ] = Path("build/demo"),
) -> Answer:
    """Compute depth from stereo on one engine, with picture, Verilog, area and trimming.

    Example: vip demo -o build/demo
    """
    started = time.perf_counter()
    with together():
        need_simulator()
        need("matplotlib", "pictures")
        need_photographs()
    check_tools()
    output.mkdir(parents=True, exist_ok=True)
    scene = motorcycle(_WIDTH, _HEIGHT, _LABELS)
    console.rule("1  program: BP-M for 16 labels of 16 bits")
    subject, behaviour = _program(scene, output)
    console.rule(f"2  cosimulation: Verilog of the engine, memory latency {_LATENCY} cycles")
    bp = _cosimulated(scene, behaviour, output)
    console.rule("3  trimming to this program: same results, same cycles; area by unit")
    cut = _trimmed(subject, behaviour)
    area = vip.SynthReport(
        config=cut.cut.full,
        areas={target: area.full for target, area in cut.areas.items()},
        placed={},
    )
    show_area("the engine", area.areas)
    show_trim(cut, "this program")
    write_json(output / "area.json", area.to_json())
    write_json(output / "trim.json", cut.to_json())
    data = {"bp": bp.to_json(), "area": area.to_json(), "trim": cut.to_json()}
    if cut.failure:
        return Answer(data, failure=cut.failure)
    console.rule("4  Verilog of the engine, full and trimmed to this program")
    for name, chosen in zip(_DESIGNS, (cut.cut.full, cut.cut.trimmed), strict=True):
        written = vip.generate(chosen, output / name)
        console.print(f"{written.directory}: {len(written.modules)} modules, {written.lines} lines")
    console.rule(f"done in {time.perf_counter() - started:.0f} s")
    console.print(f"Look at {output / _PICTURE}; everything is in {output}.")
    return Answer(data)


def _program(scene: StereoScene, output: Path) -> tuple[vip.Subject, vip.MemoryBehaviour]:
    """The program, its memory and its launch; program and memory are also written to files."""
    job = bp_job(scene.problem, _ITERATIONS, sums=False)
    source = output / "bp.s"
    write_atomically(source, MatrixPlan(labels=_LABELS).builder(None).text().encode())
    program = vip.assemble(source)
    program.save(output / "bp.vip")
    with DramImage(job.end) as image:
        job.prepare(image)
        contents = image.read(0, job.end)
    write_atomically(output / "bp.memory", contents)
    console.print(f"{source}: {len(program.words)} instructions; its memory is bp.memory")
    subject = vip.subject(program, [contents], name=source.name, parameters=job.parameters)
    return subject, vip.MemoryBehaviour(latency=_LATENCY)


def _cosimulated(scene: StereoScene, behaviour: vip.MemoryBehaviour, output: Path) -> vip.BpRun:
    """Belief propagation on the engine, with its picture.

    Raises:
        UserError: a message differs from the golden model's.
    """
    with shown() as progress:
        bp = vip.cosim_bp(
            _PRESET,
            scene,
            iterations=_ITERATIONS,
            behaviour=behaviour,
            progress=progress,
        )
    write_json(output / "bp.json", bp.to_json())
    show_bp(bp)
    if not bp.match:
        raise UserError("the engine's messages differ from the golden model's")
    bp.draw(output / _PICTURE)
    console.print(f"{output / _PICTURE}: disparities beside the true ones")
    return bp


def _trimmed(subject: vip.Subject, behaviour: vip.MemoryBehaviour) -> vip.TrimResult:
    with shown() as progress:
        return vip.trim(
            [subject],
            _PRESET,
            sizes=vip.Sizes(basis="proved"),
            behaviour=behaviour,
            progress=progress,
        )
