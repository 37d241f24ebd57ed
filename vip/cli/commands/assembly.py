"""``vip asm``, ``vip disasm`` and ``vip run``."""

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

import vip
from isa.assembly.disassembler import disassemble, located
from isa.program import FORMATS, Program, listing, still_running
from pe.config import PeConfig
from support.command import USER_ERROR
from support.errors import counted
from support.files import write_atomically
from vip.cli.console import console, shown, table, warn
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.cli.tables.machine import (
    show_dump,
    show_hazards,
    show_registers,
    show_saturated,
    show_unset_length,
)
from vip.programs import ENDINGS, LIMIT

from .option_groups.design import (
    DesignOption,
    DumpOption,
    MemoryOption,
    ProgramArgument,
    dump_of,
    naming_dump,
)
from .options import (
    ParametersOption,
    file_arguments,
    file_option,
    output_option,
    reading,
    writing,
)

#: Most characters of a number in --define: more than 128 bits take in any notation.
_NUMBER_CHARACTERS = 160
#: Instructions in the table of ``vip run``.
_MOST_EXECUTED = 12


class ProgramFormat(Enum):
    """What ``vip asm`` can write."""

    VIP = "vip"
    HEX = "hex"
    BIN = "bin"
    MEM = "mem"


def _constants(texts: list[str]) -> dict[str, int]:
    constants = {}
    for item in texts:
        name, _, value = item.partition("=")
        try:
            constants[name] = int(value, 0) if len(value) <= _NUMBER_CHARACTERS else int("")
        except ValueError:
            raise UserError(
                f"--define {item}: must be NAME=NUMBER, a number of at most 128 bits"
            ) from None
    return constants


def asm(
    context: typer.Context,
    source: Annotated[
        Path, typer.Argument(help="Assembly file.", metavar="FILE.s", callback=reading())
    ],
    output: Annotated[
        Path | None,
        output_option("Program file (default: FILE with the format as its ending).", writing()),
    ] = None,
    listing_file: Annotated[
        Path | None,
        file_option("Also write a listing.", writing(), "--listing"),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option(
            "-D",
            "--define",
            help="Define a constant for the source; may be repeated.",
            metavar="NAME=NUMBER",
        ),
    ] = None,
    form: Annotated[
        ProgramFormat | None,
        typer.Option(
            "--format",
            help="vip: words and symbols, for other commands. Words only: hex, one per line; bin, "
            "little-endian; mem, for $readmemh (default: by the ending of --output, else vip).",
            show_default=False,
        ),
    ] = None,
    max_words: Annotated[
        int, typer.Option(help="Reject longer programs.", min=1, max=8192, metavar="WORDS")
    ] = PeConfig().instruction_words,
) -> Answer:
    """Assemble a program.

    Example: vip asm kernel.s -o kernel.vip --listing kernel.lst

    Example: vip asm kernel.s -o kernel.mem
    """
    ending = output.suffix.lower()[1:] if output else ""
    form = form or ProgramFormat(ending if ending in FORMATS else "vip")
    target = output
    if target is None:
        target = source.with_suffix(f".{form.value}")
        file_arguments(context).writes(target, "the output")
    program = vip.assemble(source, constants=_constants(define or []), max_words=max_words)
    _write(program, target, form)
    if listing_file is not None:
        write_atomically(listing_file, listing(program).encode())
    console.print(f"{target}: {counted(len(program.words), 'word')}")
    return Answer({"words": len(program.words), "program": str(target)})


def _write(program: Program, target: Path, form: ProgramFormat) -> None:
    if form is ProgramFormat.VIP:
        program.save(target)
    else:
        write_atomically(target, FORMATS[form.value](program))


def disasm(
    program: Annotated[
        Path, typer.Argument(help="Program file.", metavar="FILE.vip", callback=reading())
    ],
    output: Annotated[
        Path | None,
        output_option("Assembly file (default: standard output).", writing()),
    ] = None,
) -> Answer:
    """Disassemble a program into source that assembles to the same words.

    Example: vip disasm kernel.vip -o kernel.s
    """
    if program.suffix in ENDINGS:
        raise UserError(f"{program}: is assembly already; vip asm {program} assembles it")
    loaded = Program.load(program)
    text = disassemble(loaded)
    if output is not None:
        write_atomically(output, text.encode())
    else:
        console.out(text, end="", highlight=False)
    return Answer({"words": len(loaded.words), "assembly": text})


def run(
    program: ProgramArgument,
    design: DesignOption,
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    limit: Annotated[
        int, typer.Option(help="Stop after this many instructions.", min=1, metavar="N")
    ] = LIMIT,
    dump: DumpOption = None,
    profile: Annotated[
        Path | None,
        file_option("Write a profile of the run, for vip trim --profile.", writing()),
    ] = None,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compiled",
            help="Use the C++ simulator: about a hundred times faster, compiled on first use.",
        ),
    ] = False,
) -> Answer:
    """Run a program on the instruction set simulator and check its timing rules.

    A program that breaks a timing rule (see the ISA manual) still gives the expected results in
    this simulator, but may not on hardware. Each violation is reported on a line, and the exit code
    is 1.

    Example: vip run kernel.vip --memory image.bin --dump 4096 512 result.bin
    """
    written = dump_of(dump)
    with shown() as progress, naming_dump():
        result = vip.run(
            program,
            design,
            memory=memory,
            parameters=parameters,
            limit=limit,
            dump=written,
            profile=profile is not None,
            compiled=compiled,
            progress=progress,
        )
    if profile is not None and result.profile is not None:
        result.profile.save(profile)
    outcome = result.outcome
    if outcome.state == "faulted":
        warn(outcome.fault)
    if outcome.state == "running":
        warn(still_running(located(result.program, outcome.pc), limit, "instruction"))
    _show(program.name, result)
    if written is not None:
        show_dump(result.program, written)
    code = USER_ERROR if outcome.state != "halted" else 1 if result.hazards else 0
    return Answer(result.to_json(), code)


def _show(name: str, result: "vip.ProgramRun") -> None:
    outcome = result.outcome
    show_hazards(result.program, result.hazards)
    show_saturated(result.program, result.saturated)
    show_unset_length(result.executed)
    state = "still running" if outcome.state == "running" else outcome.state
    length = counted(outcome.executed, "instruction")
    console.print(f"{name}: {state}, {length} in {result.seconds:.2f} s")
    counts = table("instruction", "executed", left=("instruction",))
    for key, count in Counter(result.executed).most_common(_MOST_EXECUTED):
        counts.add_row(key, f"{count:,}")
    console.print(counts)
    show_registers(result.registers)
