"""A bench for the vector unit: a memory, a reference written from the definition, exact timing."""

import random
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isa.table import BY_KEY, VERTICAL, Instruction, Opcode, ReductionOp, VerticalOp
from isa.timing import VECTOR_LATENCY, beats, row_beats
from isa.units import SPECIAL_UNITS
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import vector_command
from pe.vector.stages import read_cycles, result_cycles
from pe.vector.unit import VectorUnit
from tests.executed_lines import design_of, simulator_of
from tests.steady_streams import with_checks

WORD = 8


@dataclass(frozen=True)
class Command:
    """An instruction with its operands; ``gap``: idle cycles in front of it."""

    key: str
    result: int
    first: int
    second: int
    vl: int
    mr: int = 1
    fx: int = 0
    gap: int = 0

    @property
    def row(self) -> Instruction:
        return BY_KEY[self.key]

    @property
    def beats(self) -> int:
        return beats(self.row, self.vl, self.mr)


def saturate(value: int, bits: int) -> int:
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))


def scale(value: int, fx: int) -> int:
    """Shift right by ``fx`` with round half up."""
    return (value + (1 << fx - 1)) >> fx if fx else value


def vertical(row: Instruction, a: int, b: int) -> int:
    bits = row.width.bits
    return {
        VerticalOp.NOP: lambda: a,
        VerticalOp.ADD: lambda: saturate(a + b, bits),
        VerticalOp.SUB: lambda: saturate(a - b, bits),
        VerticalOp.MIN: lambda: min(a, b),
        VerticalOp.MAX: lambda: max(a, b),
        VerticalOp.MUL: lambda: a * b,
        VerticalOp.ABSDIFF: lambda: saturate(max(a, b) - min(a, b), bits),
        VerticalOp.AVG: lambda: scale(a + b, 1),
    }[row.vertical]()


REDUCE: dict[ReductionOp, Callable[[Iterable[int]], int]] = {
    ReductionOp.ADD: sum,
    ReductionOp.MIN: min,
    ReductionOp.MAX: max,
}


def results(command: Command, memory: bytearray) -> list[int]:
    """Elements that the command writes, from the definition of the instruction."""
    row, vl = command.row, command.vl
    size, bits = row.width.bytes, row.width.bits

    def read(address: int, count: int) -> list[int]:
        return [
            int.from_bytes(memory[at : at + size], "little", signed=True)
            for at in range(address, address + count * size, size)
        ]

    def finish(value: int) -> int:
        if row.vertical is VerticalOp.MUL:
            value = scale(value, command.fx)
        return saturate(value, bits)

    if row.opcode == Opcode.MATRIX_VECTOR:
        second = [0] * vl if row.vertical is VerticalOp.NOP else read(command.second, vl)
        matrix = read(command.first, command.mr * vl)
        if row.pairs:
            return [
                finish(
                    sum(
                        part(a) * part(b)
                        for a, b in zip(matrix[i * vl : (i + 1) * vl], second, strict=True)
                        for part in (lambda pair: (pair + 128 & 255) - 128, lambda pair: pair >> 8)
                    )
                )
                for i in range(command.mr)
            ]
        return [
            finish(
                REDUCE[row.reduction](
                    vertical(row, a, b)
                    for a, b in zip(matrix[i * vl : (i + 1) * vl], second, strict=True)
                )
            )
            for i in range(command.mr)
        ]
    if row.special:
        unit = SPECIAL_UNITS[row.special]
        values = np.array(read(command.first, vl), "<i2")
        return [int(x) for x in unit.evaluate(unit.function_of(row), values, command.fx)]
    scalar = row.opcode == Opcode.VECTOR_SCALAR
    second = read(command.second, 1) * vl if scalar else read(command.second, vl)
    pairs = zip(read(command.first, vl), second, strict=True)
    return [finish(vertical(row, a, b)) for a, b in pairs]


def write_cycles(config: PeConfig) -> int:
    """Cycles from the beat that completes a result to the one in which it is written."""
    return result_cycles(config)


def expected_writes(
    command: Command, start: int, memory: bytearray, config: PeConfig
) -> dict[int, tuple[int, bytes]]:
    """Cycle -> (address, bytes) of the writes of ``command`` whose first beat is in ``start``."""
    row, size = command.row, command.row.width.bytes
    data = b"".join(
        (value & (1 << 8 * size) - 1).to_bytes(size, "little") for value in results(command, memory)
    )
    matrix = row.opcode == Opcode.MATRIX_VECTOR
    chunk = size if matrix else WORD
    period = row_beats(row, command.vl) if matrix else row.passes
    return {
        start + (n + 1) * period - 1 + write_cycles(config): (
            command.result + at,
            data[at : at + chunk],
        )
        for n, at in enumerate(range(0, len(data), chunk))
    }


def run(
    config: PeConfig, commands: list[Command], memory: bytearray, trace: Path | None = None
) -> list[int]:
    """Runs ``commands`` on ``memory`` and checks every cycle of it; the cycles of acceptance.
    ``trace``: VCD file of its signals.

    No command may read what an earlier one writes less than ``VECTOR_LATENCY`` cycles ahead.
    Checked: when a command is accepted, beats, busy, and address, data and cycle of every write.
    """
    dut = design_of(VectorUnit, config)
    caps = Capabilities.of(config).vector
    accepted: list[int] = []

    async def bench(ctx) -> None:
        queue = list(commands)
        gap = queue[0].gap
        writes: dict[int, tuple[int, bytes]] = {}
        pending: list[tuple[int, Command]] = []
        end = -VECTOR_LATENCY
        #: Words read by each port, the last one first.
        data = [[0] * read_cycles(config) for _ in dut.read]
        cycle = 0
        beat_cycles: set[int] = set()
        starts: list[tuple[int, Command]] = []
        while queue or cycle < end + 2 * VECTOR_LATENCY:
            # A command is modelled in its first beat, when what it may read has been written.
            while starts and starts[0][0] == cycle:
                start, command = starts.pop(0)
                pending.append((start, command))
            offered = queue[0] if queue and gap <= 0 else None
            gap -= 1
            ctx.set(dut.command.valid, offered is not None)
            if offered is not None:
                row = offered.row
                payload = dut.command.payload
                members = {
                    "kind": caps.kind.code(row.opcode - Opcode.MATRIX_VECTOR),
                    "vertical": caps.vertical.code(VERTICAL.extract(row.match)),
                    "reduction": caps.reduction.code(row.reduction or 0),
                    "pairs": caps.pairs.code(int(row.pairs)),
                    "width": caps.width.code(row.width),
                    "result": offered.result,
                    "first": offered.first,
                    "second": offered.second,
                    "vl": offered.vl,
                    "mr": offered.mr,
                    "fx": offered.fx,
                }
                layout = vector_command(config)
                kept = {name: value for name, value in members.items() if layout[name].width}
                ctx.set(payload, kept)
            for port, words in zip(dut.read, data, strict=True):
                ctx.set(port.data, words[-1])
                if config.shared_ports:
                    ctx.set(port.ready, 1)
            assert ctx.get(dut.beat) == (cycle in beat_cycles), f"beat, cycle {cycle}"
            assert ctx.get(dut.busy) == (cycle <= end + VECTOR_LATENCY - 1), f"busy, cycle {cycle}"
            for start, command in pending:
                writes |= expected_writes(command, start, memory, config)
            pending.clear()
            strobe = ctx.get(dut.write.strobe)
            if config.shared_ports:
                start = ctx.get(dut.write.address)
                rows = {1 << (start + at) // WORD % 2 for at in range(strobe.bit_length())}
                assert ctx.get(dut.write.rows) == sum(rows), f"rows, cycle {cycle}"
            if cycle in writes:
                address, value = writes.pop(cycle)
                assert strobe == (1 << len(value)) - 1, f"strobe, cycle {cycle}"
                assert ctx.get(dut.write.address) == address, f"address, cycle {cycle}"
                word = ctx.get(dut.write.data).to_bytes(WORD, "little")
                assert word[: len(value)] == value, f"data, cycle {cycle}"
            else:
                assert strobe == 0, f"write in cycle {cycle}"
            ready = ctx.get(dut.command.ready)
            # One command runs and one waits: taken unless one would be left waiting after it.
            free = len(starts) == 0
            assert ready == free, f"ready, cycle {cycle}"
            for words, port in zip(data, dut.read, strict=True):
                words[1:] = words[:-1]
                if ctx.get(port.enable):
                    at = ctx.get(port.address)
                    words[0] = int.from_bytes(memory[at : at + WORD], "little")
            if strobe:
                address, word = ctx.get(dut.write.address), ctx.get(dut.write.data)
                size = strobe.bit_length()
                memory[address : address + size] = word.to_bytes(WORD, "little")[:size]
            if offered is not None and ready:
                accepted.append(cycle)
                start = max(cycle + 1, end + 1)
                end = start + offered.beats - 1
                beat_cycles |= set(range(start, end + 1))
                starts.append((start, offered))
                queue.pop(0)
                gap = queue[0].gap if queue else 0
            await ctx.tick()
            cycle += 1
        assert not writes

    with simulator_of(dut, with_checks) as sim:
        sim.add_clock(1e-9)
        sim.add_testbench(bench)
        with nullcontext() if trace is None else sim.write_vcd(str(trace)):
            sim.run()
    return accepted


HOSTILE = {bits: [0, 1, -1, (1 << bits - 1) - 1, -(1 << bits - 1)] for bits in (8, 16, 32, 64)}


def hostile_memory(rng: random.Random, size: int) -> bytearray:
    """Random bytes with runs of extreme values of every width."""
    memory = bytearray()
    while len(memory) < size:
        bits = rng.choice([8, 16, 32, 64])
        for _ in range(rng.randrange(1, 5)):
            value = rng.choice([rng.choice(HOSTILE[bits]), rng.getrandbits(bits) - (1 << bits - 1)])
            memory += value.to_bytes(bits // 8, "little", signed=True)
        if rng.random() < 0.3:
            memory += rng.randbytes(rng.randrange(1, 4))
    return memory[:size]


def random_command(rng: random.Random, key: str, half: int, source: int, longest: int) -> Command:
    """A command that reads bytes ``source .. source + half`` and writes the other half.

    ``longest`` bounds its beats, so that it stays short.
    """
    row = BY_KEY[key]
    size = row.width.bytes
    words = max(1, longest // row.passes)
    mr = 1
    if row.reduction is not None:
        mr = rng.choice([1, 1, 2, 3, rng.randrange(1, words + 1)])
        words = max(1, words // mr)
    vl = rng.randrange(1, words * WORD // size + 1)
    other = half - source

    def place(base: int, length: int) -> int:
        return base + rng.randrange(half - length - WORD)

    fx = rng.choice([0, 1, rng.randrange(64), row.width.bits // 2, row.width.bits - 1])
    return Command(
        key=key,
        result=place(other, (mr if row.reduction is not None else vl) * size),
        first=place(source, mr * vl * size),
        second=place(source, vl * size),
        vl=vl,
        mr=mr,
        fx=fx,
        gap=rng.choice([0, 0, 0, 1, 2, rng.randrange(20)]),
    )
