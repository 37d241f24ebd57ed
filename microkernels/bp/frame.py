"""The frame shared by the belief propagation kernels: parameters, iterations, runs and flags.
Kernels that interleave lines also share loads, stores and line ends.

Each kernel adds the code that updates a run's lines, and its smoothness costs
(:mod:`microkernels.bp.kernel`, :mod:`microkernels.bp.shifts.kernel`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property, partial

from isa.launch import START_REGISTERS
from isa.table import Width
from microkernels.common.builder import LOG_WORD, KernelBuilder, ScratchpadPlan
from microkernels.common.parameter_block import word_registers
from microkernels.runtime.barrier import FlagCode

from .problem import DAMPING_BITS, USUAL, UpdateVariant, element_type
from .runs import END_WORDS, SweepRun


class BpFrame(ABC):
    """Frame of a program. Attributes that name registers have the purposes that the program lists.

    Parameters:
        title: lines of text at the top of the program.
        labels, bits: of the problem.
        temporaries: names and purposes of temporary registers; the first is ``scratch``.
        vault_bits: as for :meth:`microkernels.bp.plan.Plan.program`.
        first_messages: names and purposes of registers right after the word ``first_message``.
        place_drains: as for :class:`microkernels.common.builder.KernelBuilder`.

    Attributes:
        run: registers that contain the words of a run.
        source, target: addresses of the next vectors to load, and of the next messages to store.
    """

    source: list[str]
    target: list[str]
    left: str

    def __init__(
        self,
        *title: str,
        labels: int,
        bits: int,
        temporaries: Mapping[str, str],
        vault_bits: int | None,
        first_messages: Mapping[str, str] | None = None,
        place_drains: bool = False,
    ) -> None:
        self.labels = labels
        self.size = element_type(bits).itemsize
        self.vault_bits = vault_bits
        self.writer = KernelBuilder(
            *title,
            launch=tuple(START_REGISTERS.values()),
            width=Width[f"W{bits}"],
            place_drains=place_drains,
        )
        self.zero = self.writer.zero
        reg = self.writer.register
        for name, purpose in temporaries.items():
            reg(name, purpose)
        self.scratch = next(iter(temporaries))
        self.iterations = reg("iterations", "iterations left")
        self.first_run = reg("first_run", "address of the first run's description")
        self.runs = reg("runs", "runs in an iteration")
        self.runs_left = reg("runs_left", "runs left in this iteration")
        self.described = reg("described", "address of the next word of a run's description")
        self.event = reg("event", "number of the step of a sweep that ends next")
        followers = {"first_message": first_messages or {}}
        self.run = SweepRun[str](**word_registers(SweepRun, self.writer, "run", followers))
        self.load_groups = reg("load_groups", "groups of lines left in the load stream")
        self.load_left = reg("load_left", "updates left in the load stream's line")

    @cached_property
    def flags(self) -> FlagCode:
        """Code for flags; the registers of the streams are unused between runs."""
        load, store = self.source, self.target
        scratch = (load[0], load[1], store[0], store[1], self.left, self.load_left)
        return FlagCode(self.writer, event=self.event, scratch=scratch, one="one")

    def set_lengths(self) -> None:
        """Write the settings of vector length and matrix rows: all of the smoothness costs."""
        self.writer.op("set.vl", "labels")
        self.writer.op("set.mr", "labels")

    @abstractmethod
    def load_costs(self) -> None:
        """Write the load of the smoothness costs at ``costs``."""

    @abstractmethod
    def emit_streams(self) -> None:
        """Write the code for a run's lines. It calls :meth:`describe` once on each path, where the
        run's words are no longer needed, and jumps to ``run_end`` once the messages' stores are
        issued and no vector instruction is left."""

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w, run, zero = self.writer, self.run, self.zero
        self._start()
        w.note("Nothing to do in this sweep.")
        w.label("idle")
        self.describe()
        w.op("jmp", "run_end")

        w.label("run")
        self._begin_run()
        w.op("beq", run.lanes, zero, "idle")
        self.emit_streams()

        w.note("The run's messages are in memory before a flag reports them.")
        w.label("run_end")
        with w.unless("beq", run.signal_1, zero):
            self.flags.signal(*run.signals)
        with w.unless("beq", run.costs, zero):
            self.load_costs()
        with w.unless("beq", run.flags_to_wait, zero):
            w.note("The step is over: wait for those who have to come so far.")
            self.flags.gather(run.flags_to_wait, run.flags_end)
        w.op("bne", self.iterations, zero, "run")
        w.label("finish")
        w.op("halt")
        return w

    def _start(self) -> None:
        w, scratch, zero = self.writer, self.scratch, self.zero
        w.note("Parameter block.")
        sharers, part, flag = self.load_groups, self.run.groups, self.load_left
        if self.vault_bits is None:
            w.op("mov", scratch, "parameters")
        else:
            w.op("sll", scratch, "vault", self.vault_bits)
            w.op("add", scratch, scratch, "parameters")
        w.read(self.iterations, scratch)
        w.read(sharers, scratch)
        w.set_constants()
        self.set_lengths()
        w.note("A PE that has the tile for itself takes the first part, others that of their slot.")
        w.op("beq", self.iterations, zero, "finish")
        with w.unless("beq", sharers, "one"):
            w.op("bge", "slot", sharers, "finish")
            w.op("sll", flag, "slot", LOG_WORD)
            w.op("add", scratch, scratch, flag)
        w.op("ld.reg [64-bit]", part, scratch)
        w.read(flag, part)
        w.read(self.runs, part)
        w.op("mov", self.first_run, part)
        w.op("mov", self.described, part)
        self.flags.resume(flag)
        w.op("mov", self.runs_left, self.runs)
        w.op("mov", self.run.signal_1, zero)
        w.op("mov", self.run.flags_to_wait, zero)

    def describe(self) -> None:
        """Read the next run's description, except for the words about its end, which the previous
        run still needs.

        The loads are in flight while that run ends.
        """
        self.writer.note("Description of the next run.")
        for word in self.run.words()[:-END_WORDS]:
            self.writer.read(word, self.described)

    def first_again(self) -> None:
        """Return to the description of an iteration's first run."""
        self.writer.op("mov", self.described, self.first_run)

    def _begin_run(self) -> None:
        """Read the words about the run's end, wait for its flag, and count runs and iterations."""
        w, run, zero = self.writer, self.run, self.zero
        for word in run.words()[-END_WORDS:]:
            w.read(word, self.described)
        w.op("sub", self.runs_left, self.runs_left, 1)
        with w.unless("bne", self.runs_left, zero):
            w.op("mov", self.runs_left, self.runs)
            self.first_again()
            w.op("sub", self.iterations, self.iterations, 1)
        with w.unless("beq", run.wait, zero):
            self.flags.wait_for(run.wait)


class SumFrame(BpFrame):
    """Frame of a kernel with sums one axis ahead (:mod:`microkernels.bp.sums`): the last iteration,
    which stores all messages and makes no sums for another one, has runs of its own. During these
    the word ``costs`` is 0."""

    def _begin_run(self) -> None:
        # The costs are loaded.
        self.writer.op("sub", self.run.costs, self.iterations, 1)
        super()._begin_run()

    def first_again(self) -> None:
        """Return to an iteration's first run. Those of the last iteration follow."""
        w = self.writer
        w.op("mov", self.scratch, 2)
        with w.unless("beq", self.iterations, self.scratch):
            super().first_again()


class LaneFrame(BpFrame):
    """Frame of a kernel that interleaves several lines, called lanes, and keeps its slots'
    addresses in registers.

    Parameters:
        title, labels, bits, vault_bits, place_drains: as for :class:`BpFrame`.
        lanes: 1, 2 or 4.
        pad: the scratchpad with its ring.
        variant: of the updates; the default one in a kernel on blocks.
        in_blocks: this is the kernel on blocks of pixels
            (:mod:`microkernels.bp.shifts.block_kernel`).
        first_message: offset in a slot at which the inputs' load also loads the message that begins
            a line, followed by the one that damping mixes with the new one; None: the kernel loads
            them differently.
    """

    def __init__(
        self,
        *title: str,
        labels: int,
        bits: int,
        lanes: int,
        pad: ScratchpadPlan,
        vault_bits: int | None,
        variant: UpdateVariant = USUAL,
        in_blocks: bool = False,
        first_message: int | None,
        place_drains: bool = False,
    ) -> None:
        super().__init__(
            *title,
            labels=labels,
            bits=bits,
            temporaries={"x": "an operand, or temporary", "y": "an operand"},
            vault_bits=vault_bits,
            place_drains=place_drains,
        )
        self.pad = pad
        self.variant = variant
        self.lanes = lanes
        self.in_blocks = in_blocks
        self.first_message = first_message
        self._replaced: int | None = None
        if variant.damped and first_message is not None:
            self._replaced = first_message + pad.vector
        reg = self.writer.register
        self.x, self.y = self.scratch, "y"
        self.source = [
            reg("load", "address of the next a, b, c of the first lane"),
            reg("load_slot", "slot of the block that is loaded next")
            if in_blocks
            else reg("load_lane", "the same of the lane that is loaded next"),
        ]
        self.left = reg("left", "updates left in the update stream's line")
        self.target = [reg("store", "address of the next message written of the first lane")]
        if not in_blocks:
            self.target.append(reg("store_lane", "the same of the lane that is stored next"))
        self.store_left = reg("store_left", "messages left to store in a line")
        self.incoming = [
            reg(f"incoming_{n}", f"message that lane {n} starts from") for n in range(lanes)
        ]
        if in_blocks:
            self.target.append(self.incoming[0])
        if lanes > 2 and not in_blocks:
            self.half = reg("half", "run: bytes from the first pair of lanes to the second")
        if lanes == 1:
            self.other_pitch = reg("other_pitch", "lane_pitch of every second line")
            self.other_wrap = reg("other_wrap", "line_wrap of every second line")
        if variant.weighted:
            self.weight = reg("weight", "run: bytes from a to the weight of the edge")
        if variant.damped:
            self.old = reg("old", "bytes from a, b, c in memory to the message that is replaced")
        self.message = [f"m{n}" for n in range(lanes)]

    def set_places(self) -> None:
        """Allocate the constants common to all such kernels; the lanes' messages are at the places
        ``m0``, ``m1`` and so on."""
        w, vector = self.writer, self.pad.vector
        last = vector // self.size if self.in_blocks else self.labels + self.variant.tail
        w.constant("one", 1, "1")
        if not self.in_blocks:
            w.constant("labels", self.labels, "labels")
        w.constant("inputs", 2 * vector // self.size + last, "elements of a, b and c")
        for n, message in enumerate(self.message):
            w.constant(message, self.pad[message], f"message of lane {n}")
        for n in range(self.pad.slots):
            if self.in_blocks:
                w.register(f"u{n}", f"a of update {n} of a block")
            else:
                w.constant(f"u{n}", self.pad.ring + n * self.pad.slot, f"slot {n}")

    def set_lengths(self) -> None:
        """Write the setting for one row."""
        self.writer.op("set.vl", "labels")
        self.writer.op("set.mr", "one")
        self.set_fraction()

    def set_fraction(self) -> None:
        """Write the setting of the fraction bits if there are products."""
        w = self.writer
        if self.variant.damped and not self.variant.weighted:
            w.op("mov", self.y, DAMPING_BITS)
            w.op("set.fx", self.y)
        elif self.variant.weighted:
            w.op("set.fx", w.zero)

    def _find_weight(self) -> None:
        """Write code that finds a run's weights in a slot, if there are any: the forward edge's
        weight comes first, then the backward edge's."""
        if not self.variant.weighted:
            return
        w = self.writer
        w.op("mov", self.weight, 2 * self.pad.vector + self.labels * self.size)
        with w.unless("bge", self.run.pixel_pitch, self.zero):
            w.op("add", self.weight, self.weight, self.size)

    def damp(
        self, step: str, slot: str, message: str, *, fresh: int, replaced: int, damping: int
    ) -> None:
        """Write one step of mixing a new message with the one it replaces: ``n``, ``d``, ``f`` or
        ``m`` (:mod:`microkernels.bp.problem`).

        Parameters:
            slot: register with the address of the raw message, then of ``d`` and ``f``.
            message: register with the address of ``m``.
            fresh, replaced: offsets in the slot of ``n`` and of the replaced message.
            damping: scratchpad address of the sixteenths.
        """
        w = self.writer
        if step == "f":
            self.take_share(slot, damping)
            return
        w.op("add", self.x, slot, fresh)
        if step == "n":
            w.vector("v.s.sub", self.x, slot, slot, note="n = u - u[0]")
        elif step == "d":
            w.op("add", self.y, slot, replaced)
            w.vector("v.v.sub", slot, self.y, self.x, note="d = o - n")
        else:
            w.vector("v.v.add", message, self.x, slot, note="m = n + f")

    def take_share(self, vector: str, damping: int) -> None:
        """Write the fraction of a difference that a message keeps; ``damping`` is the scratchpad
        address of the sixteenths."""
        w = self.writer
        if self.variant.weighted:
            w.op("mov", self.y, DAMPING_BITS)
            w.op("set.fx", self.y)
        w.op("mov", self.y, damping)
        w.vector("v.s.mul", vector, vector, self.y, note="f = d * damping")
        if self.variant.weighted:
            w.op("set.fx", w.zero)

    def slot(self, update: int) -> str:
        """Register with the address of an update's slot."""
        return f"u{update % self.pad.slots}"

    def lane(self, update: int) -> int:
        """Lane of an update."""
        return update % self.lanes

    def begin(self) -> None:
        """Begin a run whose words match the number of lanes: load all slots."""
        w, run = self.writer, self.run
        self._find_weight()
        self.first_target()
        w.op("mov", self.left, run.updates)
        w.op("mov", self.store_left, run.updates)
        w.note("Fill the ring.")
        w.op("mov", self.load_groups, run.groups)
        self.start_line()
        self.fill()

    def fill(self) -> None:
        """Load all slots."""
        for update in range(self.pad.slots):
            self.load(update)

    def first_target(self) -> None:
        """Set the address that the first update stores to."""
        w, run = self.writer, self.run
        w.op("add", self.target[0], run.first_message, run.pixel_pitch)
        with w.unless("bne", run.updates, "one"):
            w.op(
                "add",
                self.target[0],
                run.first_message,
                run.last_pitch,
                note="the first message is the last",
            )

    def spread(self) -> None:
        """Write the first code of a run, which adapts its words to the number of lanes."""
        w, run = self.writer, self.run
        if self.lanes == 1:
            w.note("Line after line, those of a pair in turns.")
            w.op("mov", self.other_pitch, run.lane_pitch)
            w.op("mov", self.other_wrap, run.line_wrap)
            with w.unless("beq", run.lanes, "one"):
                w.op("add", run.groups, run.groups, run.groups)
                w.op("sub", self.other_pitch, run.lane_pitch, run.line_pitch)
                w.op("sub", self.other_wrap, run.line_wrap, run.line_pitch)
                w.op("sub", run.line_wrap, run.line_wrap, run.lane_pitch)
                w.op("add", run.line_wrap, run.line_wrap, run.line_pitch)
                w.op("mov", run.lane_pitch, run.line_pitch)
            return
        w.note("A line without a partner is worked on several times.")
        with w.unless("bne", run.lanes, "one"):
            w.op("mov", run.line_pitch, self.zero)
        if self.lanes > 2:
            w.op("mov", self.half, self.zero)
            w.op("mov", self.x, self.lanes)
            with w.unless("bne", run.lanes, self.x):
                w.op("sra", self.half, run.lane_pitch, 1)

    def start_line(self) -> None:
        """Move the load stream to the first pixel of its line."""
        w, run = self.writer, self.run
        w.op("mov", self.load_left, run.updates)
        w.op("mov", self.source[0], run.load_start)
        if self._replaced is not None:
            w.op("sub", self.old, run.first_message, run.load_start)
            w.op("add", self.old, self.old, run.pixel_pitch)
            with w.unless("bne", run.updates, "one"):
                self._old_at_end()

    def _old_at_end(self) -> None:
        """Account for a line's last message, which may be elsewhere."""
        w, run = self.writer, self.run
        w.op("sub", self.old, self.old, run.pixel_pitch)
        w.op("add", self.old, self.old, run.last_pitch)

    def lane_address(self, result: str, base: str, lane: int) -> None:
        """Move ``result``, the address for ``lane`` - 1 (or ``base`` for lane 0), to ``lane``."""
        w, run = self.writer, self.run
        if lane == 2:
            w.op("add", result, base, self.half)
        else:
            w.op("add", result, base if lane == 1 else result, run.line_pitch)

    def load(self, update: int) -> None:
        """Load ``update`` of the load stream into its slot."""
        w, run = self.writer, self.run
        lane, slot = self.lane(update), self.slot(update)
        done = w.new_label("loaded")
        w.op("beq", self.load_groups, self.zero, done)
        self.load_inputs(lane, slot)
        if self._replaced is not None:
            w.op("add", self.x, self.source[lane > 0], self.old)
            w.op("add", self.y, slot, self._replaced)
            w.load(self.y, self.x, "labels", note=f"message of lane {lane} that is replaced")

        def first(offset: int) -> None:
            message = run.first_message
            for number in range(1, lane + 1):
                if lane < 2 or number >= 2:
                    self.lane_address(self.y, run.first_message, number)
                message = self.y
            w.op("add", self.x, slot, offset)
            w.load(self.x, message, "labels", note=f"message that begins lane {lane}")

        if self.first_message is not None:
            w.seldom("beq", self.load_left, run.updates, partial(first, self.first_message))
        if lane + 1 < self.lanes:
            self.lane_address(self.source[1], self.source[0], lane + 1)
        else:
            w.op("add", self.source[0], self.source[0], run.pixel_pitch)
            w.op("sub", self.load_left, self.load_left, 1)
            if self._replaced is not None:
                w.seldom("beq", self.load_left, "one", self._old_at_end)
            w.seldom("beq", self.load_left, self.zero, self.load_next_line)
        w.label(done)

    def load_inputs(self, lane: int, slot: str) -> None:
        """Load the inputs of an update of ``lane``, except messages of its line, into ``slot``."""
        self.writer.load(slot, self.source[lane > 0], "inputs", note=f"a, b, c of lane {lane}")

    def load_next_line(self) -> None:
        """Move the load stream to its next line."""
        w, run = self.writer, self.run
        w.op("sub", self.load_groups, self.load_groups, 1)
        w.op("add", run.load_start, run.load_start, run.lane_pitch)
        w.op("add", run.first_message, run.first_message, run.lane_pitch)
        if self.lanes == 1:
            w.swap(run.lane_pitch, self.other_pitch, self.scratch)
        self.start_line()

    def store(self, update: int) -> None:
        """Store an update's message."""
        w, run = self.writer, self.run
        lane = self.lane(update)
        w.store(self.target[lane > 0], self.message[lane], "labels", note=f"message of lane {lane}")
        if lane + 1 < self.lanes:
            self.lane_address(self.target[1], self.target[0], lane + 1)
            return
        w.op("sub", self.store_left, self.store_left, 1)
        end_of_line, on, moved = (w.new_label(name) for name in ("seldom", "on", "moved"))
        w.op("bge", "one", self.store_left, end_of_line)
        w.op("add", self.target[0], self.target[0], run.pixel_pitch)
        w.label(on)

        def end() -> None:
            # A line's last message may leave the tile; the next one belongs to another line.
            w.op("beq", self.store_left, self.zero, moved)
            w.op("add", self.target[0], self.target[0], run.last_pitch)
            w.op("jmp", on)
            w.label(moved)
            w.op("add", self.target[0], self.target[0], run.line_wrap)
            if self.lanes == 1:
                w.swap(run.line_wrap, self.other_wrap, self.scratch)
            w.op("mov", self.store_left, run.updates)

        w.detour(end_of_line, on, end)

    def end_of_update(self, finish: str, next_line: Callable[[], None] | None = None) -> None:
        """End the last lane's update, and its line if this was the last.

        Parameters:
            finish: label of the code after the last line.
            next_line: writes the code that begins another line.
        """
        w, run = self.writer, self.run
        w.op("sub", self.left, self.left, 1)

        def end_of_line() -> None:
            w.op("sub", run.groups, run.groups, 1)
            w.op("beq", run.groups, self.zero, finish)
            w.op("mov", self.left, run.updates)
            if next_line is not None:
                next_line()

        w.seldom("beq", self.left, self.zero, end_of_line)

    def store_last(self) -> None:
        """Write the end of a run on one lane, from label ``last``."""
        w = self.writer
        w.note("Last message.")
        w.label("last")
        self.describe()
        w.op("v.drain")
        w.store(self.target[0], self.message[0], "labels")
        w.op("jmp", "run_end")
