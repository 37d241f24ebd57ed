"""Programs: from assembly or a file, and run on the instruction set simulator."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hdl.config import PeConfig
from isa.assembly.assembler import assemble as assemble_text
from isa.assembly.assembler import assemble_file
from isa.program import Program, ProgramError
from isa.support.errors import VipError

from .progress import Progress, silent

if TYPE_CHECKING:
    from isa.hazards import Hazard
    from isa.image import DramImage
    from isa.iss.simulator import Outcome
    from synth.analysis.profile import Profile

    from .configurations import Design

__all__ = ["Dump", "DumpError", "RunResult", "assemble", "fill", "load_program", "run"]

#: Instructions between two reports of progress.
_STEP = 50_000


class DumpError(VipError):
    """Bytes outside the memory that are to be read after a run."""


class Dump(NamedTuple):
    """Bytes of the memory that are read after a run.

    Attributes:
        address, size: the first byte, and how many.
        path: file that they are written to; None: they are in the result.
    """

    address: int
    size: int
    path: Path | None = None

    def check(self, memory_bytes: int) -> None:
        """Refuse bytes outside a memory of ``memory_bytes``.

        Raises:
            DumpError: some are.
        """
        if self.address < 0 or self.size < 0 or self.address + self.size > memory_bytes:
            raise DumpError(
                f"dump {self.address} {self.size}: the bytes must be within 0 to "
                f"{memory_bytes:#x}, the memory's end"
            )

    def take(self, image: "DramImage") -> bytes:
        """The bytes in ``image``, or none after they were written to :attr:`path`.

        Raises:
            OSError: the file can't be written.
        """
        if self.path is None:
            return image.read(self.address, self.size)
        image.save_file(self.address, self.size, self.path)
        return b""


def fill(image: "DramImage", memory: bytes | Path | None) -> None:
    """Put ``memory``, bytes or a file, into ``image`` from address 0 on; None: nothing.

    Raises:
        VipError: it is larger than the image. OSError: the file can't be read.
    """
    if isinstance(memory, bytes):
        image.write(0, memory)
    elif memory is not None:
        image.load_file(0, memory)


def assemble(
    source: str | Path,
    *,
    constants: Mapping[str, int] | None = None,
    max_words: int | None = PeConfig().instruction_words,
) -> Program:
    """Assemble a program.

    ``assemble("mov r1, #42\\nhalt")`` takes a text, ``assemble(Path("kernel.s"))`` a file.

    Parameters:
        source: assembly text, or the path of a file of it.
        constants: named constants that the source may use beside its own.
        max_words: a longer program is an error; None: any length.

    Raises:
        AssemblyError: a mistake in the source, or a file that can't be read.
        ProgramError: there is no instruction in it.
    """
    if isinstance(source, Path):
        program = assemble_file(source, constants=constants, max_words=max_words)
    else:
        program = assemble_text(source, constants=constants, max_words=max_words)
    if not program.words:
        where = source if isinstance(source, Path) else "<assembly>"
        raise ProgramError(f"{where}: there is no instruction in it")
    return program


def load_program(program: Program | Path, words: int | None = None) -> Program:
    """A program as the verbs take it.

    Parameters:
        program: a program, a program file, or assembly (``.s``, ``.asm``) that is assembled on the
            way.
        words: of the instruction buffer of the engine that is to run it; None: any number.

    Raises:
        VipError: it can't be read or used, is longer, or there is no instruction in it.
    """
    where = f"{program}: " if isinstance(program, Path) else ""
    if isinstance(program, Path):
        if program.suffix in (".s", ".asm"):
            program = assemble(program, max_words=None)
        else:
            program = Program.load(program)
    if not program.words:
        raise ProgramError(f"{where}there is no instruction in it")
    if words is not None and len(program.words) > words:
        raise ProgramError(
            f"{where}the program has {len(program.words)} words, the engine's buffer {words}"
        )
    return program


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A run on the instruction set simulator.

    Attributes:
        program: that ran. outcome: how far it came.
        executed: instruction -> how often.
        registers: 64-bit patterns.
        hazards: uses of the scratchpad before the vector unit is done, of which hardware may
            compute something else; None: not checked.
        saturated: for each word of the program the values limited to the width of their element;
            None: not counted.
        profile: for :func:`vip.trim`; None: not made.
        dumped: the bytes asked for.
        seconds: that the run took.
    """

    program: Program
    outcome: "Outcome"
    executed: Mapping[str, int]
    registers: tuple[int, ...]
    hazards: tuple["Hazard", ...] | None
    saturated: tuple[int, ...] | None
    profile: "Profile | None"
    dumped: bytes
    seconds: float

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        return {
            "state": self.outcome.state,
            "cause": self.outcome.cause.name,
            "pc": self.outcome.pc,
            "instructions": self.outcome.instructions,
            "executed": dict(self.executed),
            "registers": list(self.registers),
            "hazards": None if self.hazards is None else [one.report() for one in self.hazards],
            "saturated": None if self.saturated is None else sum(self.saturated),
        }


def run(
    program: Program | Path,
    config: "Design" = "pe",
    *,
    memory: bytes | Path | None = None,
    parameters: int = 0,
    limit: int = 100_000_000,
    dump: Dump | None = None,
    hazards: bool = True,
    saturation: bool = True,
    profile: bool = False,
    progress: Progress = silent,
) -> RunResult:
    """Run a program on the instruction set simulator, and check its timing rules.

    ``run(assemble("mov r9, #42\\nhalt")).registers[9]`` is 42.

    Parameters:
        program: a program, or a file of one or of assembly.
        config: of the engine.
        memory: contents from address 0 on, bytes or a file; None: zeros.
        parameters: DRAM address of the parameter block (r5).
        limit: instructions after which the run ends, at least 1.
        dump: bytes of the memory to read afterwards.
        hazards, saturation, profile: whether the result has them.
        progress: called with the instructions so far.

    Raises:
        VipError: a program, configuration or memory that can't be used, or a dump outside it.
        OSError: a file that can't be read or written.
    """
    # Only here: the assembler starts without them.
    from isa.hazards import HazardLog
    from isa.image import DramImage
    from isa.iss.simulator import Simulator, every
    from synth.analysis.facts import Facts
    from synth.analysis.profile import profile_of
    from synth.analysis.recorder import recorder

    from .configurations import engine

    chosen = engine(config)
    if dump is not None:
        dump.check(1 << chosen.address_bits)
    loaded = load_program(program)
    facts, log = Facts(), HazardLog()
    observers = [recorder(facts)] if profile else []
    if hazards:
        observers.append(log.observer())
    with DramImage(1 << chosen.address_bits) as image:
        fill(image, memory)
        simulator = Simulator(
            loaded,
            image,
            parameters=parameters,
            **chosen.limits,
            observer=every(*observers),
            count_saturation=saturation,
        )
        started = time.perf_counter()
        outcome = simulator.run(min(_STEP, limit))
        while outcome.state == "limit" and outcome.instructions < limit:
            progress("instructions", outcome.instructions)
            outcome = simulator.run(min(_STEP, limit - outcome.instructions))
        seconds = time.perf_counter() - started
        dumped = b"" if dump is None else dump.take(image)
    return RunResult(
        program=loaded,
        outcome=outcome,
        executed=dict(simulator.executed),
        registers=tuple(simulator.registers),
        hazards=tuple(log.hazards) if hazards else None,
        saturated=tuple(simulator.saturated) if saturation else None,
        profile=profile_of(loaded, simulator, facts, parameters) if profile else None,
        dumped=dumped,
        seconds=seconds,
    )
