"""Both levels of hierarchical BP-M (:mod:`microkernels.bp.golden`) or TRW-S: their DRAM layout, and
the programs that connect them, construct and copy, with their partition over engines.

Each vault stores the coarse pixels of its own blocks: the coarse image is cut like the fine one,
whose tiles are cut only between blocks (:mod:`microkernels.bp.tiles`). Construct and copy therefore
touch only their own vault, and engines need not wait for each other. After the fine level (from
offset 0 on) come the coarse one and the parameter blocks of construct and copy, 64-bit
little-endian words::

    0  engines that work
    1  bytes from a row of the fine problem to the next
    2  bytes from an engine's row of blocks to its next, where it loads
    3  the same where it stores
    4  for each slot, the address of its engine's part

    part: three words of each run, then as many of 0, which end the list: the address of the first
        input of the first block; rows of blocks, and in the 13 bits below blocks of a
        row; the address of the first result

In construct, a vault's engines take turns on its tiles' rows of blocks. Rows processed at the same
time are then neighbours, and their pixels are in different banks (:mod:`microkernels.bp.record`).
In copy, one engine takes all rows: one engine keeps the memory busy, and several engines accessing
the same bank would close each other's DRAM rows between a pixel's four columns.

*Programs.* Both process blocks of 2 x 2 pixels. A block's inputs are loaded into a ring of
*batches* of a few blocks each: the program works on one batch while other batches are being loaded.
Both programs are memory-bound.

Two streams, the load stream and the store stream, traverse the rows of blocks of one *run* after
the other, in the parameter block's order. They do not stop between runs, as the next run's words
are read well in advance.

*construct*: four data costs are added, one vector is stored. The costs of each of the four pixels
are contiguous over a batch, so each addition is one instruction for all of its blocks. A
``v.drain`` precedes the stores, after the next loads; if batches are too short, further ones
separate the additions.

*copy*: two pairs of messages are loaded (``up down`` and ``left right``; the data costs are between
the pairs) and stored to each of four pixels. The vector unit is idle.

A batch may be reloaded while stores from it still wait in the load-store unit. This is safe: the
unit works in order and reads a store's source before it requests a later load's data. The batch's
vector instructions have ended, as a drain precedes its stores.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Generic, Literal, TypeVar

from isa.program import Declared, Program, Span
from isa.run import Launch
from isa.table import MAX_VL, Width
from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import DEFAULT_SCRATCHPAD, LOG_WORD, WORD_BYTES, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.parameter_block import block_bytes

from .golden import BLOCK
from .layout import BpLayout
from .problem import MessageDirection, element_type, most_cycles
from .record import COST_PLACE, PLACE, record_stride, vector_stride
from .trws.layout import TrwsLayout

#: Width in bits of the columns in a run's second word; the rows are in the bits above.
_COLUMNS_BITS = 13
_MOST_COLUMNS = (1 << _COLUMNS_BITS) - 1
_RUN_WORDS = 3
_HEADER_WORDS = 4
#: Engines per vault that copy.
_COPY_SHARERS = 1
_ALIGNMENT = 4096

#: Vectors per block.
_BLOCK_VECTORS = 4
#: Blocks per batch and number of batches; fewer if they don't fit. Construct has as many loads in
#: flight as the array range check allows; copy makes the memory switch rarely from reading to
#: writing.
_CONSTRUCT_RING = 2, 6
_COPY_RING = 16, 2
_FEWEST_BATCHES = 2
#: The vector at which a record's second pair of messages begins.
_SECOND_PAIR = PLACE[MessageDirection.LEFT]
#: Streams, and the words of a run that each reads, in order. The store stream skips the source.
_LOADED, _STORED = "source", "target"
_READ = {_LOADED: ("place", "size"), _STORED: ("size", "place")}
#: Registers per stream, and of both, with their purposes.
_STREAM_REGISTERS = {
    "at": "address of the block",
    "left": "blocks left in its row",
    "row": "address of the first block of the row",
    "columns": "blocks of a row",
    "rows": "rows left of the run",
    "place": "address of the next run's first block",
    "size": "size of the next run",
    "described": "address of the words of the run after that",
    "across": "constant: bytes from a row to the next",
    "step": "constant: bytes from a block to the next",
}
_REGISTERS = {
    "scratch": "temporary",
    "pitch": "bytes from a row of the fine problem to the next",
    "batch": "the batch worked on",
    "spare": "the batch that is loaded",
    "here": "a block of one of them",
    "batch_end": "end of its blocks",
    "other": "another of its vectors, or of the batch",
    "elements": "constant: elements of a transfer",
    "last": "constant: the last batch of the ring",
}


#: Launches between the levels.
Between = Literal["construct", "copy"]
BETWEEN: tuple[Between, Between] = ("construct", "copy")
#: A level: BP-M's, or TRW-S's, which has one vault.
Level = TypeVar("Level", bound=BpLayout | TrwsLayout)


@dataclass(frozen=True, kw_only=True)
class LevelsLayout(Generic[Level]):
    """Addresses of both levels; see the module's text.

    Attributes:
        fine: the fine level, from offset 0 on; its tiles are cut between blocks.
        coarse: the coarse level, at the offset :func:`coarse_base`, with the same engines and cut.

    Raises:
        KernelError: levels that begin or are cut elsewhere, or more blocks than a run may have.
    """

    fine: Level
    coarse: Level

    def __post_init__(self) -> None:
        CHECK.kind("fine", self.fine, BpLayout, TrwsLayout)
        CHECK.kind("coarse", self.coarse, type(self.fine))
        if self.fine.base or self.coarse.base != coarse_base(self.fine):
            raise KernelError("the fine level must begin at 0, the coarse one after it")
        for vault in range(self.fine.ring.vaults):
            for fine, coarse in zip(self.fine.areas(vault), self.coarse.areas(vault), strict=True):
                if tuple(-(-side // BLOCK) for side in fine[1:]) != coarse[1:]:
                    raise KernelError(f"the fine level's tiles must be cut at blocks of {BLOCK}")
                if coarse[1] > _MOST_COLUMNS:
                    raise KernelError(
                        f"{coarse[1]} blocks in a row of tiles; "
                        f"construct and copy take at most {_MOST_COLUMNS}"
                    )

    @cached_property
    def declared(self) -> Declared:
        """The memory that is fixed by the problem: all parameter blocks, and flags."""
        levels = [self.fine.declared, self.coarse.declared]
        blocks = [
            Span(address, len(data))
            for vault in range(self.fine.ring.vaults)
            for address, data in self.parameters(vault)
        ]
        return Declared(
            constants=(*blocks, *(span for level in levels for span in level.constants)),
            numbers=tuple(numbers for level in levels for numbers in level.numbers),
            slots=self.fine.sharers,
        )

    def parameters(self, vault: int) -> Iterator[tuple[int, bytes]]:
        """Chip addresses and contents of construct's and copy's parameter blocks."""
        pitches = [BLOCK * self.fine.pitch, self.coarse.pitch]
        for name, sharers in zip(BETWEEN, (self.fine.sharers, _COPY_SHARERS), strict=True):
            construct = name == "construct"
            base = self.fine.ring.address(vault, _offset(name, self.fine))
            across = [sharers * pitch for pitch in (pitches if construct else pitches[::-1])]
            parts = []
            for member in range(sharers):
                runs = self._runs(vault, member, sharers, construct=construct)
                parts.append([*runs, *[0] * _RUN_WORDS])
            yield base, block_bytes(base, parts, header=(sharers, self.fine.pitch, *across))

    def _runs(self, vault: int, member: int, sharers: int, *, construct: bool) -> Iterator[int]:
        """The words of ``member``'s runs: every ``sharers``-th row of blocks in the vault, tile by
        tile."""
        vector = COST_PLACE * self.fine.vector_bytes if construct else 0
        before = 0
        for (at, *_), (coarse_at, width, height) in zip(
            self.fine.areas(vault), self.coarse.areas(vault), strict=True
        ):
            rows = range((member - before) % sharers, height, sharers)
            if rows:
                source = at + BLOCK * rows.start * self.fine.pitch + vector
                target = coarse_at + rows.start * self.coarse.pitch + vector
                if not construct:
                    source, target = target, source
                yield from (source, len(rows) << _COLUMNS_BITS | width, target)
            before += height

    def launch(self, name: Between) -> Launch:
        """The launch of construct or copy."""
        fine = self.fine
        program = between_program(
            name,
            fine.plan.labels,
            fine.plan.bits,
            scratchpad_bytes=fine.plan.scratchpad_bytes,
            vault_bits=fine.ring.vault_bits,
            tail=fine.tail,
        )
        vaults = range(fine.ring.vaults)
        pixels = sum(width * height for vault in vaults for _, width, height in fine.areas(vault))
        cycles, parameters = most_cycles(pixels), _offset(name, fine)
        return Launch(name=name, program=program, parameters=parameters, max_cycles=cycles)


def _offset(name: Between | Literal["coarse"], fine: BpLayout | TrwsLayout) -> int:
    """Offset of a parameter block, or of the coarse level."""
    # An engine has at most one run per tile, and one run that ends its list.
    runs = (fine.most_areas + 1) * fine.sharers
    room = round_up(8 * (_HEADER_WORDS + fine.sharers + runs * _RUN_WORDS), _ALIGNMENT)
    return round_up(fine.end, _ALIGNMENT) + (*BETWEEN, "coarse").index(name) * room


def coarse_base(fine: BpLayout | TrwsLayout) -> int:
    """Offset at which the coarse level of ``fine`` begins."""
    return _offset("coarse", fine)


@CHECK.arguments
def between_program(
    name: Between,
    labels: int,
    bits: int = 16,
    *,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    vault_bits: int | None = None,
    tail: int = 0,
) -> Program:
    """The program that sums data costs (construct), or that copies messages to the fine problem.

    Parameters:
        labels, bits: of the problem.
        scratchpad_bytes: per engine.
        vault_bits: as for :meth:`microkernels.bp.plan.Plan.program`.
        tail: elements after a vector's labels.

    Raises:
        KernelError: vectors that don't fit the scratchpad, an invalid element width.
    """
    CHECK.one_of("name", name, BETWEEN)
    return _LevelKernel(name, labels, bits, scratchpad_bytes, tail).program(vault_bits)


class _LevelKernel:
    """Common frame of both programs, and each one's code for a batch and for one of its blocks;
    parameters as for :func:`between_program`."""

    def __init__(
        self, name: Between, labels: int, bits: int, scratchpad_bytes: int, tail: int
    ) -> None:
        # To be added, the first vectors of all blocks of a batch are contiguous, then the second
        # ones and so on; otherwise each block's vectors are.
        self._summed = summed = name == "construct"
        size = element_type(bits).itemsize
        self._name = f"{name}_{labels}x{bits}.s"
        self._vector = vector_stride(labels + tail, bits)
        self._record = record_stride(labels + tail, bits)
        block = _BLOCK_VECTORS * self._vector
        fitting = scratchpad_bytes // block
        if not 1 <= labels <= MAX_VL or fitting < _FEWEST_BATCHES:
            raise _too_many(labels, bits, tail, scratchpad_bytes)
        most_blocks, most_batches = _CONSTRUCT_RING if summed else _COPY_RING
        batches = min(most_batches, fitting)
        # A vector instruction handles no more than this.
        widest = MAX_VL * size // self._vector
        blocks = max(1, min(most_blocks, fitting // batches, widest))
        self._blocks = blocks
        self._batch = blocks * block
        self._last = (batches - 1) * self._batch
        # From one block to the next, and between vectors or pairs of a block.
        self._step = self._vector if summed else block
        self._apart = blocks * self._vector if summed else 2 * self._vector
        steps = [BLOCK * self._record, self._record]
        self._steps = dict(zip((_LOADED, _STORED), steps if summed else steps[::-1], strict=True))
        self._transfer = labels if summed else self._vector // size + labels
        self._vl = min(self._apart // size, MAX_VL) if summed else None
        self._writer = w = KernelBuilder(
            f"Hierarchical BP-M, {name}: {labels} labels of {bits} bits, thesis section 7.2.1.",
            "Generated by microkernels.bp.levels, which explains it.",
            f"Scratchpad: ring of {batches} batches of {blocks} blocks, {self._batch} bytes each.",
            launch=("vault", "slot", "parameters"),
            width=Width[f"W{bits}"],
        )
        for stream in (_LOADED, _STORED):
            for register, purpose in _STREAM_REGISTERS.items():
                w.register(f"{stream}_{register}", f"{stream}: {purpose}")
        for register, purpose in _REGISTERS.items():
            w.register(register, purpose)

    def program(self, vault_bits: int | None) -> Program:
        """The assembled program."""
        w = self._writer
        # They write code that loads the block at the load stream's position to ``here``, and that
        # stores the results at ``here`` at the store stream's position.
        load, store = self._load_messages, self._store_messages
        if self._summed:
            load, store = self._load_costs, self._store_costs
        self._start(vault_bits)
        w.note("Fill all batches but one.")
        w.label("fill")
        self._load_batch(load)
        w.op("add", "spare", "spare", self._batch)
        w.op("bne", "spare", "last", "fill")
        w.label("work")
        if self._summed:
            w.note("Make the results of the batch.")
            self._add_costs()
        w.note("Load what comes after the loads on their way.")
        self._load_batch(load)
        w.note("Store the results.")
        if self._summed:
            w.op("v.drain")
        self._each_block(_STORED, "batch", store, after="finish")
        w.op("mov", "spare", "batch")
        w.op("add", "batch", "batch", self._batch)
        w.op("bge", "last", "batch", "work")
        w.op("mov", "batch", "zero")
        w.op("jmp", "work")
        w.emit_detours()
        w.label("finish")
        w.op("halt")
        return w.program(self._name)

    def _load_batch(self, load: Callable[[], None]) -> None:
        """Load blocks into ``spare`` until it is full or none is left."""
        loaded = self._writer.new_label("loaded")
        self._each_block(_LOADED, "spare", load, after=loaded)
        self._writer.label(loaded)

    def _start(self, vault_bits: int | None) -> None:
        w = self._writer
        w.note("Parameter block.")
        described = f"{_LOADED}_described"
        if vault_bits is None:
            w.op("mov", described, "parameters")
        else:
            w.op("sll", described, "vault", vault_bits)
            w.op("add", described, described, "parameters")
        w.read("scratch", described)
        w.op("bge", "slot", "scratch", "finish")
        for register in ("pitch", f"{_LOADED}_across", f"{_STORED}_across"):
            w.read(register, described)
        w.op("sll", "scratch", "slot", LOG_WORD)
        w.op("add", described, described, "scratch")
        w.read("scratch", described)
        w.op("mov", described, "scratch")
        w.op("add", f"{_STORED}_described", described, WORD_BYTES)
        for stream in (_LOADED, _STORED):
            self._describe(stream)
            w.op("li", f"{stream}_step", self._steps[stream])
        for stream in (_LOADED, _STORED):
            self._enter(stream)
        w.op("mov", "elements", self._transfer)
        w.op("mov", "last", self._last)
        w.op("mov", "batch", "zero")
        w.op("mov", "spare", "zero")
        if self._vl is not None:
            w.op("mov", "scratch", self._vl)
            w.op("set.vl", "scratch")

    def _describe(self, stream: str) -> None:
        """Read a stream's words of the next run's description."""
        described = f"{stream}_described"
        for word in _READ[stream]:
            self._writer.read(f"{stream}_{word}", described)
        rest = _RUN_WORDS - len(_READ[stream])
        self._writer.op("add", described, described, WORD_BYTES * rest)

    def _enter(self, stream: str) -> None:
        """Begin the next run, and read the words of the run after it unless the stream is over."""
        w = self._writer
        w.op("srl", f"{stream}_rows", f"{stream}_size", _COLUMNS_BITS)
        w.op("and", f"{stream}_columns", f"{stream}_size", _MOST_COLUMNS)
        w.op("mov", f"{stream}_left", f"{stream}_columns")
        w.op("mov", f"{stream}_row", f"{stream}_place")
        w.op("mov", f"{stream}_at", f"{stream}_place")
        over = w.new_label("over")
        w.op("beq", f"{stream}_rows", "zero", over)
        self._describe(stream)
        w.label(over)

    def _each_block(
        self, stream: str, batch: str, write: Callable[[], None], *, after: str
    ) -> None:
        """Write code for each block of ``batch`` at the stream's position; it goes to ``after``
        when the stream ends."""
        w = self._writer
        again, turn, on = (w.new_label(f"{stream}_{name}") for name in ("block", "turn", "on"))
        w.detour(turn, on, partial(self._next_row, stream, on))
        w.op("mov", "here", batch)
        w.op("add", "batch_end", batch, self._blocks * self._step)
        w.label(again)
        w.op("beq", f"{stream}_rows", "zero", after)
        write()
        w.op("add", f"{stream}_at", f"{stream}_at", f"{stream}_step")
        w.op("sub", f"{stream}_left", f"{stream}_left", 1)
        w.op("beq", f"{stream}_left", "zero", turn)
        w.label(on)
        w.op("add", "here", "here", self._step)
        w.op("bne", "here", "batch_end", again)

    def _next_row(self, stream: str, on: str) -> None:
        """Write code for the end of a row; it continues at ``on``."""
        w = self._writer
        w.op("mov", f"{stream}_left", f"{stream}_columns")
        w.op("add", f"{stream}_row", f"{stream}_row", f"{stream}_across")
        w.op("mov", f"{stream}_at", f"{stream}_row")
        w.op("sub", f"{stream}_rows", f"{stream}_rows", 1)
        w.op("bne", f"{stream}_rows", "zero", on)
        self._enter(stream)

    def _load_costs(self) -> None:
        """Load the data costs of four pixels."""
        w = self._writer
        place = f"{_LOADED}_at"
        w.load("here", place, "elements", note="top left")
        w.op("add", "scratch", place, self._record)
        w.op("add", "other", "here", self._apart)
        w.load("other", "scratch", "elements", note="top right")
        w.op("add", "scratch", place, "pitch")
        w.op("add", "other", "other", self._apart)
        w.load("other", "scratch", "elements", note="bottom left")
        w.op("add", "scratch", "scratch", self._record)
        w.op("add", "other", "other", self._apart)
        w.load("other", "scratch", "elements", note="bottom right")

    def _add_costs(self) -> None:
        """Add four pixels' data costs."""
        w = self._writer
        w.op("add", "other", "batch", self._apart)
        w.vector("v.v.add", "batch", "batch", "other", note="top")
        w.op("add", "other", "other", self._apart)
        w.op("add", "here", "other", self._apart)
        w.vector("v.v.add", "other", "other", "here", note="bottom")
        if self._apart // WORD_BYTES < VECTOR_LATENCY:
            w.op("v.drain")
        w.vector("v.v.add", "batch", "batch", "other")

    def _store_costs(self) -> None:
        """Store the sum of four pixels' data costs."""
        self._writer.store(f"{_STORED}_at", "here", "elements")

    def _load_messages(self) -> None:
        """Load a coarse pixel's messages."""
        w = self._writer
        place = f"{_LOADED}_at"
        w.load("here", place, "elements", note="up, down")
        w.op("add", "scratch", place, _SECOND_PAIR * self._vector)
        w.op("add", "other", "here", self._apart)
        w.load("other", "scratch", "elements", note="left, right")

    def _store_messages(self) -> None:
        """Store the messages of four pixels."""
        w = self._writer
        places = (("top left", None), ("top right", self._record), ("bottom right", "pitch"))
        w.op("add", "other", "here", self._apart)
        w.op("mov", "scratch", f"{_STORED}_at")
        for place, move in (*places, ("bottom left", -self._record)):
            if move is not None:
                w.op("add", "scratch", "scratch", move)
            w.store("scratch", "here", "elements", note=f"{place}: up, down")
            w.op("add", "scratch", "scratch", _SECOND_PAIR * self._vector)
            w.store("scratch", "other", "elements", note=f"{place}: left, right")
            w.op("sub", "scratch", "scratch", _SECOND_PAIR * self._vector)


def _too_many(labels: int, bits: int, tail: int, scratchpad_bytes: int) -> KernelError:
    """The error for labels whose vectors don't fit; it names those that do."""
    vectors = _FEWEST_BATCHES * _BLOCK_VECTORS
    fitting = [
        count
        for count in range(1, MAX_VL + 1)
        if vectors * vector_stride(count + tail, bits) <= scratchpad_bytes
    ]
    return KernelError(
        f"{labels} labels of {bits} bits do not fit {vectors} vectors in a scratchpad of "
        f"{scratchpad_bytes} bytes; " + (f"1 to {fitting[-1]} fit" if fitting else "none fit")
    )
