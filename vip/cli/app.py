"""The ``vip`` command."""

from typing import Annotated, ClassVar

import typer

from support.command import run_command

from .lazy import Entry, LazyGroup
from .notices import show_notices

__all__ = ["app", "main"]


class Commands(LazyGroup):
    """All commands: most need few of the packages, and help needs none."""

    entries: ClassVar[dict[str, Entry]] = {
        "demo": Entry(
            "demo",
            "demo",
            "Depth from stereo on one engine: cosimulation, picture, Verilog, area, and trimming.",
        ),
        "asm": Entry("assembly", "asm", "Assemble a program."),
        "disasm": Entry(
            "assembly",
            "disasm",
            "Turn a program back into assembly that assembles to the same words.",
        ),
        "run": Entry(
            "assembly",
            "run",
            "Run a program on the instruction set simulator, and check its timing rules.",
        ),
        "debug": Entry(
            "debug",
            "debug",
            "Debug a program on the instruction set simulator, forwards and backwards.",
        ),
        "cosim": Entry(
            "cosim", "app", "Run programs on the Verilog of an engine, a vault or a chip."
        ),
        "mrf": Entry("mrf", "app", "Markov random fields of your own, by belief propagation."),
        "nn": Entry("nn", "app", "Check, compile, run and evaluate ONNX models."),
        "model": Entry("model", "app", "Compare the timing model with the Verilog."),
        "presets": Entry(
            "presets",
            "presets",
            "List the named configurations: engines, ports, memory, area, and the FPGAs that they "
            "fit.",
        ),
        "generate": Entry(
            "generate",
            "generate",
            "Write hierarchical Verilog, a file a module, with its configuration and lint waivers.",
        ),
        "diagram": Entry(
            "generate",
            "diagram",
            "Draw the units of a module, and the bits that go from one to another.",
        ),
        "synth": Entry(
            "synth",
            "synth",
            "Synthesise with Yosys and report the area of each unit; or place and route on an "
            "FPGA.",
        ),
        "timing": Entry(
            "timing",
            "timing",
            "Time the mapped engine at corners, with our static timing and with OpenSTA where "
            "installed.",
        ),
        "power": Entry("power", "power", "Estimate the power of an engine that runs a kernel."),
        "report": Entry(
            "report",
            "report",
            "Write an interactive page on a result of any command, or a page on an engine.",
        ),
        "trim": Entry(
            "trim",
            "trim",
            "Rebuild the engine with what programs need, and compare it with the full one.",
        ),
        "prove": Entry(
            "prove",
            "prove_command",
            "Prove that engines trimmed to programs do what the full one does.",
        ),
        "sweep": Entry(
            "sweep",
            "sweep",
            "Measure configurations on kernels, and write all points, the Pareto front and the "
            "best one.",
        ),
        "browser": Entry(
            "browser",
            "browser",
            "Write a static page with assembler, simulator, manual, and examples, to run in a "
            "browser.",
        ),
        "bench": Entry(
            "bench.command",
            "app",
            "Run experiments, and compare their figures with those in bench/results.",
        ),
    }


app = typer.Typer(
    name="vip",
    cls=Commands,
    help="Generate, simulate, measure and trim the VIP inference processor.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"vip {version('vip-inference')}")
        raise typer.Exit


@app.callback()
def _common(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del show


def main() -> None:
    """Entry point of the ``vip`` command."""
    show_notices()
    run_command(app)
