"""The belief propagation kernel's registers and the instructions it is made of."""

from isa.launch import START_REGISTERS

from .assembly import AssemblyWriter
from .bp_problem import element_type
from .bp_schedule import ScratchpadPlan, Spacing

__all__ = ["LINE_NAMES", "PARAMETERS", "SLOT", "ZERO", "BpParts"]

#: The two lines worked on at a time.
LINE_NAMES = "XY"
#: Registers that the launch sets, and one that it clears.
SLOT = next(f"r{n}" for n, what in START_REGISTERS.items() if what == "slot")
PARAMETERS = next(f"r{n}" for n, what in START_REGISTERS.items() if what == "parameters")
ZERO = "r0"


class BpParts:
    """Registers, named as in the comments of the program, and single instructions.

    Parameters:
        labels: labels of the problem.
        bits: element width.
        places: where everything lies in the scratchpad.
        writer: takes the text.

    Attributes (registers, unless said otherwise): see the purposes below, which the program lists.
    ``constants`` has, for each name, the register and its value; :meth:`k` gives the register.
    """

    def __init__(
        self, labels: int, bits: int, places: ScratchpadPlan, writer: AssemblyWriter
    ) -> None:
        self.labels = labels
        self.bits = bits
        self.places = places
        self.spacing = Spacing.of(labels, bits)
        self.writer = writer
        reg = writer.register
        self.scratch = reg("for the moment")
        self.iterations = reg("iterations left")
        self.sweeps = reg("sweeps in an iteration")
        self.sweeps_left = reg("sweeps left in this iteration")
        self.sharers = reg("PEs that share the tile")
        self.own = reg("first line of this PE")
        self.descriptor = reg("address of the next word of the sweep's description")
        self.load_start = reg("address of a, b, c at the first pixel of the load stream's line")
        self.edge = [
            reg(f"address of the first message of the load stream's line {n}") for n in LINE_NAMES
        ]
        self.step = reg("bytes from pixel to pixel of a line")
        self.line_step = reg("bytes from line to line")
        self.span = reg("bytes from the first to the last message written to a line")
        self.lines = reg("lines of the tile")
        self.updates = reg("updates in a line")
        self.costs = reg("DRAM address of the smoothness costs")
        self.stride = reg("bytes from a line of this PE to its next")
        self.stream_stride = reg("bytes from a stream's line to its next")
        self.advance = reg("lines from a stream's line to its next")
        self.jump = reg("bytes from the last message of a line to the first of the next")
        self.load_row = reg("line of the load stream (X)")
        self.load_left = reg("updates left in the load stream's line")
        self.loading = reg("1 until the load stream has ended")
        self.load = [reg(f"address of the next a, b, c of line {n}") for n in LINE_NAMES]
        self.row = reg("line of the update stream (X)")
        self.left = reg("updates left in the update stream's line")
        self.store = [reg(f"address of the next message written to line {n}") for n in LINE_NAMES]
        self.store_step = [
            reg(f"bytes from there to the one after it, line {n}") for n in LINE_NAMES
        ]
        self.incoming = [reg(f"message that update h of line {n} starts from") for n in LINE_NAMES]
        self.this_slot = reg("slot h")
        self.next_slot = reg("slot h + 1 (lone line)")
        self.a = reg("a of the slot that q reads next")
        self.b = reg("b of that slot")
        self.c = reg("c of the slot that p reads next")
        self.first = reg("where the first message of a line goes")
        self.constants: dict[str, tuple[str, int]] = {}
        for name, value, purpose in (
            ("vector_length", self.labels, "labels"),
            ("inputs", self._input_elements(), "elements of a, b and c"),
            ("matrix_length", self.labels * self.labels, "elements of S"),
            ("matrix", self.places.matrix, "S"),
            ("presum", self.places.presum, "q"),
            ("partial", self.places.partial, "p"),
            ("total", self.places.total, "t"),
            ("pad", self.places.pad, "pad"),
            ("raw_x", self.places.raw[0], "Xr"),
            ("raw_y", self.places.raw[1], "Yr"),
            ("message_x", self.places.message[0], "Xm"),
            ("message_y", self.places.message[1], "Ym"),
            ("ring", self.places.ring, "ring"),
            ("ring_end", self.places.ring_end, "end of the ring"),
            ("one", 1, "1"),
        ):
            self.constants[name] = (reg(f"constant: {purpose}"), value)
        self.raw = [self.k("raw_x"), self.k("raw_y")]
        self.message = [self.k("message_x"), self.k("message_y")]

    def _input_elements(self) -> int:
        return 2 * self.places.vector // element_type(self.bits).itemsize + self.labels

    def k(self, name: str) -> str:
        """Register of a constant."""
        return self.constants[name][0]

    def normalise(self, lane: int) -> None:
        self.vector(
            "v.s.sub",
            self.message[lane],
            self.raw[lane],
            self.raw[lane],
            note=f"{LINE_NAMES[lane]}m = {LINE_NAMES[lane]}r - {LINE_NAMES[lane]}r[0]",
        )

    def store_message(self, lane: int) -> None:
        self.writer.op(
            self.sized("st.sram"),
            self.store[lane],
            self.message[lane],
            self.k("vector_length"),
            note=f"message of line {LINE_NAMES[lane]}",
        )

    def add_presum(self) -> None:
        self.vector("v.v.add", self.k("presum"), self.a, self.b, note="q = a + b")

    def add_partial(self) -> None:
        self.vector("v.v.add", self.k("partial"), self.k("presum"), self.c, note="p = q + c")

    def pads(self, count: int) -> None:
        matrix = self.k("matrix")
        for _ in range(count):
            self.vector("v.v.add", self.k("pad"), matrix, matrix, note="pad")

    def vector(self, mnemonic: str, *operands: str, note: str) -> None:
        self.writer.op(self.sized(mnemonic), *operands, note=note)

    def sized(self, mnemonic: str) -> str:
        return f"{mnemonic} [{self.bits}-bit]"

    def wide(self, mnemonic: str) -> str:
        return f"{mnemonic} [64-bit]"
