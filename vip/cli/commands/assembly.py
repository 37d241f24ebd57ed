"""``vip asm``, ``vip disasm`` and ``vip run``."""

import time
from collections import Counter
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isa.assembly.assembler import assemble_file, listing
from isa.assembly.disassembler import disassemble
from isa.formats import FORMATS
from isa.program import Program
from isa.support.files import write_atomically
from pe.config import PeConfig
from vip.cli.console import console, tally
from vip.cli.errors import UserError
from vip.output import write_json

from .machine import (
    DumpOption,
    MemoryOption,
    check_dump,
    show_hazards,
    show_registers,
    show_saturated,
)
from .options import JsonOption, ParametersOption, PresetOption, file_arguments, reading, writing

__all__ = ["asm", "disasm", "read_program", "run"]

_STEP = 50_000
_NUMBER_CHARACTERS = 160


class ProgramFormat(Enum):
    """What ``vip asm`` can write."""

    VIP = "vip"
    HEX = "hex"
    BIN = "bin"
    MEM = "mem"


def read_program(path: Path, words: int | None = None) -> Program:
    """A program file, or assembly (``.s``, ``.asm``) that is assembled on the way.

    Parameters:
        words: of the instruction buffer of the engine that is to run it; None: any number.

    Raises:
        VipError: it can't be read or used, is longer, or there is no instruction in it.
    """
    assembly = path.suffix in (".s", ".asm")
    program = assemble_file(path) if assembly else Program.load(path)
    if not program.words:
        raise UserError(f"{path}: there is no instruction in it")
    if words is not None and len(program.words) > words:
        raise UserError(
            f"{path}: the program has {len(program.words)} words, the engine's buffer {words}"
        )
    return program


def _constants(given: list[str]) -> dict[str, int]:
    constants = {}
    for item in given:
        name, _, value = item.partition("=")
        try:
            # Longer texts go beyond the 128 bits of the assembler's numbers in any notation.
            constants[name] = int(value, 0) if len(value) <= _NUMBER_CHARACTERS else int("")
        except ValueError:
            raise UserError(
                f"--define {item}: give NAME=NUMBER, the number within 128 bits"
            ) from None
    return constants


def asm(
    context: typer.Context,
    source: Annotated[
        Path, typer.Argument(help="Assembly file.", metavar="FILE.s", callback=reading())
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Program file (default: FILE and the format).",
            metavar="FILE",
            callback=writing(),
        ),
    ] = None,
    listing_file: Annotated[
        Path | None,
        typer.Option("--listing", help="Write a listing too.", metavar="FILE", callback=writing()),
    ] = None,
    define: Annotated[
        list[str] | None,
        typer.Option("-D", "--define", help="Constant for the source.", metavar="NAME=NUMBER"),
    ] = None,
    form: Annotated[
        ProgramFormat,
        typer.Option(
            "--format",
            help="vip with symbols, for other commands; words alone as hex lines, little-endian "
            "bin, or mem for $readmemh.",
        ),
    ] = ProgramFormat.VIP,
    max_words: Annotated[
        int, typer.Option(help="Refuse a longer program.", min=1, max=8192, metavar="WORDS")
    ] = PeConfig().instruction_words,
    json: JsonOption = None,
) -> None:
    """Assemble a program.

    Example: vip asm kernel.s -o kernel.vip --listing kernel.lst

    Example: vip asm kernel.s --format mem
    """
    target = output
    if target is None:
        target = source.with_suffix(f".{form.value}")
        file_arguments(context).writes(target, "the output")
    program = assemble_file(source, constants=_constants(define or []), max_words=max_words)
    if not program.words:
        raise UserError(f"{source}: there is no instruction in it")
    if form is ProgramFormat.VIP:
        program.save(target)
    else:
        write_atomically(target, FORMATS[form.value](program))
    if listing_file is not None:
        write_atomically(listing_file, listing(program).encode())
    write_json(json, {"words": len(program.words), "program": str(target)})
    console.print(f"{target}: {len(program.words)} words")


def disasm(
    program: Annotated[
        Path, typer.Argument(help="Program file.", metavar="FILE.vip", callback=reading())
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Assembly file (default: standard output).",
            metavar="FILE",
            callback=writing(),
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Turn a program back into assembly that assembles to the same words.

    Example: vip disasm kernel.vip -o kernel.s
    """
    loaded = Program.load(program)
    text = disassemble(loaded)
    write_json(json, {"words": len(loaded.words), "assembly": text})
    if output is not None:
        write_atomically(output, text.encode())
    else:
        console.out(text, end="", highlight=False)


def run(
    program: Annotated[
        Path,
        typer.Argument(
            help="Program file, or assembly (.s).", metavar="PROGRAM", callback=reading()
        ),
    ],
    preset_name: PresetOption = "pe",
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    limit: Annotated[
        int, typer.Option(help="Stop after so many instructions.", min=1, metavar="N")
    ] = 100_000_000,
    dump: DumpOption = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Write what the program did, for vip trim --profile.",
            metavar="FILE",
            callback=writing(),
        ),
    ] = None,
    hazards: Annotated[
        bool,
        typer.Option(
            "--hazards/--no-hazards",
            help="Check that no instruction uses the scratchpad before the vector unit is done.",
        ),
    ] = True,
    saturation: Annotated[
        bool,
        typer.Option(
            "--saturation/--no-saturation",
            help="Count values of vector instructions that do not fit their element.",
        ),
    ] = True,
    json: JsonOption = None,
) -> None:
    """Run a program on the instruction set simulator, and check its timing rules.

    A program that breaks a rule computes here what it should, but perhaps not on hardware. Each
    place gets a line (see the ISA manual), and the exit code is 1.

    Example: vip run kernel.vip --memory image.bin --dump 4096 512 result.bin
    """
    # Only here: the assembler and disassembler start without them.
    from isa.hazards import HazardLog
    from isa.image import DramImage
    from isa.iss.simulator import Simulator, every
    from soc.generate.presets import preset
    from synth.analysis.facts import Facts
    from synth.analysis.profile import profile_of
    from synth.analysis.recorder import recorder

    config = preset(preset_name)
    wanted = check_dump(dump, 1 << config.address_bits)
    loaded = read_program(program)
    facts, log = Facts(), HazardLog()
    observers = [] if profile is None else [recorder(facts)]
    if hazards:
        observers.append(log.observer())
    with DramImage(1 << config.address_bits) as image:
        if memory is not None:
            image.load_file(0, memory)
        simulator = Simulator(
            loaded,
            image,
            parameters=parameters,
            **config.limits,
            observer=every(*observers),
            count_saturation=saturation,
        )
        started = time.perf_counter()
        with tally("instructions") as done:
            outcome = simulator.run(min(_STEP, limit))
            while outcome.state == "limit" and outcome.instructions < limit:
                done(outcome.instructions)
                outcome = simulator.run(min(_STEP, limit - outcome.instructions))
        seconds = time.perf_counter() - started
        if wanted is not None:
            first, count, path = wanted
            image.save_file(first, count, path)
    write_json(
        json,
        {
            "state": outcome.state,
            "cause": outcome.cause.name,
            "pc": outcome.pc,
            "instructions": outcome.instructions,
            "executed": dict(simulator.executed),
            "registers": list(simulator.registers),
            "hazards": [hazard.report() for hazard in log.hazards] if hazards else None,
            "saturated": sum(simulator.saturated) if saturation else None,
        },
    )
    title = f"{program.name}: {outcome.state}, {outcome.instructions:,} instructions"
    console.print(f"{title} in {seconds:.2f} s")
    if profile is not None:
        profile_of(loaded, simulator, facts, parameters).save(profile)
    _show_executed(simulator.executed)
    show_registers(simulator.registers)
    show_hazards(loaded, log.hazards)
    show_saturated(loaded, simulator.saturated)
    if outcome.state == "faulted":
        raise UserError(f"{program}: fault {outcome.cause.name} at word {outcome.pc}")
    if outcome.state == "limit":
        raise UserError(f"{program}: still running after {limit} instructions (--limit)")
    if log.hazards:
        raise typer.Exit(1)


def _show_executed(executed: Counter[str]) -> None:
    table = Table()
    table.add_column("instruction")
    table.add_column("executed", justify="right")
    for key, count in executed.most_common(12):
        table.add_row(key, f"{count:,}")
    console.print(table)
