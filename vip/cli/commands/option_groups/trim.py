"""Options of ``vip trim``: sizes of the engine, how programs run, and what is compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

import vip
from isa.declared import Declared, Numbers, Span
from sim_tb.cosim.applications import applications
from sim_tb.cosim.engine import MemoryBehaviour
from synth.analysis.profile import Profile
from vip.cli.commands.options import MaxCyclesOption, ParametersOption, reading
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments
from vip.trimming.runs import MOST_SLOWER

__all__ = ["LaunchesOption", "MemoryOptions", "SizesOption", "StepsOption"]

_NUMBER = r"(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
_SPAN = rf"(?:(?P<owner>.+)=)?(?P<start>{_NUMBER}):(?P<size>{_NUMBER})"
_CONSTANT = re.compile(_SPAN)
_RANGE = re.compile(
    rf"{_SPAN}(?:/(?P<width>8|16|32|64))?=(?P<low>-?{_NUMBER})\.\.(?P<high>-?{_NUMBER})"
)


def _memory_files(texts: Sequence[str] | None) -> list[Path]:
    return [Path(text.rpartition("=")[2]) for text in texts or ()]


def _sizes(
    *,
    proved: Annotated[
        bool,
        typer.Option(
            "--proved", help="Only sizes that are proved for all runs, whatever is given."
        ),
    ] = False,
    slower: Annotated[
        float,
        typer.Option(
            help="Build fewer places for transfers in flight if the runs then take at most so many "
            "percent more cycles.",
            min=0,
            max=100 * MOST_SLOWER,
            metavar="PERCENT",
        ),
    ] = 0.0,
    keep_counters: Annotated[
        bool, typer.Option("--keep-counters", help="Keep the performance counters.")
    ] = False,
    profile: Annotated[
        list[Path] | None,
        typer.Option(
            help="Profile of more runs, from vip run --profile.",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None,
    address_bits: Annotated[
        int | None,
        typer.Option(
            help="Address bits of the memory (default: as needed).",
            min=12,
            max=40,
            metavar="BITS",
        ),
    ] = None,
    tight: Annotated[
        bool,
        typer.Option("--tight", help="Sizes of the runs, even where a larger one is proved."),
    ] = False,
    allow_uncovered: Annotated[
        bool,
        typer.Option(
            "--allow-uncovered", help="Take runs that do not go wherever the program can go."
        ),
    ] = False,
    rom: Annotated[
        bool, typer.Option("--rom", help="Bake the program into a ROM; there must be one.")
    ] = False,
) -> vip.Sizes:
    """What decides the sizes of the engine."""
    if proved and tight:
        raise UserError("--proved and --tight exclude each other")
    return vip.Sizes(
        basis="proved" if proved else "tight" if tight else "runs",
        profiles=[Profile.load(path) for path in profile or ()],
        allow_uncovered=allow_uncovered,
        keep_counters=keep_counters,
        rom=rom,
        address_bits=address_bits,
        slower=slower / 100,
    )


def _launches(
    *,
    parameters: ParametersOption = 0,
    latency: Annotated[
        int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000)
    ] = 20,
    max_cycles: MaxCyclesOption = 200_000_000,
    allow_fault: Annotated[
        bool, typer.Option("--allow-fault", help="Compare up to the fault of a program.")
    ] = False,
) -> vip.Launches:
    """How the programs run."""
    return vip.Launches(
        parameters=parameters,
        behaviour=MemoryBehaviour(latency=latency),
        max_cycles=max_cycles,
        allow_fault=allow_fault,
    )


def _steps(
    *,
    check: Annotated[
        bool, typer.Option(help="Run the programs on the Verilog of both engines.")
    ] = True,
    area: Annotated[bool, typer.Option(help="Synthesise both engines.")] = True,
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Prove that the engine does what the full one does (docs/proofs.md)."
        ),
    ] = False,
) -> dict[str, bool]:
    """The steps of :func:`vip.trim` and :func:`vip.trim_model`, by parameter."""
    return {"check": check, "area": area, "prove": prove}


SizesOption = Annotated[vip.Sizes, _sizes]
LaunchesOption = Annotated[vip.Launches, _launches]
StepsOption = Annotated[dict[str, bool], _steps]


@dataclass(frozen=True, kw_only=True)
class MemoryOptions:
    """What is known of the memory of programs, which applications of the suite bring."""

    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="The memory's contents from address 0 for a run: of the only program, or "
            "PROGRAM=FILE; may be repeated (default: PROGRAM with the ending .memory, if there is "
            "one).",
            metavar="FILE",
            callback=reading(_memory_files),
        ),
    ] = None
    constant: Annotated[
        list[str] | None,
        typer.Option(
            help="Bytes of the memory that are the same in all runs, such as a parameter block; "
            "all else is data. May be repeated; PROGRAM=START:BYTES with several programs.",
            metavar="START:BYTES",
        ),
    ] = None
    range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Signed numbers in memory, of 64 or BITS bits each, from LOW to HIGH in all runs; "
            "may be repeated.",
            metavar="START:BYTES[/BITS]=LOW..HIGH",
        ),
    ] = None
    slots: Annotated[
        int | None,
        typer.Option(
            help="Programs run in the first so many slots of a vault (default: in any).",
            min=1,
            max=1 << 16,
            metavar="NUMBER",
        ),
    ] = None

    def check(self, programs: Sequence[str]) -> None:
        """Refuse options for an application among the programs.

        Raises:
            UserError: one is given.
        """
        named = {application.name for application in applications()} & set(programs)
        if named and (self.constant or self.range or self.memory or self.slots):
            raise UserError(
                f"{min(named)} is an application, which brings its memory and "
                "declarations: --memory, --constant, --range and --slots are for programs"
            )

    def memories(self, programs: Sequence[str], arguments: FileArguments) -> dict[str, list[Path]]:
        """For each program the files that its memory may hold at the start.

        Raises:
            UserError: a file of none of the programs, or of an unknown one of several.
        """
        contents: dict[str, list[Path]] = {program: [] for program in programs}
        for text in self.memory or []:
            owner, separator, file = text.rpartition("=")
            if not separator and len(programs) > 1:
                raise UserError(f"--memory {text}: with several programs, give PROGRAM=FILE")
            if not separator:
                contents[programs[0]].append(Path(file))
            elif owner in contents:
                contents[owner].append(Path(file))
            else:
                raise UserError(f"--memory {text}: {owner} is none of the programs")
        for program, files in contents.items():
            default = Path(program).with_suffix(".memory")
            if not files and default.is_file():
                arguments.reads(default, "the memory of a program")
                files.append(default)
        return contents

    def declared(self, programs: Sequence[str]) -> Mapping[str, Declared]:
        """For each program what is declared about its memory.

        Raises:
            UserError: a declaration of another form, or of none of the programs.
        """
        return _declarations(
            programs, self.constant or (), self.range or (), self.slots or Declared().slots
        )


def _number(text: str) -> int:
    return int(text, 16 if "0x" in text else 10)


def _declarations(
    programs: Sequence[str], constants: Sequence[str], ranges: Sequence[str], slots: int
) -> Mapping[str, Declared]:
    """For each program what is declared about its memory.

    Parameters:
        programs: as the user names them. constants: ``[PROGRAM=]START:BYTES``, of the only
            program without a name. ranges: ``[PROGRAM=]START:BYTES[/BITS]=LOW..HIGH``. slots: all
            programs run in the slots below.

    Raises:
        UserError: a text of another form, of none of the programs, or of an unknown one of several.
    """
    spans: dict[str, list[Span]] = {program: [] for program in programs}
    numbers: dict[str, list[Numbers]] = {program: [] for program in programs}
    for option, texts, form, allowed in (
        ("--constant", constants, _CONSTANT, "START:BYTES, such as 0x100:64"),
        ("--range", ranges, _RANGE, "START:BYTES[/BITS]=LOW..HIGH, such as 0x140:8=1..256"),
    ):
        for text in texts:
            match = form.fullmatch(text)
            if match is None:
                raise UserError(f"{option} {text}: must be {allowed}")
            owner = match["owner"] or programs[0]
            if not match["owner"] and len(programs) > 1:
                raise UserError(f"{option} {text}: with several programs, put PROGRAM= before it")
            if owner not in spans:
                raise UserError(f"{option} {text}: {owner} is none of the programs")
            span = Span(_number(match["start"]), _number(match["size"]))
            if form is _CONSTANT:
                spans[owner].append(span)
            else:
                low, high = _number(match["low"]), _number(match["high"])
                numbers[owner].append(Numbers(span, low, high, int(match["width"] or 64)))
    return {
        program: Declared(
            constants=tuple(spans[program]), numbers=tuple(numbers[program]), slots=slots
        )
        for program in programs
    }
