"""The ``vip`` command."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .errors import run_command

__all__ = ["app", "main"]

#: Command -> module of :mod:`vip.commands` and the function or group there, in the help's order.
_COMMANDS = {
    "demo": ("demo", "demo"),
    "asm": ("assembly", "asm"),
    "disasm": ("assembly", "disasm"),
    "run": ("assembly", "run"),
    "cosim": ("cosim", "app"),
    "generate": ("generate", "generate"),
    "synth": ("synth", "synth"),
    "timing": ("timing", "timing"),
    "power": ("power", "power"),
    "report": ("report", "report"),
    "trim": ("trim", "trim"),
    "prove": ("prove", "prove_command"),
    "bench": ("bench", "app"),
}


class _LazyGroup(TyperGroup):
    """Commands that are imported when they are asked for: most need few of the rooms."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found = getattr(import_module(f".commands.{module}", __package__), name)
        if isinstance(found, typer.Typer):
            return typer.main.get_group(found)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name)(found)
        return typer.main.get_command(alone)


app = typer.Typer(
    name="vip",
    cls=_LazyGroup,
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
    run_command(app)
