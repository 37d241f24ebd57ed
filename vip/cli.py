"""The ``vip`` command."""

from typing import Annotated

import typer

from .errors import run_command

__all__ = ["app", "main"]

app = typer.Typer(
    name="vip",
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


def _register() -> None:
    from .commands import assembly, cosim, demo, generate, synth, trim

    app.command()(demo.demo)
    app.command()(assembly.asm)
    app.command()(assembly.disasm)
    app.command()(assembly.run)
    app.add_typer(cosim.app, name="cosim")
    app.command()(generate.generate)
    app.command()(synth.synth)
    app.command()(trim.trim)


def main() -> None:
    """Entry point of the ``vip`` command."""

    def command() -> None:
        _register()
        app()

    run_command(command)
