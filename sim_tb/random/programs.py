"""Random programs that obey all rules for programs, for comparing hardware and simulator.

They use every instruction of the engine, with hostile constants, unaligned addresses, loops,
branches and all hazards that hardware must resolve. Some end in a fault; some fill the instruction
buffer to its last word.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random

from isa.program import Program, Span
from isa.run import Launch
from isa.table import (
    IMM14,
    INSTRUCTIONS,
    MAX_FX,
    MIN_REGISTER_WIDTH,
    Instruction,
    Opcode,
    ScalarOp,
    Unit,
    Width,
)
from isa.timing import VectorOperation
from pe.config import PeConfig
from sim_tb.harness.engine import EngineIdentity

from .faults import FAULTS, possible_faults
from .program_builder import HOSTILE, NEEDED, ProgramBuilder
from .random_program import RandomProgram, contents, disturb, memory_behaviour
from .workspaces import Workspaces

#: A random program runs for some thousand cycles, with the slowest memory for tens of thousands.
MAX_CYCLES = 5_000_000
#: Bytes of each window of memory that a program uses.
_WINDOW = 4096
_MEDIUM_BYTES = 256
_LONGEST = 160
_NESTING = 2
_MOST_TRIPS = 4
_FAULTING = 0.3
#: Share of programs that fill the instruction buffer, which then has room for the longest piece of
#: code before the end.
_FULL = 0.03
_ROOM = 100
#: Share of programs for narrow registers that compute values that may not fit.
_DARING = 0.01
#: Weight of loads from a workspace on an engine with a load history.
_REMEMBERED = 100
_RISKY = (ScalarOp.SLL, ScalarOp.SRL)


def random_program(seed: int, config: PeConfig, disturbed: float = 0.0) -> RandomProgram:
    """The program of ``seed`` for an engine of ``config``. The share ``disturbed`` (0..1) of all
    programs meets memory errors, a stop, or both.

    Raises:
        ValueError: ``config`` lacks an instruction that all programs need, or memory.
    """
    generator = _Generator(Random(seed), config)
    program = generator.program(seed)
    return disturb(program, Random(f"disturbance {seed}"), disturbed, generator.windows)


class _Generator:
    def __init__(self, random: Random, config: PeConfig) -> None:
        self.random = random
        self.config = config
        top = 1 << config.address_bits
        size = min(max(_WINDOW, config.scratchpad_bytes), top // 4)
        if size < config.scratchpad_bytes:
            raise ValueError("random programs need a memory four times as large as the scratchpad")
        middle = top // 2 - size // 2
        self.windows = [Span(start, size) for start in (0, middle, top - size)]
        self.code = ProgramBuilder(random, config, table=Span(middle, 512))
        self.workspaces: Workspaces | None = None
        if config.workspace:
            self.workspaces = Workspaces(self.code, Span(size, middle - size))

    def program(self, seed: int) -> RandomProgram:
        random, code = self.random, self.code
        size = self.config.instruction_words
        full = size > 2 * _ROOM and random.random() < _FULL
        budget = size - 2 * _ROOM if full else random.randint(1, min(_LONGEST, size // 4))
        # Other kinds of memories can't be inspected: start and end state go through DRAM.
        hidden = self.config.sram != "behavioural"
        if hidden:
            code.fill(self.windows[0])
        self.block(budget, 0)
        if full:
            # The length of the end is known only after its generation.
            trial = deepcopy(self)
            trial.end()
            code.pad(size - (len(trial.code.words) - len(code.words)))
        fault = self.end()
        windows = []
        for span in self.windows:
            content = bytearray(contents(random, span.size))
            for address, value in code.table_values.items():
                if span.start <= address < span.start + span.size:
                    offset = address - span.start
                    content[offset : offset + 8] = (value % (1 << 64)).to_bytes(8, "little")
            windows.append((span.start, bytes(content)))
        if self.workspaces is not None:
            windows.append(self.workspaces.stored)
        return RandomProgram(
            seed=seed,
            windows=tuple(windows),
            scratchpad=contents(random, self.config.scratchpad_bytes),
            launch=Launch(
                program=Program(tuple(code.words[:size])),
                max_cycles=MAX_CYCLES,
                parameters=self.parameters(),
            ),
            identity=EngineIdentity(*(random.getrandbits(16) for _ in EngineIdentity._fields)),
            memory=memory_behaviour(random),
            reset=random.random() < 0.5,
            fault=fault,
        )

    def end(self) -> str:
        """Append the end of the program; returns the fault's name, or ""."""
        random, code, spaces = self.random, self.code, self.workspaces
        faults = FAULTS | ({} if spaces is None else {"workspace": lambda code: spaces.fault()})
        fault = random.choice(possible_faults(code, faults)) if random.random() < _FAULTING else ""
        if fault:
            faults[fault](code)
        elif self.config.sram != "behavioural":
            code.dump(self.windows[0], self.windows[2])
        if fault != "fell off the end":
            code.emit("halt")
            for _ in range(random.randrange(3)):
                code.word(random.getrandbits(32))
        return fault

    def parameters(self) -> int:
        """Parameter of the launch, usually one that registers can hold."""
        random = self.random
        if self.config.narrow and random.random() > _DARING:
            return random.getrandbits(self.config.address_bits)
        return random.choice(HOSTILE) % (1 << 64)

    def block(self, budget: int, depth: int) -> None:
        """Append about ``budget`` instructions, including branches and loops."""
        plain: list[tuple[float, Callable[[], None]]] = [
            (30, self.scalar),
            (6, self.settings),
            (28, self.vector),
            (9, self.load),
            (9, self.store),
            (6, self.load_register),
            (6, self.store_register),
            (3, self.wait),
        ]
        if self.workspaces is not None:
            # A load history needs consecutive loads.
            loads = _REMEMBERED if self.config.load_history else 9
            plain += [(3, self.workspaces.change), (loads, self.workspaces.load)]
        weights = [weight for weight, _ in plain]
        end = len(self.code.words) + budget
        while (left := end - len(self.code.words)) > 0:
            kind = self.random.random()
            if left > 8 and depth < _NESTING and kind < 0.03:
                self.loop(self.random.randint(1, left - 6), depth)
            elif left > 4 and kind < 0.07:
                self.skip(self.random.randint(1, min(left, 12)), depth)
            elif left > 4 and kind < 0.09:
                self.jump_over()
            else:
                self.random.choices([make for _, make in plain], weights)[0]()

    # Control flow.

    def loop(self, budget: int, depth: int) -> None:
        code, random = self.code, self.random
        counter, limit = code.loop_registers[2 * depth : 2 * depth + 2]
        trips = random.randint(1, _MOST_TRIPS)
        up = random.random() < 0.5
        code.constant(counter, 0 if up else trips)
        code.constant(limit, trips if up else random.choice((0, 1)))
        stop_at_zero = code.known.get(limit) == 0
        top = len(code.words)
        code.join()
        self.block(budget, depth + 1)
        code.emit("add.imm", counter, counter, 1 if up else -1)
        back = top - len(code.words)
        down = "bne" if stop_at_zero else "bge"
        name = random.choice(("blt", "bne")) if up else down
        code.emit(name, counter, limit, back)

    def skip(self, budget: int, depth: int) -> None:
        """A branch over a block, taken or not depending on data."""
        code = self.code
        names = ("blt", "bge", "beq", "bne")
        name = self.random.choice([name for name in names if name in self.config.instructions])
        a, b = code.any_register(), code.any_register()
        if self.random.random() < 0.2:
            b = a
        at = code.emit(name, a, b, 0)
        self.block(budget, depth)
        code.patch(at, name, a, b, len(code.words) - at)
        code.join()

    def jump_over(self) -> None:
        """A jump over words that must not be executed."""
        count = self.random.randint(0, 4)
        self.code.emit("jmp", count + 1)
        for _ in range(count):
            self.code.word(self.random.getrandbits(32))

    # Instructions.

    def scalar(self) -> None:
        code, random = self.code, self.random
        rows = [row for row in self.config.rows_of(Unit.SCALAR) if row.writes is not None]
        if self.config.narrow and random.random() > _DARING:
            rows = [row for row in rows if row.scalar not in _RISKY]
        row = random.choice(rows)
        a, b, c = code.data_register(), code.any_register(), code.any_register()
        if row.key == "mov.imm":
            code.emit(row.key, a, self.hostile(20))
        elif row.key == "mov":
            code.emit(row.key, a, b)
        elif row.opcode < Opcode.ALU_REG:
            shifts = row.scalar in (ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA)
            code.emit(row.key, a, b, random.randrange(64) if shifts else self.hostile(IMM14.bits))
        else:
            code.emit(row.key, a, b, c)

    def hostile(self, bits: int) -> int:
        """A signed constant of ``bits`` bits: extreme, small or any."""
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return self.random.choice((low, high, -1, 0, 1, low + 1, self.random.randint(low, high)))

    def settings(self) -> None:
        which = self.random.choice(("vl", "vl", "mr", "fx"))
        if f"set.{which}" in self.config.instructions:
            self.set_one(which)

    def set_one(self, which: str, limit: int | None = None) -> None:
        random = self.random
        limits = {"vl": (1, self.config.max_vl), "mr": (1, self.config.max_mr), "fx": (0, MAX_FX)}
        low, high = limits[which]
        high = min(high, limit or high)
        small = min(high, 12)
        value = random.choice(
            (low, high, random.randint(low, high), *random.choices(range(low, small + 1), k=4))
        )
        step = self.config.scratchpad_alignment
        if which == "vl" and any(self.code.ragged(row, value) for row in self.config.rows):
            value = min(value + -value % step, high - high % step) or value
        self.code.set_vector(which, value)

    def vector(self) -> None:
        code = self.code
        rows = self.config.rows_of(Unit.VECTOR)
        if not rows:
            return
        row = self.vector_row(rows)
        for which in ("vl", "mr", "fx"):
            if code.settings[which] is None:
                self.set_one(which)
        operation = self.place(row)
        if operation is None:
            # Too large for the scratchpad, or not aligned.
            for which, limit in (("vl", 8), ("mr", 4)):
                if f"set.{which}" in self.config.instructions:
                    self.set_one(which, limit)
            operation = self.place(row)
        if operation is None:
            return
        if code.hazards.before_vector(operation):
            code.drain()
        numbers = code.addresses(operation.result, operation.first, operation.second)
        if len(row.reads) < len(row.operands):
            numbers[2] = code.any_register()
        code.emit(row.key, *numbers[: len(row.operands)])
        code.hazards.issued(operation)

    def vector_row(self, rows: Sequence[Instruction]) -> Instruction:
        """The next vector instruction, one of ``rows``."""
        return self.random.choice(rows)

    def place(self, row: Instruction) -> VectorOperation | None:
        """``row`` with addresses in the scratchpad; None if it is too small."""
        code, random = self.code, self.random
        vl, mr = code.settings["vl"], code.settings["mr"]
        assert vl is not None
        assert mr is not None
        if code.ragged(row, vl):
            return None
        for _ in range(20):
            shape = VectorOperation(row, 0, 0, 0, vl, mr).spans
            if any(span.size > self.config.scratchpad_bytes for span in shape):
                return None
            places = [code.scratchpad_address(span.size) for span in shape]
            if random.random() < 0.15:
                places[0] = random.choice(places[1:])
            result, first, second = (*places, 0)[:3]
            operation = VectorOperation(row, result, first, second, vl, mr)
            inside = all(
                span.start + span.size <= self.config.scratchpad_bytes for span in operation.spans
            )
            if inside and not operation.reads_itself:
                return operation
        return None

    def transfer(self, row: Instruction) -> tuple[int, int, int] | None:
        """DRAM address, scratchpad address and length (elements) of a load or store."""
        random = self.random
        assert row.width is not None
        window = random.choice(self.windows)
        longest = min(self.config.scratchpad_bytes, window.size)
        size = random.choice((0, *random.choices(range(65), k=6), _MEDIUM_BYTES, longest))
        count = (
            min(size if size < longest else random.randint(0, longest), longest) // row.width.bytes
        )
        size = count * row.width.bytes
        start = self.code.dram_address(window, size)
        scratchpad = self.code.scratchpad_address(size)
        if row.opcode == Opcode.ST_SRAM and self.code.in_table(Span(start, size)):
            return None
        return start, scratchpad, count

    def load(self) -> None:
        self._move(Opcode.LD_SRAM)

    def store(self) -> None:
        self._move(Opcode.ST_SRAM)

    def _move(self, opcode: Opcode) -> None:
        code = self.code
        row = self.pick(opcode)
        chosen = self.transfer(row) if row else None
        if row is None or row.width is None or chosen is None:
            return
        dram, scratchpad, count = chosen
        span = Span(scratchpad, count * row.width.bytes)
        check = code.hazards.before_load if row.loads else code.hazards.before_store
        if check(row, span):
            code.drain()
        places = (scratchpad, dram) if row.loads else (dram, scratchpad)
        code.emit(row.key, *code.addresses(*places, count))

    def element(self, row: Instruction) -> int:
        """An aligned DRAM address for ``ld.reg`` and ``st.reg``."""
        assert row.width is not None
        window = self.random.choice(self.windows)
        address = self.code.dram_address(window, row.width.bytes)
        return address - address % row.width.bytes

    def load_register(self) -> None:
        row = self.pick(Opcode.LD_REG)
        if row is None or row.width is None:
            return
        wide = row.width.bits > self.config.register_width
        if wide and self.random.random() > _DARING:
            return
        pointer = self.code.address(self.element(row))
        self.code.emit(row.key, self.code.data_register(), pointer)
        if wide:
            # No instruction may execute before the engine reports the fault.
            self.wait_for_loads()

    def wait_for_loads(self) -> None:
        """Wait until every register holds its value."""
        if "memfence" in self.config.instructions:
            self.code.emit("memfence")
            return
        for register in range(self.config.registers):
            self.code.emit("bne", register, register, 1)

    def store_register(self) -> None:
        row = self.pick(Opcode.ST_REG)
        if row is None or row.width is None:
            return
        address = self.element(row)
        if not self.code.in_table(Span(address, row.width.bytes)):
            self.code.emit(row.key, self.code.address(address), self.code.any_register())

    def wait(self) -> None:
        if self.random.random() < 0.5 and "memfence" in self.config.instructions:
            self.code.emit("memfence")
        else:
            self.code.drain()

    def pick(self, opcode: Opcode) -> Instruction | None:
        rows = [row for row in self.config.rows if row.opcode == opcode]
        return self.random.choice(rows) if rows else None


_DECLARING = "set.ws"
#: Share of engines with a workspace.
_WORKSPACES = 0.2


def random_config(seed: int) -> PeConfig:
    """A small engine that can run random programs, determined by ``seed``.

    It has the instructions that every random program needs, all, some or none of each unit's other
    instructions, and sizes down to the smallest.
    """
    random = Random(seed)
    keys = {*NEEDED, "halt"}
    for unit in Unit:
        of_unit = [row.key for row in INSTRUCTIONS if row.unit is unit]
        optional = [key for key in of_unit if key not in keys | {_DECLARING}]
        share = random.choice((0.0, 0.1, 0.3, 1.0))
        keys.update(key for key in optional if random.random() < share)
    # An engine has a kind of transfer in every width or in none, so that some engines lack kinds.
    for kind in ("ld.sram", "st.sram", "ld.reg", "st.reg"):
        if random.random() < 0.3:
            keys -= {row.key for row in INSTRUCTIONS if row.mnemonic == kind}
    if Random(f"workspace {seed}").random() < _WORKSPACES:
        keys.add(_DECLARING)
    scratchpad = random.choice((64, 128, 512, 1024))
    address_bits = random.randint(max(12, scratchpad.bit_length() + 2), 30)
    return PeConfig(
        instructions=frozenset(keys),
        instruction_words=random.choice((128, 256, 1024)),
        registers=random.choice((8, 16, 32)),
        register_width=random.choice(
            (max(MIN_REGISTER_WIDTH, address_bits + 1), random.randint(31, 63), 64)
        ),
        max_vl=random.choice((1, 256, random.randint(2, 255))),
        max_mr=random.choice((1, 256, random.randint(2, 255))),
        scratchpad_bytes=scratchpad,
        arc_entries=random.choice((1, 2, 5, 20)),
        load_store_queue=random.choice((2, 8, 64)),
        address_bits=address_bits,
        counters=random.random() < 0.5,
        scratchpad_alignment=random.choice((1, random.choice([width.bytes for width in Width]))),
    )
