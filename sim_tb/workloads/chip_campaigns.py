"""Campaigns on chips, through their AXI ports: resets at random cycles, and memories that fail."""

import random
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdl.ports import COLUMN_BYTES
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.chip import ChipSession, ChipSimulation, HostMemory, run_launch
from sim_tb.cosim.engine import CosimError, TooLong
from sim_tb.harness.chip import Kind, Misuse, Operation, Outcome, Result
from soc.chip.config import ChipConfig
from soc.host.driver import Host
from soc.host.register_map import CHIP
from soc.host.transport import Blocking, BusError, run

from .campaigns import Point, error_of, tallied

#: Copies blocks of bytes from the list at its page of the parameters: their number, then source,
#: target and bytes of each. Every other block's first word goes through a register, too.
_COPIES = assemble("""
    sll r9, r1, #9
    add r9, r9, r5
    ld.reg [64-bit] r10, r9
    mov r14, #0
again:
    add r9, r9, #8
    ld.reg [64-bit] r11, r9
    add r9, r9, #8
    ld.reg [64-bit] r12, r9
    add r9, r9, #8
    ld.reg [64-bit] r13, r9
    ld.sram [8-bit] r14, r11, r13
    st.sram [8-bit] r12, r14, r13
    and r15, r10, #1
    bne r15, r0, next
    and r15, r11, #-8
    ld.reg [64-bit] r15, r15
    add r16, r12, #-8
    and r16, r16, #-8
    st.reg [64-bit] r16, r15
next:
    add r14, r14, #136
    and r14, r14, #1023
    sub r10, r10, #1
    bne r10, r0, again
    memfence
    halt
""")
#: Bytes of a page; where the pages are, the sources, and the targets, each in a slot of its own.
_PAGE = 512
_PAGES, _SOURCES, _TARGETS = 0x8000, 0x10000, 0x20000
_SOURCE_BYTES, _SLOT_BYTES = 0x800, 192
_BLOCKS, _MOST_BYTES = 12, 128
_CYCLES = 200_000
#: Most cycles before a misuse, and of a stall until the host asks for the engines; cycles within
#: which everything else ends.
_MOST_WAIT, _PATIENCE = 2000, 100_000
_MISUSES = (Misuse.NOT_READY, Misuse.NO_DATA, Misuse.NO_ADDRESS, Misuse.WRONG_LAST)
#: Share of the points without errors.
_HEALTHY = 0.1


class _IsDue(Exception):
    """The cycle has come in which the host resets the chip."""


class ChipOfResets(ChipSimulation):
    """A chip whose host stops whatever it does at the cycle ``due`` after its last reset, in the
    middle of a burst, too."""

    due: int | None = None

    def perform(self, operation: Operation) -> Result:
        if self.due is None or operation.kind is Kind.RESET:
            return super().perform(operation)
        left = self.due - self.cycles
        if left < 1:
            raise _IsDue
        if operation.kind is Kind.RUN:
            return super().perform(replace(operation, count=min(left, operation.count)))
        result = super().perform(replace(operation, limit=min(left, operation.limit)))
        if result.outcome is Outcome.LATE and left < operation.limit:
            raise _IsDue
        return result


@tallied
def chip_resets(config: ChipConfig, job: KernelJob, points: int, seed: int) -> Iterator[Point]:
    """Reset a chip and its memory while the host writes a kernel's data, loads its program, waits
    for its end or reads its outputs; the kernel must then leave what its golden model says.

    Parameters:
        job: of one launch, for all engines of ``config``.
    """
    rng = random.Random(seed)
    with DramImage(config.memory_bytes) as image, ChipOfResets(config, image) as chip:
        wrong = error_of(_check_outputs, job, chip)
        cycles = chip.cycles
        for _ in range(points):
            chip.reset()
            chip.due = rng.randrange(1, cycles)
            with suppress(_IsDue):
                ended = error_of(_check_outputs, job, chip)
                wrong = wrong or ended or CosimError(f"no reset in {chip.due} cycles")
            after, chip.due = chip.cycles, None
            chip.reset()
            wrong = wrong or error_of(_check_outputs, job, chip)
            yield f"reset after {after} cycles", wrong
            wrong = None


@tallied
def chip_stalls(config: ChipConfig, job: KernelJob, points: int, seed: int) -> Iterator[Point]:
    """A host that stalls a bus while a kernel runs. On the data port it hinders no engine; after a
    reset, in any case, the kernel leaves what its golden model says. A wrong ``wlast`` has no
    effect.

    Parameters:
        job: of one launch, for all engines of ``config``, in the lower half of each vault.
    """
    rng = random.Random(seed)
    (launch,) = job.launches
    half = 1 << config.network.address_bits - 1
    with DramImage(config.memory_bytes) as image, ChipSimulation(config, image) as chip:
        for _ in range(points):
            chip.reset()
            job.prepare(image)
            host = Host(Blocking(chip))
            run(host.load(launch.program))
            run(host.launch(parameters=launch.parameters))
            chip.run(rng.randrange(1, _MOST_WAIT))
            misuse = rng.choice(_MISUSES)
            registers = misuse is not Misuse.WRONG_LAST and rng.random() < 0.3
            place = (2 * rng.randrange(config.vaults) + 1) * half + rng.randrange(half // 2)
            content = rng.randbytes(rng.choice((8, 100, 3000)))
            operation = Operation(
                kind=Kind.WRITE_REGISTERS if registers else Kind.WRITE_MEMORY,
                address=CHIP.address("INTERRUPT_ENABLE") if registers else place,
                count=4 if registers else len(content),
                data=bytes(4) if registers else content,
                limit=rng.randrange(100, _MOST_WAIT),
                misuse=misuse,
            )
            if misuse is Misuse.NOT_READY and rng.random() < 0.5:
                reads = Kind.READ_REGISTER if registers else Kind.READ_MEMORY
                operation = replace(operation, kind=reads, data=b"")
            event = f"{misuse.name} in {operation.kind.name}"
            wrong = error_of(_stall, chip, operation, job, host)
            chip.reset()
            if wrong is None:
                event += ", after the reset"
                wrong = error_of(_check_outputs, job, chip)
            yield event, wrong


def _stall(chip: ChipSession, operation: Operation, job: KernelJob, host: Host) -> None:
    """Misuse a bus, and wait for the end of ``job`` if its engines can still be asked; raises an
    error for what is wrong."""
    if operation.misuse is Misuse.WRONG_LAST:
        operation = replace(operation, limit=_PATIENCE)
    result = chip.perform(operation)
    done = operation.misuse is Misuse.WRONG_LAST
    if (result.outcome is Outcome.DONE) != done or result.response:
        late = result.outcome is Outcome.LATE
        outcome = f"{result.outcome.name}, response {result.response}"
        raise (TooLong if late and done else CosimError)(outcome)
    if operation.kind in (Kind.READ_REGISTER, Kind.WRITE_REGISTERS):
        return
    run(host.wait(timeout=_PATIENCE * chip.period_ns * 1e-9))
    if faults := run(host.faults()):
        raise CosimError(str(faults[0]))
    chip.settle()
    if done and chip.image.read(operation.address, operation.count) != operation.data:
        raise CosimError("the data written differ")
    if not np.array_equal(job.outputs(chip.image), job.expected):
        raise CosimError("outputs differ")


def _check_outputs(job: KernelJob, chip: ChipSession) -> None:
    """Run ``job`` from the host's data to its outputs; raises an error for what is wrong."""
    (launch,) = job.launches
    memory = HostMemory(Host(Blocking(chip)))
    job.prepare(memory)
    result = run_launch(chip, launch, counters=False)
    if result.faults:
        raise CosimError(str(result.faults[0]))
    if not np.array_equal(job.outputs(memory), job.expected):
        raise CosimError("outputs differ")


@dataclass(frozen=True)
class _Move:
    """Bytes that an engine copies."""

    pe: int
    source: int
    target: int
    size: int

    def meets(self, failing: range) -> bool:
        """Whether a column of source or target fails."""
        return _meet(self.source, self.size, failing) or _meet(self.target, self.size, failing)


def _meet(start: int, size: int, columns: range) -> bool:
    return start < columns.stop and start + size > columns.start


@tallied
def chip_errors(
    config: ChipConfig, points: int, seed: int, machine: Callable[..., ChipSession] = ChipSimulation
) -> Iterator[Point]:
    """Engines of a chip copy blocks between vaults while some columns of a memory on an AXI bus
    fail. Engines that meet these must fault, and all others, and what the host reads, be exact; so
    must be all, launched again without a reset, when no column fails.

    Parameters:
        machine: opens the chip with its DRAM.
    """
    rng = random.Random(seed)
    with DramImage(config.memory_bytes) as image, machine(config, image) as chip:
        for _ in range(points):
            chip.reset()
            moves = _moves(rng, config)
            before = _contents(rng, config, moves)
            image.write(0, before.tobytes())
            move = rng.choice(moves)
            place = rng.choice((move.source, move.target)) // COLUMN_BYTES - rng.randrange(2)
            failing = range(COLUMN_BYTES * place, COLUMN_BYTES * (place + rng.randint(1, 4)))
            if rng.random() < _HEALTHY:
                failing = range(0)
            chip.fail(failing.start, failing.stop)
            event = str(failing)
            wrong = error_of(_check_copies, chip, moves, before, failing)
            if wrong is None:
                event += ", launched again"
                chip.fail(0, 0)
                wrong = error_of(_check_copies, chip, moves, before, range(0))
            yield event, wrong


def _moves(rng: random.Random, config: ChipConfig) -> list[_Move]:
    moves = []
    size = 1 << config.network.address_bits
    for number in range(_BLOCKS * config.pes):
        source = rng.randrange(config.vaults) * size + _SOURCES + rng.randrange(_SOURCE_BYTES)
        slot = rng.randrange(config.vaults) * size + _TARGETS + number * _SLOT_BYTES
        target = slot + 16 + rng.randrange(16)
        moves.append(_Move(number // _BLOCKS, source, target, rng.randint(1, _MOST_BYTES)))
    # Blocks of a register's word come with the others, so that each is a move of its own.
    words = [
        _Move(move.pe, move.source & -8, (move.target & -8) - 8, 8)
        for number, move in enumerate(moves)
        if number % 2 == 0
    ]
    return [*moves, *words]


def _contents(rng: random.Random, config: ChipConfig, moves: Sequence[_Move]) -> NDArray[np.uint8]:
    """The DRAM before a launch."""
    size = 1 << config.network.address_bits
    dram = np.zeros(config.memory_bytes, np.uint8)
    for vault in range(config.vaults):
        for start, count in (
            (_SOURCES, _SOURCE_BYTES + _MOST_BYTES),
            (_TARGETS, _SLOT_BYTES * _BLOCKS * config.pes),
        ):
            place = vault * size + start
            dram[place : place + count] = np.frombuffer(rng.randbytes(count), np.uint8)
    for pe in range(config.pes):
        blocks = moves[pe * _BLOCKS : (pe + 1) * _BLOCKS]
        numbers = [_BLOCKS, *(n for one in blocks for n in (one.source, one.target, one.size))]
        page = np.array(numbers, np.uint64).view(np.uint8)
        dram[_PAGES + pe * _PAGE :][: len(page)] = page
    return dram


def _check_copies(
    chip: ChipSession, moves: Sequence[_Move], before: NDArray[np.uint8], failing: range
) -> None:
    """Launch the copies; raises an error for what is wrong afterwards."""
    host = Host(Blocking(chip))
    result = run_launch(
        chip, Launch(program=_COPIES, max_cycles=_CYCLES, parameters=_PAGES), counters=False
    )
    chip.settle()
    for start, size in ((_SOURCES, 64), *((move.target, move.size) for move in moves[:4])):
        error = ""
        try:
            run(host.read(start, size))
        except BusError as refused:
            error = str(refused)
        if ("SLVERR" in error) != _meet(start & -8, size + 7 & -8, failing):
            raise CosimError(f"the host's read at {start:#x}: {error or 'no error'}")
    faulted = {end.pe: end.cause for end in result.faults}
    meeting = {move.pe for move in moves if move.meets(failing)}
    if faulted != dict.fromkeys(sorted(meeting), FaultCause.MEMORY_ERROR):
        raise CosimError(f"engines {sorted(meeting)} meet an error, {faulted} fault")
    _check_bytes(chip.image, moves, before, failing, meeting)


def _check_bytes(
    image: DramImage,
    moves: Sequence[_Move],
    before: NDArray[np.uint8],
    failing: range,
    meeting: Set[int],
) -> None:
    """Raises an error for the first byte that is neither what it must be nor, for an engine that
    met an error, what it was."""
    after = np.frombuffer(image.read(0, image.size), np.uint8)
    expected, unknown = before.copy(), np.zeros(image.size, bool)
    may_stay = np.zeros(image.size, bool)
    for move in moves:
        target = slice(move.target, move.target + move.size)
        expected[target] = before[move.source : move.source + move.size]
        may_stay[target] = move.pe in meeting
        unknown[target] = _meet(move.source, move.size, failing)
    columns = slice(failing.start, failing.stop)
    expected[columns], unknown[columns] = before[columns], False
    wrong = (after != expected) & ~unknown & ~(may_stay & (after == before))
    if wrong.any():
        raise CosimError(f"byte {int(wrong.argmax()):#x} is wrong")
