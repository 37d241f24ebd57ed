"""Random programs for faults that few others show: of operands, and of what waits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random

from hdl.ports import COLUMN_BYTES
from isa.limits import RANGE_BYTES
from isa.program import Program, Span
from isa.run import Launch
from isa.table import OPCODE, Instruction, Opcode, Unit, find
from isa.timing import VectorOperation
from pe.config import PeConfig
from sim_tb.harness.engine import ALONE
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.random.faults import FAULTS
from sim_tb.random.program_builder import ProgramBuilder
from sim_tb.random.programs import _Generator
from sim_tb.random.random_program import RandomProgram

#: Words of a program that compute, at most, in proportion to the instruction buffer.
_SHARE = 0.7
#: Faults that show a cycle after an instruction has left the issue stage.
_LATE = ("transfer out of memory", "transfer out of scratchpad", "vector out of scratchpad")


class _Computing(_Generator):
    """Vector and scalar instructions in a row, without branches, loads and stores of the program's
    choice."""

    def block(self, budget: int, depth: int) -> None:
        end = len(self.code.words) + int(_SHARE * self.config.instruction_words)
        while len(self.code.words) < end:
            makes = (self.vector, self.scalar, self.settings, self.load)
            self.random.choices(makes, (60, 20, 12, 8))[0]()

    def vector_row(self, rows: Sequence[Instruction]) -> Instruction:
        """Each form as often as the others, though most instructions are of one, and half of them
        such that shift by FX."""
        form = self.random.choice(sorted({row.opcode for row in rows}))
        shifts = self.random.random() < 0.5
        of_form = [row for row in rows if row.opcode == form]
        return self.random.choice([row for row in of_form if row.fractions >= shifts])


class _Waiting(_Generator):
    """Loads that are on their way, to any register or place in the scratchpad, while instructions
    follow that need not wait for them, and some that must."""

    def block(self, budget: int, depth: int) -> None:
        end = len(self.code.words) + self.config.instruction_words // 2
        makes = (self.beside, self.load_register, self.jumps, self.scalar, self.load)
        while len(self.code.words) < end:
            self.random.choices(makes, (30, 20, 5, 10, 10))[0]()

    def beside(self) -> None:
        """Two loads, and a vector instruction with operands in other units of the scratchpad."""
        code, random = self.code, self.random
        code.drain()
        units = range(0, self.config.scratchpad_bytes, RANGE_BYTES)
        *loads, result, first, second = random.sample(units, 5)
        window = self.windows[0].start
        self.set_one("vl", 2)
        for scratchpad in loads:
            registers = code.addresses(scratchpad, window, random.randint(1, RANGE_BYTES))
            code.emit("ld.sram[8]", *registers)
        rows = [
            row for row in self.config.rows_of(Unit.VECTOR) if row.opcode == Opcode.VECTOR_VECTOR
        ]
        vl, mr = code.settings["vl"], code.settings["mr"]
        assert vl is not None
        assert mr is not None
        row = random.choice(rows)
        code.emit(row.key, *code.addresses(result, first, second))
        code.hazards.issued(VectorOperation(row, result, first, second, vl, mr))

    def load_register(self) -> None:
        """A load to any register, and reads of others meanwhile."""
        code, random = self.code, self.random
        register = code.any_register()
        address = self.windows[0].start + 8 * random.randrange(16)
        code.emit("ld.reg[64]", register, code.address(address))
        for other in random.sample(range(self.config.registers), 8):
            if other != register:
                code.emit("bne", other, other, 1)

    def jumps(self) -> None:
        """Jumps to the next instruction, each of which fetch follows late."""
        for _ in range(self.random.randint(1, 24)):
            self.code.emit("jmp", 1)

    def end(self) -> str:
        code, random = self.code, self.random
        how = random.random()
        if how < 0.5:
            return super().end()
        # The last register is neither a pointer nor any other operand.
        register = self.config.registers - 1
        load = ("ld.reg[64]", register, code.address(self.windows[0].start))
        if how < 0.75:
            code.emit(*load)
            fault = random.choice(_LATE)
            FAULTS[fault](code)
            code.emit("add.imm", register, register, 1)
            code.emit("halt")
            return fault
        if how < 0.87:
            # The second one waits for the first, which may fail.
            load = ("ld.sram[8]", *code.addresses(0, self.windows[2].start, 1))
            code.pad(self.config.instruction_words - 3)
            code.emit(*load)
            code.emit(*load)
            code.emit("halt")
            return ""
        # The buffer ends with a load and what waits for it, as fetch goes on past the end.
        code.pad(self.config.instruction_words - 2)
        code.emit(*load)
        code.emit("add.imm", register, register, 1)
        return "fell off the end"


def _lone_bits(random: Random, size: int) -> bytes:
    """Elements of all widths with one bit, or all bits from one on, so that products have, too."""
    words = bytearray()
    while len(words) < size:
        width = random.choice((1, 2, 4, 8))
        for _ in range(8 // width):
            value = random.choice((1, -1)) << random.randrange(8 * width - 1)
            words += value.to_bytes(width, "little", signed=True)
    return bytes(words[:size])


def computing_program(seed: int, config: PeConfig, disturbed: float = 0.0) -> RandomProgram:
    """The program of ``seed`` for an engine of ``config``; of every other one the operands are of
    :func:`_lone_bits`."""
    random = Random(f"computing {seed}")
    program = _Computing(random, config).program(seed)
    if seed % 2:
        return program
    # The second window has constants of the program; behind the third are descriptors.
    windows = [
        (start, _lone_bits(random, len(content)) if number in (0, 2) else content)
        for number, (start, content) in enumerate(program.windows)
    ]
    scratchpad = _lone_bits(random, len(program.scratchpad))
    return replace(program, windows=tuple(windows), scratchpad=scratchpad)


def waiting_program(seed: int, config: PeConfig) -> RandomProgram:
    """The program of ``seed`` for an engine of ``config``, with a memory that is slow enough; in
    every fourth one the third window begins with an error."""
    random = Random(f"waiting {seed}")
    program = _Waiting(random, config).program(seed)
    start, _ = program.windows[2]
    errors = (0, 0) if seed % 4 else (start, start + COLUMN_BYTES)
    memory = replace(program.memory, latency=random.choice((20, 40, 150)), errors=errors)
    return replace(program, memory=memory)


def plain_program(words: Sequence[int], config: PeConfig, scratchpad: bytes = b"") -> RandomProgram:
    """A program of ``words`` whose memory is fast and has nothing."""
    return RandomProgram(
        seed=0,
        launch=Launch(program=Program(tuple(words))),
        windows=(),
        scratchpad=scratchpad.ljust(config.scratchpad_bytes, bytes(1)),
        identity=ALONE,
        memory=MemoryBehaviour(latency=3),
        reset=False,
        fault="",
    )


def words_beside_instructions(config: PeConfig) -> list[int]:
    """For each opcode and bit an illegal word that is an instruction but for that bit."""
    random = Random("words beside instructions")
    legal = {row.key for row in config.rows}
    words: dict[tuple[int, int], list[int]] = {}
    for row in config.rows:
        fields = [operand.field for operand in row.operands if operand.is_register]
        beyond = [bit for f in fields for bit in range(f.low + config.register_bits, f.high + 1)]
        for bit in range(OPCODE.low):
            word = row.match ^ 1 << bit
            other = find(word)
            if bit in beyond or other is None or other.key not in legal:
                words.setdefault((row.opcode, bit), []).append(word)
    return [random.choice(some) for some in words.values()]


def vectors_beyond(config: PeConfig) -> Iterator[list[int]]:
    """Programs of one vector instruction of each form and width, of few and of the most elements,
    one of whose operands ends a byte behind the scratchpad."""
    room = config.scratchpad_bytes
    rows = {(row.opcode, row.width): row for row in config.rows_of(Unit.VECTOR)}
    for row in rows.values():
        for vl, mr in ((1, 1), (3, 2), (config.max_vl, 1), (1, config.max_mr)):
            sizes = [span.size for span in VectorOperation(row, 0, 0, 0, vl, mr).spans]
            if max(sizes) > room:
                continue
            for wrong, size in enumerate(sizes):
                code = ProgramBuilder(Random(wrong), config, table=Span(0, 0))
                code.set_vector("vl", vl)
                code.set_vector("mr", mr)
                places = [room - size + 1 if at == wrong else 0 for at in range(len(sizes))]
                numbers = code.addresses(*places)
                code.emit(row.key, *numbers, *[0] * (len(row.operands) - len(numbers)))
                code.emit("halt")
                yield code.words


def products_of_one_bit(config: PeConfig) -> Iterator[tuple[list[int], bytes]]:
    """Programs whose products have one bit, or all bits from one on, in every lane and as sums of
    one, and the contents of their scratchpads."""
    room = 64
    for bits in (8, 16, 32, 64):
        size = bits // 8

        def packed(values: Sequence[int], size: int = size) -> bytes:
            return b"".join(value.to_bytes(size, "little", signed=True) for value in values)

        most = bits - 2
        pairs = [
            (sign << min(total, most), 1 << total - min(total, most))
            for total in range(2 * most + 1)
            for sign in (1, -1)
        ]
        # One more, and each comes to each lane of a word.
        every = (*pairs, (0, 0)) * (8 // size)
        for start in range(0, len(every), room // size):
            part = every[start : start + room // size]
            first, second = (packed(factors) for factors in zip(*part, strict=True))
            scratchpad = first.ljust(room, bytes(1)) + second
            yield _product(config, f"v.v.mul[{bits}]", len(part), 1), scratchpad
        values = [sign << place for place in range(bits - 1) for sign in (1, -1)]
        for factor in (0, most):
            for start in range(0, len(values), room // size):
                rows = values[start : start + room // size]
                scratchpad = packed(rows).ljust(room, bytes(1)) + packed([1 << factor])
                yield _product(config, f"m.v.mul.add[{bits}]", 1, len(rows)), scratchpad


def _product(config: PeConfig, key: str, vl: int, mr: int) -> list[int]:
    """A program with the instruction ``key``, whose operands are 64 bytes apart."""
    code = ProgramBuilder(Random(key), config, table=Span(0, 0))
    for which, value in (("vl", vl), ("mr", mr), ("fx", 0)):
        code.set_vector(which, value)
    code.emit(key, *code.addresses(128, 0, 64))
    code.emit("halt")
    return code.words


def shifts_by_each_amount(config: PeConfig) -> Iterator[list[int]]:
    """Programs that shift numbers of both signs by each amount, and add up the results."""
    random = Random("shifts by each amount")
    value, shifted, total, amount = range(4)
    for key in ("sll", "srl", "sra"):
        for low, sign in product(range(0, 64, 32), (1, -1)):
            for immediate in (False, True):
                code = ProgramBuilder(random, config, table=Span(0, 0))
                code.constant(value, sign * random.getrandbits(63))
                code.constant(amount, low)
                for places in range(low, low + 32):
                    if immediate:
                        code.emit(f"{key}.imm", shifted, value, places)
                    else:
                        code.emit(key, shifted, value, amount)
                        code.emit("add.imm", amount, amount, 1)
                    code.emit("add", total, total, shifted)
                code.emit("halt")
                yield code.words
