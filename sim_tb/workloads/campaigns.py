"""Campaigns on engines, vaults and boards: resets at random cycles, memories that fail, and serial
lines that lose bytes.

What a campaign does in a point follows from its seed and the point's number.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import numpy as np

from isa.assembly.assembler import assemble
from isa.image import DramImage
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.board import BoardSimulation, DamagedLine, HostKilled
from sim_tb.cosim.engine import CosimError, PeSimulation, TooLong, WasReset
from sim_tb.cosim.vault import VaultSimulation
from sim_tb.random.comparison import check_programs, compare, fill, program_job
from sim_tb.random.programs import random_program
from soc.board.serial_transport import SerialTransport
from soc.board.terminal import Terminal
from soc.chip.config import ChipConfig
from soc.host.driver import Host, HostTimeout
from soc.host.transport import Blocking, HostError, run
from soc.tile.config import VaultTileConfig
from support.errors import VipError

_Of = ParamSpec("_Of")
#: A point of a campaign: what was done, and what went wrong; None: nothing.
Point = tuple[str, VipError | None]


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Outcome of a campaign.

    Attributes:
        points: disturbed runs. hung: those, or runs after them, that did not end. lost: those after
            which something was wrong. first: what was wrong first, with its point; "": nothing.
    """

    points: int
    hung: int
    lost: int
    first: str = ""


def tally(points: Iterator[Point]) -> Campaign:
    """The outcome of a campaign."""
    number = hung = lost = 0
    first = ""
    for number, (point, wrong) in enumerate(points, 1):
        if wrong is not None:
            late = isinstance(wrong, TooLong | HostTimeout)
            hung += late
            lost += not late
            first = first or f"point {number}: {point}: {wrong}"
    return Campaign(points=number, hung=hung, lost=lost, first=first)


def tallied(points: Callable[_Of, Iterator[Point]]) -> Callable[_Of, Campaign]:
    """The campaign whose points a generator yields."""

    @wraps(points)
    def campaign(*values: _Of.args, **named: _Of.kwargs) -> Campaign:
        return tally(points(*values, **named))

    return campaign


def error_of(act: Callable[_Of, object], *values: _Of.args, **named: _Of.kwargs) -> VipError | None:
    """The error with which a run, or its check, ends; None: it ends without one."""
    try:
        act(*values, **named)
    except (CosimError, HostError) as error:
        return error
    return None


@tallied
def engine_resets(
    config: PeConfig, points: int, seed: int, *, netlist: str = ""
) -> Iterator[Point]:
    """Reset an engine and its memory while a random program is loaded, runs, or has just ended; the
    next random program must leave what the simulator says.

    Parameters:
        netlist: see :class:`sim_tb.cosim.engine.PeSimulation`.
    """
    rng = random.Random(seed)
    size = 1 << config.address_bits
    with (
        PeSimulation(config, netlist=netlist) as simulation,
        DramImage(size) as image,
        DramImage(size) as other,
    ):
        program = random_program(seed, config)
        fill(image, program)
        (result,) = simulation.run_many([program_job(program, image, simulation, reset=True)])
        for number in range(1, points + 1):
            cycles = 0 if isinstance(result, CosimError) else result.engine.elapsed_cycles
            after = rng.randrange(len(program.words) + cycles)
            fill(image, program)
            job = program_job(program, image, simulation, reset=False, reset_after=after)
            (result,) = simulation.run_many([job])
            wrong = _unless_reset(result if isinstance(result, CosimError) else None)
            program = random_program(seed + number, config)
            fill(image, program)
            fill(other, program)
            (result,) = simulation.run_many([program_job(program, image, simulation, reset=False)])
            lines, _ = compare(program, config, result, image, other)
            if isinstance(result, CosimError):
                wrong = wrong or result
            elif lines:
                wrong = wrong or CosimError(lines[0])
            yield f"reset after {after} cycles", wrong


def _unless_reset(error: VipError | None) -> VipError | None:
    """What is wrong with a run that was to be reset."""
    return None if isinstance(error, WasReset) else error or CosimError("not reset")


def engine_errors(config: PeConfig, points: int, seed: int) -> Campaign:
    """Random programs whose memory answers some addresses with errors, of one to four beats; at
    least ``points`` of them meet one. What they leave must be what the simulator allows."""
    met = hung = lost = 0
    first = ""
    while met < points and not first:
        report = check_programs(config, programs=points, seed=seed, disturbed=1.0)
        if not report.memory_errors:
            raise CosimError("no random program meets a memory error")
        met += report.memory_errors
        seed += report.programs
        for one in report.different:
            hung += one.hung
            lost += not one.hung
            first = first or f"seed {one.seed}: {one.what[0]}"
    return Campaign(points=met, hung=hung, lost=lost, first=first)


@tallied
def vault_resets(
    config: VaultTileConfig, job: KernelJob, points: int, seed: int
) -> Iterator[Point]:
    """Reset a vault, with its engines and its DRAM, in a kernel; the kernel, run again, must leave
    what its golden model says.

    Parameters:
        job: of one launch, for all engines of ``config``.
    """
    rng = random.Random(seed)
    (launch,) = job.launches
    with VaultSimulation(config) as vault, DramImage(config.memory_bytes) as image:
        job.prepare(image)
        reference = vault.run(launch, image, engines=job.pes)
        cycles = len(launch.program.words) + max(end.elapsed_cycles for end in reference.engines)
        for _ in range(points):
            after = rng.randrange(cycles)
            wrong = _unless_reset(
                error_of(vault.run, launch, image, engines=job.pes, reset_after=after)
            )
            job.prepare(image)
            wrong = wrong or error_of(vault.run, launch, image, engines=job.pes, reset=False)
            if not wrong and not np.array_equal(job.outputs(image), job.expected):
                wrong = CosimError("outputs differ")
            yield f"reset after {after} cycles", wrong


#: Of the bytes of a damaged line.
_DAMAGED = 0.001
#: Launches in which the cable is pulled for a second, and in which the host is killed.
_PULLED, _KILLED = 0.01, 0.05
#: Seconds without a byte after which the host of a simulated board sends again: the chip's gap.
_PATIENCE = 0.4
_CONTENT_BYTES = 200
#: Addresses of a number with further bytes, and of how often the program ran, with the sum of both.
_INPUT, _RUNS = 0, 256
_COUNTING = f"""
    mov r1, #{_INPUT}
    ld.reg [64-bit] r2, r1
    mov r3, #{_RUNS}
    ld.reg [64-bit] r4, r3
    add r4, r4, #1
    st.reg [64-bit] r3, r4
    add r2, r2, r4
    add r3, r3, #8
    st.reg [64-bit] r3, r2
    memfence
    halt
"""


@tallied
def line_damage(
    config: ChipConfig, divisor: int, rate: int, points: int, seed: int
) -> Iterator[Point]:
    """Damage a thousandth of the bytes of a board's serial line, now and then all of a second, or
    kill the host in the middle of a frame; no launch may be lost, performed twice, or wrong.

    Parameters:
        config, divisor: see :class:`soc.board.design.SerialChip`.
        rate: of the line, bits per second.
        points: launches.
    """
    rng = random.Random(seed)
    with BoardSimulation(config, divisor) as board, Terminal(board.terminal, rate) as terminal:
        line = DamagedLine(terminal, rng, _DAMAGED)
        host = _new_host(line)
        run(host.write(_RUNS, bytes(8)))
        runs = 0
        for _ in range(points):
            event = "damaged bytes"
            if rng.random() < _PULLED:
                event = "the cable pulled"
                line.pull(1.0)
            elif rng.random() < _KILLED:
                event = "the host killed"
                line.frames_left = rng.randrange(12)
            try:
                wrong = error_of(_count, host, runs, rng)
                runs += 1
            except HostKilled:
                host = _new_host(line)
                count = int.from_bytes(run(host.read(_RUNS, 8)), "little")
                wrong = (
                    None if count in (runs, runs + 1) else CosimError(f"{count} runs, not {runs}")
                )
                runs = count
            yield event, wrong
        if not line.damage.number:
            yield "the line", CosimError("no byte was damaged")


def _new_host(line: DamagedLine) -> Host:
    """A host that knows nothing of an earlier one, and its program."""
    host = Host(Blocking(SerialTransport(line, patience=_PATIENCE)))
    run(host.wait(timeout=60.0))
    run(host.load(assemble(_COUNTING)))
    return host


def _count(host: Host, runs: int, rng: random.Random) -> None:
    """Launch the program, which has run ``runs`` times, and check what it leaves."""
    value, content = rng.getrandbits(32), rng.randbytes(_CONTENT_BYTES)
    run(host.write(_INPUT, value.to_bytes(8, "little") + content))
    run(host.launch())
    run(host.wait(timeout=60.0))
    if faults := run(host.faults()):
        raise CosimError(str(faults[0]))
    if run(host.read(_INPUT + 8, _CONTENT_BYTES)) != content:
        raise CosimError("memory differs")
    left = run(host.read(_RUNS, 16))
    count, total = (int.from_bytes(left[place : place + 8], "little") for place in (0, 8))
    if (count, total) != (runs + 1, value + runs + 1):
        raise CosimError(f"{count} runs and the sum {total}, not {runs + 1} and {value + runs + 1}")
