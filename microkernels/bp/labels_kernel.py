"""Generator of the kernel that chooses labels: beliefs and their least one (equation 2.11).

A belief is ``((((up + down) + cost) + left) + right)``, saturated as in
:mod:`microkernels.bp.golden`. The label is the place of the least belief, the lowest of equal ones.
With ``g`` the least belief, ``b - g`` is 0 there and 1 or more elsewhere; times a factor it is more
than any label, so the label is ``min over i of ((b[i] - g) * factor + i)``, in which products and
sums may saturate.

Pixels of a row are worked on in *groups*, so that instructions of other pixels hide the latency of
results. The group after this one is loaded meanwhile, if the scratchpad has room for two. Where
records hold blocks of pixels (:mod:`microkernels.bp.record`), a group is a block.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isa.table import Width
from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.scratchpad import ScratchpadPlan

from .problem import element_type
from .record import (
    BLOCK,
    BLOCK_BYTES,
    LOADED_VECTORS,
    PART,
    RECORD_VECTORS,
    ROW_MESSAGES,
    loaded_place,
    record_stride,
    vector_stride,
)
from .shifts.rhythm import beats_of

__all__ = ["HEADER_WORDS", "LabelsShape", "labels_builder", "labels_shape"]

#: Words of the parameter block before the table of parts: engines that share the rows, address of
#: the constants.
HEADER_WORDS = 2
_LOG_WORD = 3
#: Pixels of a group, and groups that are loaded or worked on, from the best to the smallest.
_GROUPS = ((4, 2), (2, 2), (4, 1), (1, 2), (1, 1))
_BLOCK_GROUPS = ((BLOCK * BLOCK, 2), (BLOCK * BLOCK, 1))


@dataclass(frozen=True, kw_only=True)
class LabelsShape:
    """All that a program depends on.

    Attributes:
        labels, bits: of the problem. tail: elements after the labels of a vector.
        group: pixels of a group. buffers: groups that are loaded or worked on, 1 or 2.
        in_blocks: a record holds a block, which is a group.
    """

    labels: int
    bits: int
    tail: int
    group: int
    buffers: int
    in_blocks: bool

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return element_type(self.bits).itemsize

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """``index``, the numbers of the labels, and after it the ``factor``; the least belief ``g``
        of each pixel; the ``chosen`` labels; and a ring of loaded records."""
        pad = ScratchpadPlan()
        pad.take("index", self.labels * self.size)
        pad.take("factor", self.size)
        pad.take_each("g", self.group, self.size)
        pad.take("chosen", self.group * self.size)
        vector = PART if self.in_blocks else vector_stride(self.labels + self.tail, self.bits)
        records = self.buffers * (1 if self.in_blocks else self.group)
        pad.take_ring(RECORD_VECTORS, vector, most=records)
        return pad

    @property
    def constant_bytes(self) -> int:
        """Bytes of :meth:`constants`."""
        return self.pad["factor"] + self.size

    @property
    def record_bytes(self) -> int:
        """Bytes from a record in memory to the next."""
        if self.in_blocks:
            return BLOCK_BYTES
        return record_stride(self.labels + self.tail, self.bits)

    def place(self, buffer: int, pixel: int, vector: int) -> int:
        """Address of a vector of a pixel of a group."""
        pad = self.pad
        if self.in_blocks:
            at = pad.ring + buffer * pad.slot
            return at + loaded_place(vector, pixel % BLOCK, pixel // BLOCK)
        return pad.ring + (buffer * self.group + pixel) * pad.slot + vector * pad.vector

    def constants(self) -> NDArray[np.signedinteger]:
        """The numbers of the labels, and the factor."""
        dtype = element_type(self.bits)
        elements = np.zeros(self.constant_bytes // self.size, dtype)
        elements[: self.labels] = np.arange(self.labels)
        elements[-1] = min(1 << 8, np.iinfo(dtype).max)
        return elements


def labels_shape(
    labels: int, bits: int, scratchpad_bytes: int, *, in_blocks: bool = False, tail: int = 0
) -> LabelsShape:
    """The shape with the largest group that is of use and fits.

    Parameters:
        in_blocks: records hold blocks.
        tail: elements after the labels of a vector.

    Raises:
        KernelError: labels whose numbers don't fit an element, or a record that does not fit.
    """
    if labels > (1 << bits - 1) - 1:
        raise KernelError(f"labels 0 to {labels - 1} on an engine need more than {bits} bits")
    beat = beats_of(labels, bits)
    for group, buffers in _BLOCK_GROUPS if in_blocks else _GROUPS:
        # A larger group hides no more latency.
        if group > 1 and (group // 2) * beat >= VECTOR_LATENCY + beat:
            continue
        shape = LabelsShape(
            labels=labels, bits=bits, tail=tail, group=group, buffers=buffers, in_blocks=in_blocks
        )
        if shape.pad.used <= scratchpad_bytes:
            return shape
    raise KernelError(
        f"records of {labels} labels of {bits} bits do not fit a scratchpad of {scratchpad_bytes} "
        "bytes"
    )


def labels_builder(shape: LabelsShape, *, vault_bits: int | None) -> KernelBuilder:
    """The program; ``vault_bits`` as for :func:`microkernels.bp.kernel.bp_builder`."""
    return _LabelsKernel(shape, vault_bits).build()


class _LabelsKernel:
    """The program."""

    def __init__(self, shape: LabelsShape, vault_bits: int | None) -> None:
        labels, bits, pad = shape.labels, shape.bits, shape.pad
        self.shape = shape
        self.pad = pad
        self.vault_bits = vault_bits
        self.size = shape.size
        self.writer = w = KernelBuilder(
            f"Labels of least belief: {labels} labels of {bits} bits, thesis equation 2.11.",
            "Generated by microkernels.bp.labels_kernel, which explains it.",
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
        inputs = (RECORD_VECTORS - 1) * pad.vector // self.size + labels
        if shape.in_blocks:
            inputs = LOADED_VECTORS * PART // self.size
            rest = (RECORD_VECTORS - LOADED_VECTORS) * PART // self.size
            w.constant("others", rest, "elements of the messages along rows")
        w.constant("inputs", inputs, "elements of a record, or of its first three parts")
        w.constant("group", shape.group, "pixels of a group")
        w.constant("step", shape.record_bytes, "bytes from a pixel to the next one")

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, p = self.writer, self.shape
        w.note("Parameter block.")
        if self.vault_bits is not None:
            w.op("sll", self.x, "vault", self.vault_bits)
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
        w.op("li", self.elements, p.constant_bytes // self.size)
        w.load(self.y, self.load, self.elements)
        w.op("sll", self.y, "slot", _LOG_WORD)
        w.op("add", self.x, self.x, self.y)
        w.op("ld.reg [64-bit]", self.described, self.x)
        w.read(self.rows, self.described)
        w.op("beq", self.rows, w.zero, "finish")
        w.label("row")
        for word in (self.load, self.out, self.groups):
            w.read(word, self.described)
        if p.buffers == 2:
            self._load_group(0)
        w.label("group_0")
        for buffer in range(p.buffers):
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
        if self.shape.in_blocks:
            at = self.shape.place(buffer, 0, 0)
            w.op("mov", self.x, at)
            w.load(self.x, self.load, "inputs")
            w.op("mov", self.x, at + LOADED_VECTORS * PART)
            w.op("add", self.y, self.load, ROW_MESSAGES)
            w.load(self.x, self.y, "others")
            w.op("add", self.load, self.load, "step")
            return
        for number in range(self.shape.group):
            w.op("mov", self.x, self.shape.place(buffer, number, 0))
            w.load(self.x, self.load, "inputs")
            w.op("add", self.load, self.load, "step")

    def _group(self, buffer: int) -> None:
        """Choose the labels of a group; the row may end after it."""
        w, p = self.writer, self.shape
        if p.buffers == 2:
            with w.unless("beq", self.groups, "one"):
                self._load_group(1 - buffer)
        else:
            self._load_group(buffer)
        pixels = range(p.group)
        for vector in range(1, RECORD_VECTORS):
            for pixel in pixels:
                w.op("mov", self.x, p.place(buffer, pixel, 0))
                w.op("mov", self.y, p.place(buffer, pixel, vector))
                w.vector("v.v.add", self.x, self.x, self.y, note="belief")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.z, self.pad[f"g{pixel}"])
            w.vector("m.v.nop.min", self.z, self.x, self.x, note="g")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad[f"g{pixel}"])
            w.vector("v.s.sub", self.x, self.x, self.y, note="belief - g")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad["factor"])
            w.vector("v.s.mul", self.x, self.x, self.y, note="more than any label")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, self.pad["index"])
            w.op("mov", self.z, self.pad["chosen"] + pixel * self.size)
            w.vector("m.v.add.min", self.z, self.x, self.y, note="label")
        w.op("mov", self.x, self.pad["chosen"])
        w.store(self.out, self.x, "group")
        w.op("add", self.out, self.out, p.group * self.size)
        w.op("sub", self.groups, self.groups, 1)
        w.op("beq", self.groups, w.zero, "row_end")
