"""Groups of commands whose modules are imported when a command runs, not when help lists it."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, get_args

import typer
from rich.markup import escape
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from .errors import UserError, no_command, words
from .groups import grouped

#: What the help calls a value whose option has no metavar.
_METAVARS = {int: "N", float: "X", Path: "FILE"}


def _value(parameter: Any, ctx: Any) -> str | None:
    """What the help shows for a parameter's value instead of its Python type; nothing for an
    argument, whose name says it."""
    if parameter.param_type_name == "argument":
        return None
    if parameter.metavar is not None or parameter.is_flag:
        return parameter.metavar  # type: ignore[no-any-return]
    if parameter.type_descriptor.is_choice:
        return str(parameter.display_type(ctx)).strip("<>")
    annotation = parameter.type_descriptor.annotation
    kinds = (annotation, *get_args(annotation))
    return next((_METAVARS[kind] for kind in kinds if kind in _METAVARS), "NAME")


# Typer has no setting for this.
for _kind in (TyperArgument, TyperOption):
    _kind.display_type_rich = _value  # type: ignore[method-assign, assignment]
_parse = TyperCommand.parse_args


def _parse_once(command: TyperCommand, ctx: Any, args: list[str]) -> list[str]:
    """As Typer parses, but an option of one value is refused the second time; Typer would silently
    drop the first."""
    rest = _parse(command, ctx, list(args))
    if ctx.resilient_parsing:
        return rest
    _, _, options = command.make_parser(ctx).parse_args(args=list(args))
    for option, times in Counter(options).items():
        if times > 1 and isinstance(option, TyperOption) and not option.multiple | option.is_flag:
            name = max(option.opts, key=len)
            raise UserError(f"{words(ctx)}: {name} can be given only once")
    return rest


TyperCommand.parse_args = _parse_once  # type: ignore[method-assign, assignment]


class CommandGroup(TyperGroup):
    """A group that answers an unknown command with what was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not (ctx.resilient_parsing or name in self.commands or name.startswith("-")):
            raise UserError(no_command(words(ctx), name, list(self.commands)))
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """A group that knows its commands' names and summaries, and imports only the one called.

    A subclass sets ``panels``: heading in the help -> command -> the first line of its help, which
    a test compares with the command's. A command is the function of its name, or the group ``app``,
    in the module of its name among :mod:`vip.cli.commands`, unless ``modules`` names another.
    """

    panels: ClassVar[dict[str | None, dict[str, str]]]
    modules: ClassVar[dict[str, str]] = {}
    entries: ClassVar[dict[str, str]]

    def __init_subclass__(cls) -> None:
        cls.entries = {name: line for below in cls.panels.values() for name, line in below.items()}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, entries in self.panels.items():
            for name, summary in entries.items():
                command = TyperCommand(name, help=escape(summary), rich_help_panel=panel)
                self.add_command(command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, listed and self.load(str(listed.name)), rest

    def load(self, name: str) -> Any:
        """The command ``name`` itself, which must be one of ``entries``."""
        function = self.function(name)
        if not isinstance(function, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(name)(function)
            return _verbatim(typer.main.get_command(alone))
        group = typer.main.get_group(function)
        group.name = name
        return _verbatim(group)

    def function(self, name: str) -> Any:
        """The function, or the Typer group, of the command ``name``, as for :func:`grouped`."""
        module = import_module(self.modules.get(name, f"vip.cli.commands.{name}"))
        function = getattr(module, name, None) or module.app
        if not isinstance(function, typer.Typer):
            return grouped(function)
        for command in function.registered_commands:
            # A group may be loaded twice.
            if command.callback is not None and not hasattr(command.callback, "__wrapped__"):
                command.callback = grouped(command.callback)
        return function


def _verbatim(command: Any) -> Any:
    """``command`` with its help escaped, so that brackets aren't markup, and paragraphs on one line
    each, which the help wraps at the terminal's width."""
    for part in (command, *command.params):
        if getattr(part, "help", None):
            part.help = escape(re.sub(r"(?<=\S)\n(?=\S)", " ", part.help))
    # A group that loads its commands does this with each of them.
    if not isinstance(command, LazyGroup):
        for inner in getattr(command, "commands", {}).values():
            _verbatim(inner)
    return command
