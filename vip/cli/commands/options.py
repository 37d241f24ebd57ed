"""Options that several commands share, and the callbacks of parameters that name files.

Every parameter that names a file or folder has one of the callbacks :func:`reading`,
:func:`writing`, :func:`drawing` and :func:`filling`: all files of a call are checked before any
work.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from support.errors import clipped, printable, unknown
from support.picture import SUFFIXES
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments

#: Prefix of targets that are Liberty files; defined here so as not to import synth.physical.asic.
_FLOPS, _LIBERTY = "flops:", "liberty:"

_KEY = "vip.cli.file_arguments"


def file_arguments(context: typer.Context) -> FileArguments:
    """The files that this call has declared so far."""
    files = context.meta.get(_KEY)
    if files is None:
        files = context.meta[_KEY] = FileArguments()
        context.call_on_close(files.close)
    return files


def is_given(context: typer.Context, name: str) -> bool:
    """Whether the parameter ``name`` is on the command line, even if with its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _role(parameter: typer.CallbackParam) -> str:
    """A parameter as the user writes it: ``--json``, or ``PROGRAM``."""
    if parameter.param_type_name == "argument":
        return str(getattr(parameter, "metavar", None) or parameter.name).strip("[].")
    return max(parameter.opts, key=len)


def _paths(value: Any) -> Iterable[Path]:
    """The paths in the value of a parameter: one, several, or none."""
    if value is None:
        return ()
    return map(Path, value if isinstance(value, (list, tuple)) else (value,))


def _each(
    declare: Callable[[FileArguments, Path, str], None],
    paths: Callable[[Any], Iterable[Path]],
) -> Callable[..., Any]:
    def callback(context: typer.Context, parameter: typer.CallbackParam, value: Any) -> Any:
        for path in paths(value):
            declare(file_arguments(context), path, _role(parameter))
        return value

    return callback


def reading(paths: Callable[[Any], Iterable[Path]] = _paths) -> Callable[..., Any]:
    """A parameter's callback for files that the command reads: what ``paths`` finds in the value,
    by default all of it."""
    return _each(FileArguments.reads, paths)


def writing(*endings: str, paths: Callable[[Any], Iterable[Path]] = _paths) -> Callable[..., Any]:
    """A parameter's callback for files that the command writes, whose names end in one of
    ``endings``, if there are any; ``paths`` as for :func:`reading`."""
    return _each(lambda files, path, role: files.writes(path, role, endings), paths)


def address(text: str | int) -> int:
    """The parser of an address: decimal, or hexadecimal after ``0x``.

    Raises:
        typer.BadParameter: not a number, or more than 64 bits.
    """
    if isinstance(text, int):
        # The default of an option.
        return text
    try:
        value = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 64:
        raise typer.BadParameter(
            f"{printable(clipped(text, 40))!r} is not an address: give a number from 0 to "
            "2**64 - 1, decimal, or hexadecimal with 0x"
        )
    return value


def drawing(*data: str) -> Callable[..., Any]:
    """A parameter's callback for a picture, PNG or SVG by its ending; an ending in ``data`` means
    that the command writes numbers instead."""

    def declare(files: FileArguments, path: Path, role: str) -> None:
        files.writes(path, role, (*data, *SUFFIXES))

    return _each(declare, _paths)


def filling(
    files: Sequence[str] = (),
    *,
    replaced: bool = False,
    check: Callable[[Path], None] | None = None,
) -> Callable[..., Any]:
    """A parameter's callback for a folder; see :meth:`vip.cli.file_arguments.FileArguments.fills`.

    Parameters:
        check: raises :class:`support.errors.VipError` for a folder that the command would
            refuse.
    """

    def declare(arguments: FileArguments, path: Path, role: str) -> None:
        arguments.fills(path, role, files=files, replaced=replaced)
        if check is not None:
            check(path)

    return _each(declare, _paths)


def writing_or_filling(ending: str, files: Sequence[str]) -> Callable[..., Any]:
    """A parameter's callback for a file that the command writes, if its name ends in ``ending``, or
    else a folder that it fills with ``files``."""

    def declare(arguments: FileArguments, path: Path, role: str) -> None:
        if path.suffix.lower() == ending:
            arguments.writes(path, role)
        else:
            arguments.fills(path, role, files=files)

    return _each(declare, _paths)


def _check_generated(folder: Path) -> None:
    # Imported late: commands that generate nothing start without the hardware.
    from soc.generate.generate import check_directory

    check_directory(folder)


def file_option(text: str, callback: Callable[..., Any], *names: str) -> Any:
    """An option, of these names or the parameter's, that names a file; ``text`` is its help."""
    return typer.Option(*names, metavar="FILE", help=text, callback=callback)


def output_option(text: str, callback: Callable[..., Any], metavar: str = "FILE") -> Any:
    """The option ``-o`` of what a command writes; ``text`` is its help."""
    return typer.Option("-o", "--output", metavar=metavar, help=text, callback=callback)


def files_beside(kind: str, names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The files in ``texts``: neither in ``names`` (each a ``kind``) nor similar to one of them.

    Raises:
        UserError: one looks like a name but is neither a name nor a file.
    """
    known, files = list(names), []
    for name in texts:
        if name in known:
            continue
        if not (Path(name).suffix or Path(name).parent.name or Path(name).exists()):
            raise UserError(f"no such file, and {unknown(kind, name, known)}")
        files.append(name)
    return files


def liberty_files(value: str | list[str] | None) -> list[Path]:
    """The Liberty files that targets name, as ``liberty:PATH``; for :func:`reading`."""
    texts = [value] if isinstance(value, str) else value or []
    names = [name.removeprefix(_FLOPS) for name in texts]
    return [Path(name.removeprefix(_LIBERTY)) for name in names if name.startswith(_LIBERTY)]


CellsOption = Annotated[
    str,
    typer.Option(
        help="Cells to map to: nangate45 or liberty:PATH; flops:TARGET: memories, too.",
        metavar="TARGET",
        callback=reading(liberty_files),
    ),
]
ParametersOption = Annotated[
    int,
    typer.Option(
        help="DRAM address of the parameter block (r5); decimal, or hexadecimal with 0x.",
        metavar="ADDRESS",
        parser=address,
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="TCP",
        help="Use the workers of this Dask scheduler, such as tcp://10.0.0.1:8786.",
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Parallel processes (default: one per processor)."),
]
ToolsOption = Annotated[
    int | None, typer.Option(min=1, help="Tools to run in parallel (default: one per processor).")
]
PlacementsOption = Annotated[
    int, typer.Option("--placements", min=1, metavar="N", help="Placements per device.")
]
CyclesOption = Annotated[
    int, typer.Option("--limit", help="Stop after this many cycles.", min=1, metavar="N")
]
JsonOption = Annotated[
    Path | None,
    file_option("Write the results and their origin as JSON.", writing(), "--json"),
]
PresetOption = Annotated[
    str,
    # Before --config, which can't be combined with it.
    typer.Option(
        "--preset", metavar="NAME", help="Named configuration (see vip presets).", is_eager=True
    ),
]


def instead_of_preset(
    context: typer.Context, parameter: typer.CallbackParam, value: Path | None
) -> Path | None:
    """The callback of ``--config``, a file that the command reads.

    Raises:
        UserError: ``--preset`` is on the command line, too.
    """
    file: Path | None = reading()(context, parameter, value)
    if file is not None and is_given(context, "preset_name"):
        raise UserError("--config and --preset can't be combined")
    return file


OutputDirectory = Annotated[
    Path,
    output_option(
        "Output folder; created if missing.", filling(replaced=True, check=_check_generated), "DIR"
    ),
]
