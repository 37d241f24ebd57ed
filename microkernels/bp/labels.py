"""Chooses labels on the machine: the kernel (equation 2.11), launched after a job's other launches,
and the memory that it needs.

A belief is ``((((up + down) + cost) + left) + right)``, saturated as in
:mod:`microkernels.bp.golden`. The label is the index of the smallest belief, the lowest index if
several are equal. With ``g`` the smallest belief, ``b - g`` is 0 there and 1 or more elsewhere;
times a factor it exceeds any label, so the label is ``min over i of ((b[i] - g) * factor + i)``,
where products and sums may saturate.

Pixels of a row are processed in *groups*, so that instructions of other pixels hide the latency of
results. The next group is loaded in the meantime if the scratchpad has room for two. If records are
blocks of pixels (:mod:`microkernels.bp.record`), a group is a block.

After all other data of a job, each vault contains the parameter block, the constants
(:attr:`LabelsKernel.constants`) and the labels: one element per pixel, the rows of the vault's
tiles one after the other, each padded to whole groups. The vault's engines take turns on the rows.
A row of blocks is two rows of pixels, block after block.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from isa.program import Span
from isa.run import Launch
from isa.table import Width
from isa.timing import VECTOR_LATENCY
from microkernels.common import parameter_block
from microkernels.common.builder import LOG_WORD, KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import Elements, add
from microkernels.common.memory import Readable, Writable
from microkernels.common.scratchpad_plan import ScratchpadPlan
from microkernels.runtime.job import Golden, KernelJob

from .contents import row_tiles
from .layout import BpLayout
from .plan import Plan
from .problem import BpProblem, MessageDirection, Messages, element_type
from .record import (
    BLOCK,
    BLOCK_VECTORS,
    LOADED_VECTORS,
    PART,
    RECORD_VECTORS,
    ROW_MESSAGES,
    loaded_place,
    record_stride,
    vector_stride,
)
from .shifts.rhythm import beats_of
from .tiles import Tile

_ALIGNMENT = 4096
#: Words of the parameter block before the table of parts: engines that share the rows, address of
#: the constants.
_HEADER_WORDS = 2
#: Words per row: address of its first record, address of its first label, groups.
_ROW_WORDS = 3
#: Pixels per group, and number of groups loaded or processed, from the best to the smallest.
_GROUPS = ((4, 2), (2, 2), (4, 1), (1, 2), (1, 1))
_BLOCK_GROUPS = ((BLOCK * BLOCK, 2), (BLOCK * BLOCK, 1))
#: Maximum cycles of a launch, and per pixel.
_START_CYCLES = 1_000_000
_PIXEL_CYCLES = 20_000


def machine_labels(problem: BpProblem, messages: Messages) -> NDArray[np.int64]:
    """``[y, x]``, the labels that the kernel chooses. They equal those of
    :func:`microkernels.bp.golden.labels` where no belief saturates."""
    total = add(messages[MessageDirection.UP], messages[MessageDirection.DOWN])
    for part in (
        problem.data_costs,
        messages[MessageDirection.LEFT],
        messages[MessageDirection.RIGHT],
    ):
        total = add(total, part)
    result: NDArray[np.int64] = total.argmin(axis=2)
    return result


def split_outputs(problem: BpProblem, outputs: Elements) -> tuple[Messages, NDArray[np.int64]]:
    """Messages and labels ``[y, x]`` from the outputs of a job of :func:`with_labels`."""
    pixels = problem.height * problem.width
    shape = problem.no_messages().shape
    labels = outputs[-pixels:].reshape(problem.height, problem.width)
    return outputs[:-pixels].reshape(shape), labels.astype(np.int64)


class LabelsKernel:
    """The kernel that chooses labels.

    Parameters:
        plan: of the kernel that computes the messages; a block is a group.
        group: pixels per group. buffers: groups loaded or processed, 1 or 2.

    Attributes:
        pad: ``index``, the label numbers, followed by the ``factor``; the smallest belief ``g`` of
            each pixel; the ``chosen`` labels; and a ring of loaded records.
        constant_bytes: of :attr:`constants`.
    """

    def __init__(self, plan: Plan, group: int, buffers: int) -> None:
        labels, bits, tail, in_blocks = plan.labels, plan.bits, plan.variant.tail, plan.in_blocks
        self.labels, self.bits, self.size = labels, bits, plan.size
        self.group, self.buffers, self.in_blocks = group, buffers, in_blocks
        self.pad = pad = ScratchpadPlan()
        pad.take("index", labels * self.size)
        pad.take("factor", self.size)
        pad.take_each("g", group, self.size)
        pad.take("chosen", group * self.size)
        self.vector = vector_stride(labels + tail, bits)
        vector = PART * self.vector if in_blocks else self.vector
        pad.take_ring(RECORD_VECTORS, vector, most=buffers * (1 if in_blocks else group))
        self.constant_bytes = pad["factor"] + self.size
        self.writer = w = KernelBuilder(
            f"Labels of least belief: {labels} labels of {bits} bits, thesis equation 2.11.",
            "Generated by microkernels.bp.labels, which explains it.",
            launch=("vault", "slot", "parameters"),
            width=Width[f"W{bits}"],
            place_drains=True,
        )
        reg = w.register
        self.x = reg("x", "an operand, or for the moment")
        self.y = reg("y", "an operand")
        self.z = reg("z", "a result")
        self.described = reg("described", "address of the next word of a row's description")
        self.rows = reg("rows", "rows left")
        self.load = reg("load", "address of the next record to load")
        self.out = reg("out", "address of the next labels to store")
        self.groups = reg("groups", "groups of the row left")
        self.elements = reg("elements", "elements of a vector, a record or a group")
        w.constant("one", 1, "1")
        w.constant("labels", labels, "labels")
        inputs = (RECORD_VECTORS - 1) * vector // self.size + labels
        if in_blocks:
            inputs = LOADED_VECTORS * vector // self.size
            rest = (RECORD_VECTORS - LOADED_VECTORS) * vector // self.size
            w.constant("others", rest, "elements of the messages along rows")
        w.constant("inputs", inputs, "elements of a record, or of its first three parts")
        w.constant("group", group, "pixels of a group")
        step = record_stride(labels + tail, bits)
        if in_blocks:
            step = BLOCK_VECTORS * self.vector
        w.constant("step", step, "bytes from a pixel to the next one")

    @property
    def constants(self) -> NDArray[np.signedinteger]:
        """The label numbers and the factor."""
        dtype = element_type(self.bits)
        elements = np.zeros(self.constant_bytes // self.size, dtype)
        elements[: self.labels] = np.arange(self.labels)
        elements[-1] = min(1 << 8, np.iinfo(dtype).max)
        return elements

    def place(self, buffer: int, pixel: int, vector: int) -> int:
        """Address of one vector of a pixel in a group."""
        pad = self.pad
        if self.in_blocks:
            at = pad.ring + buffer * pad.slot
            return at + loaded_place(vector, pixel % BLOCK, pixel // BLOCK, self.vector)
        return pad.ring + (buffer * self.group + pixel) * pad.slot + vector * pad.vector

    def build(self, vault_bits: int | None) -> KernelBuilder:
        """Write the complete program; ``vault_bits`` as for
        :meth:`microkernels.bp.plan.Plan.program`."""
        w = self.writer
        w.note("Parameter block.")
        if vault_bits is not None:
            w.op("sll", self.x, "vault", vault_bits)
            w.op("add", "parameters", "parameters", self.x)
        w.op("mov", self.x, "parameters")
        w.read(self.rows, self.x)
        w.read(self.load, self.x)
        w.op("bge", "slot", self.rows, "finish")
        w.set_constants()
        w.op("set.vl", "labels")
        w.op("set.mr", "one")
        w.op("set.fx", w.zero)
        w.op("mov", self.y, self.pad["index"])
        w.op("li", self.elements, self.constant_bytes // self.size)
        w.load(self.y, self.load, self.elements)
        w.op("sll", self.y, "slot", LOG_WORD)
        w.op("add", self.x, self.x, self.y)
        w.op("ld.reg [64-bit]", self.described, self.x)
        w.read(self.rows, self.described)
        w.op("beq", self.rows, w.zero, "finish")
        w.label("row")
        for word in (self.load, self.out, self.groups):
            w.read(word, self.described)
        if self.buffers == 2:
            self._load_group(0)
        w.label("group_0")
        for buffer in range(self.buffers):
            self._group(buffer)
        w.op("jmp", "group_0")
        w.label("row_end")
        w.op("sub", self.rows, self.rows, 1)
        w.op("bne", self.rows, w.zero, "row")
        w.label("finish")
        w.op("halt")
        return w

    def _load_group(self, buffer: int) -> None:
        w = self.writer
        if self.in_blocks:
            at = self.place(buffer, 0, 0)
            w.op("mov", self.x, at)
            w.load(self.x, self.load, "inputs")
            w.op("mov", self.x, at + LOADED_VECTORS * self.pad.vector)
            w.op("add", self.y, self.load, ROW_MESSAGES * self.vector)
            w.load(self.x, self.y, "others")
            w.op("add", self.load, self.load, "step")
            return
        for number in range(self.group):
            w.op("mov", self.x, self.place(buffer, number, 0))
            w.load(self.x, self.load, "inputs")
            w.op("add", self.load, self.load, "step")

    def _group(self, buffer: int) -> None:
        """Choose the labels of a group; the row may end after it."""
        w = self.writer
        if self.buffers == 2:
            with w.unless("beq", self.groups, "one"):
                self._load_group(1 - buffer)
        else:
            self._load_group(buffer)
        pixels = range(self.group)
        for vector in range(1, RECORD_VECTORS):
            for pixel in pixels:
                w.op("mov", self.x, self.place(buffer, pixel, 0))
                w.op("mov", self.y, self.place(buffer, pixel, vector))
                w.vector("v.v.add", self.x, self.x, self.y, note="belief")
        for pixel in pixels:
            w.op("mov", self.x, self.place(buffer, pixel, 0))
            w.op("mov", self.z, self.pad[f"g{pixel}"])
            w.vector("m.v.nop.min", self.z, self.x, self.x, note="g")
        for pixel in pixels:
            w.op("mov", self.x, self.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad[f"g{pixel}"])
            w.vector("v.s.sub", self.x, self.x, self.y, note="belief - g")
        for pixel in pixels:
            w.op("mov", self.x, self.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad["factor"])
            w.vector("v.s.mul", self.x, self.x, self.y, note="more than any label")
        for pixel in pixels:
            w.op("mov", self.x, self.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad["index"])
            w.op("mov", self.z, self.pad["chosen"] + pixel * self.size)
            w.vector("m.v.add.min", self.z, self.x, self.y, note="label")
        w.op("mov", self.x, self.pad["chosen"])
        w.store(self.out, self.x, "group")
        w.op("add", self.out, self.out, self.group * self.size)
        w.op("sub", self.groups, self.groups, 1)
        w.op("beq", self.groups, w.zero, "row_end")


def labels_kernel(plan: Plan) -> LabelsKernel:
    """The kernel with the largest group that helps and fits, after messages by the kernel of
    ``plan``.

    Raises:
        KernelError: label numbers that don't fit an element, or a record that does not fit the
            scratchpad.
    """
    labels, bits = plan.labels, plan.bits
    if labels > (1 << bits - 1) - 1:
        raise KernelError(f"labels 0 to {labels - 1} on an engine need more than {bits} bits")
    beat = beats_of(labels, bits)
    for group, buffers in _BLOCK_GROUPS if plan.in_blocks else _GROUPS:
        # A larger group hides no more latency.
        if group > 1 and (group // 2) * beat >= VECTOR_LATENCY + beat:
            continue
        kernel = LabelsKernel(plan, group, buffers)
        if kernel.pad.used <= plan.scratchpad_bytes:
            return kernel
    raise KernelError(
        f"records of {labels} labels of {bits} bits do not fit a scratchpad of "
        f"{plan.scratchpad_bytes} bytes"
    )


def with_labels(job: KernelJob, problem: BpProblem, layout: BpLayout) -> KernelJob:
    """Append the launch ``labels`` to ``job``; the outputs are its messages and then the labels, as
    one row of elements.

    Parameters:
        job: belief propagation whose outputs are the messages of ``problem``.
        layout: of these messages.

    Raises:
        KernelError: labels or records that don't fit an engine.
    """
    kernel = labels_kernel(layout.plan)
    places = _Places(layout, kernel, round_up(job.end, _ALIGNMENT))
    program = kernel.build(job.ring.vault_bits).program(f"labels_{problem.labels}x{problem.bits}.s")

    def prepare(memory: Writable) -> None:
        job.prepare(memory)
        places.pack(memory)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([job.outputs(memory).ravel(), places.unpack(memory).ravel()])

    def golden() -> Elements:
        messages: Messages = job.expected
        labels = machine_labels(problem, messages).astype(messages.dtype)
        return np.concatenate([messages.ravel(), labels.ravel()])

    pixels = problem.width * problem.height
    return replace(
        job,
        name=f"{job.name} with labels",
        launches=(
            *job.launches,
            Launch(
                name="labels",
                program=program,
                parameters=places.base,
                max_cycles=_START_CYCLES + pixels * _PIXEL_CYCLES,
            ),
        ),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(golden, lazy=True),
        end=places.end,
        declared=replace(job.declared, constants=(*job.declared.constants, *places.constants)),
    )


@dataclass(frozen=True)
class _Places:
    """Memory of the launch.

    Attributes:
        layout: of the messages. kernel: the program. base: offset in each vault.
    """

    layout: BpLayout
    kernel: LabelsKernel
    base: int

    @cached_property
    def _image_rows(self) -> list[list[tuple[Tile, int]]]:
        """Rows of each vault, without those that fill up blocks, and addresses of their records."""
        height = self.layout.grid.height
        vaults = range(self.layout.ring.vaults)
        return [
            [one for one in row_tiles(self.layout, vault) if one[0].y < height] for vault in vaults
        ]

    def _groups(self, row: Tile) -> int:
        width = min(row.width, self.layout.grid.width - row.x)
        return -(-width * self.layout.unit // self.kernel.group)

    @property
    def _dtype(self) -> np.dtype[np.signedinteger]:
        return element_type(self.layout.plan.bits)

    @cached_property
    def _numbers(self) -> int:
        """Offset of the constants."""
        rows = max(map(len, self._image_rows))
        words = _HEADER_WORDS + self.layout.sharers * 2 + rows * _ROW_WORDS
        return self.base + round_up(8 * words, COLUMN_BYTES)

    @cached_property
    def _labels(self) -> int:
        """Offset of the labels."""
        return self._numbers + round_up(self.kernel.constant_bytes, ROW_BYTES)

    def _row_bytes(self, row: Tile) -> int:
        return round_up(self._groups(row) * self.kernel.group * self._dtype.itemsize, COLUMN_BYTES)

    def _rows(self, vault: int) -> list[tuple[Tile, int, int]]:
        """A vault's rows with the chip addresses of their records and labels."""
        rows: list[tuple[Tile, int, int]] = []
        at = self._labels
        for row, records in self._image_rows[vault]:
            rows.append((row, records, self.layout.ring.address(vault, at)))
            at += self._row_bytes(row)
        return rows

    @cached_property
    def end(self) -> int:
        """First offset after all data."""
        longest = max(sum(self._row_bytes(row) for row, _ in rows) for rows in self._image_rows)
        # A group may read records after the last row.
        return self._labels + longest + self.kernel.group * self.layout.record_bytes

    def _block(self, vault: int) -> tuple[int, bytes]:
        """The parameter block of a vault."""
        base, parts = self.layout.ring.address(vault, self.base), []
        rows = self._rows(vault)
        for engine in range(self.layout.sharers):
            share = rows[engine :: self.layout.sharers]
            words = [(records, labels, self._groups(row)) for row, records, labels in share]
            parts.append([len(share), *chain.from_iterable(words)])
        header = (self.layout.sharers, self.layout.ring.address(vault, self._numbers))
        return base, parameter_block.block_bytes(base, parts, header=header)

    @property
    def constants(self) -> tuple[Span, ...]:
        """Memory that is fixed by the problem."""
        blocks = map(self._block, range(self.layout.ring.vaults))
        return tuple(Span(base, len(data)) for base, data in blocks)

    def pack(self, memory: Writable) -> None:
        """Write what the launch needs."""
        numbers = self.kernel.constants.tobytes()
        for vault in range(self.layout.ring.vaults):
            memory.write(*self._block(vault))
            memory.write(self.layout.ring.address(vault, self._numbers), numbers)

    def unpack(self, memory: Readable) -> Elements:
        result = np.zeros((self.layout.grid.height, self.layout.grid.width), self._dtype)
        for vault in range(self.layout.ring.vaults):
            for row, _, address in self._rows(vault):
                rows = result[row.pixels]
                labels = np.frombuffer(memory.read(address, rows.nbytes), self._dtype)
                if self.layout.plan.in_blocks:
                    labels = labels.reshape(-1, BLOCK, BLOCK).swapaxes(0, 1)
                rows[:] = labels.reshape(rows.shape)
        return result
