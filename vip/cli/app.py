"""The ``vip`` command."""

import gc
import logging
from typing import Annotated, ClassVar

import typer

from support.command import USER_ERROR, run_command

from .errors import UsageError, UserError, usage_message
from .lazy import LazyGroup


class Commands(LazyGroup):
    """All commands. Most need few of the packages, and help needs none."""

    panels: ClassVar[dict[str | None, dict[str, str]]] = {
        "Start here": {
            "demo": "Compute depth from stereo on one engine, with picture, Verilog, area and "
            "trimming.",
            "run": "Run a program on the instruction set simulator and check its timing rules.",
            "cosim": "Run programs on the Verilog of an engine, a vault or a chip.",
            "generate": "Write Verilog, one file per module, with its configuration and lint "
            "waivers.",
        },
        "Programs": {
            "asm": "Assemble a program.",
            "disasm": "Disassemble a program into source that assembles to the same words.",
            "debug": "Step through a program on the instruction set simulator, forwards and "
            "backwards.",
            "browser": "Write a static page that runs the assembler, simulator, manual and "
            "examples in a browser.",
        },
        "Simulation": {
            "model": "Compare the timing model with the Verilog.",
            "sweep": "Measure configurations on kernels and write all points, the Pareto front "
            "and the best one.",
        },
        "Hardware": {
            "presets": "List the presets with engines, ports, memory, area and the FPGAs they fit.",
            "diagram": "Draw the units of a module and the bits that pass between them.",
            "synth": "Synthesise with Yosys and report the area of each unit, or place and route "
            "on an FPGA.",
            "fit": "Report how many engines, trimmed to programs, fit an FPGA and how fast they "
            "run.",
            "timing": "Time the mapped engine at several corners.",
            "layout": "Place the mapped engine, and time it with its wires.",
            "power": "Estimate the power of an engine that runs a kernel.",
            "trim": "Rebuild the engine with only what programs need and compare it with the full "
            "one.",
            "board": "Build, simulate and run an engine on an FPGA board.",
            "prove": "Prove that engines trimmed to programs behave as the full one does.",
        },
        "Applications": {
            "mrf": "Solve your Markov random fields by belief propagation.",
            "nn": "Check, compile, run and evaluate ONNX models.",
        },
        "Measurement": {
            "report": "Write an interactive page about the result of any command, or about an "
            "engine.",
            "bench": "Run experiments and compare their figures with those in bench/results.",
        },
    }
    modules: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("asm", "disasm", "run"), "vip.cli.commands.assembly"),
        "diagram": "vip.cli.commands.generate",
        "layout": "vip.cli.commands.timing",
        "bench": "bench.harness.command",
    }


app = typer.Typer(
    name="vip",
    cls=Commands,
    help="Generate, simulate, measure and trim the VIP inference processor.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
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


#: Objects after which cycles of them are collected.
_NEW_OBJECTS = 100_000


def main() -> None:
    """Entry point of the ``vip`` command."""
    # Plans have millions of objects, nearly none of them in cycles.
    gc.set_threshold(_NEW_OBJECTS)
    show_notices()
    run_command(_run)


def _run() -> None:
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            raise SystemExit(USER_ERROR) from None
        raise UserError(usage_message(error)) from None
    raise SystemExit(code or 0)


#: Loggers whose reports the command line shows.
_ROOMS = ("sim_tb", "synth")


class _Lines(logging.Handler):
    """Prints each report on a line of its own, above the progress display."""

    def emit(self, record: logging.LogRecord) -> None:
        # Imported late: the console's libraries are slow to import, and most commands report
        # nothing.
        from .console import warn

        warn(record.getMessage())


def show_notices() -> None:
    """Show the packages' reports from now on; idempotent."""
    for room in _ROOMS:
        logger = logging.getLogger(room)
        if not any(isinstance(handler, _Lines) for handler in logger.handlers):
            logger.addHandler(_Lines())
            logger.setLevel(logging.INFO)
            logger.propagate = False
