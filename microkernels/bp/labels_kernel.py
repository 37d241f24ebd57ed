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

import numpy as np
from numpy.typing import NDArray

from isa.table import Width
from isa.timing import VECTOR_LATENCY
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up

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

__all__ = ["HEADER_WORDS", "LabelsPlan", "label_constants", "labels_builder", "labels_plan"]

#: Words of the parameter block before the table of parts: engines that share the rows, address of
#: the constants.
HEADER_WORDS = 2
_LOG_WORD = 3
_ALIGN = 16
_MOST_GROUP = 4


@dataclass(frozen=True)
class LabelsPlan:
    """Byte addresses in the scratchpad.

    Attributes:
        group: pixels of a group. buffers: groups that are held, 1 or 2.
        index, constant_bytes: address of the labels' numbers, one for each label, and after them
            the factor; bytes of both.
        factor: its address. least: of ``g`` of each pixel. labels: of the labels.
        slots, slot: address of the loaded records, and bytes of one. vector: bytes from a vector of
            a record to the next.
        used: bytes of all.
        step: bytes from a record in memory to the next.
        in_blocks: a record holds a block, which is a group.
    """

    group: int
    buffers: int
    index: int
    constant_bytes: int
    factor: int
    least: int
    labels: int
    slots: int
    slot: int
    vector: int
    used: int
    step: int
    in_blocks: bool = False

    @property
    def record_bytes(self) -> int:
        """Bytes of a loaded group."""
        return self.slot * (1 if self.in_blocks else self.group)

    def place(self, buffer: int, pixel: int, vector: int) -> int:
        """Address of a vector of a pixel of a group."""
        at = self.slots + buffer * self.record_bytes
        if self.in_blocks:
            return at + loaded_place(vector, pixel % BLOCK, pixel // BLOCK)
        return at + pixel * self.slot + vector * self.vector


def labels_plan(
    labels: int, bits: int, scratchpad_bytes: int, *, in_blocks: bool = False, tail: int = 0
) -> LabelsPlan:
    """The plan with the largest group that is of use and fits.

    Parameters:
        in_blocks: records hold blocks.
        tail: elements after the labels of a vector.

    Raises:
        KernelError: labels whose numbers don't fit an element, or a record that does not fit.
    """
    size = element_type(bits).itemsize
    largest = (1 << bits - 1) - 1
    if labels > largest:
        raise KernelError(f"labels 0 to {labels - 1} on an engine need more than {bits} bits")
    factor = round_up(labels * size, _ALIGN)
    least = factor + _ALIGN
    vector = PART if in_blocks else vector_stride(labels + tail, bits)
    slot = round_up(RECORD_VECTORS * vector, _ALIGN)
    groups = ((_MOST_GROUP, 2), (2, 2), (_MOST_GROUP, 1), (1, 2), (1, 1))
    beat = beats_of(labels, bits)
    for group, buffers in ((BLOCK * BLOCK, 2), (BLOCK * BLOCK, 1)) if in_blocks else groups:
        if group > 1 and (group // 2) * beat >= VECTOR_LATENCY + beat:
            continue
        places = least + group * _ALIGN
        slots = places + round_up(group * size, _ALIGN)
        used = slots + (1 if in_blocks else group) * buffers * slot
        if used <= scratchpad_bytes:
            return LabelsPlan(
                group=group,
                buffers=buffers,
                index=0,
                constant_bytes=factor + size,
                factor=factor,
                least=least,
                labels=places,
                slots=slots,
                slot=slot,
                vector=vector,
                used=used,
                step=BLOCK_BYTES if in_blocks else record_stride(labels + tail, bits),
                in_blocks=in_blocks,
            )
    raise KernelError(
        f"records of {labels} labels of {bits} bits do not fit a scratchpad of {scratchpad_bytes} "
        "bytes"
    )


def label_constants(labels: int, bits: int, plan: LabelsPlan) -> NDArray[np.signedinteger]:
    """The numbers of the labels, and the factor."""
    dtype = element_type(bits)
    elements = np.zeros(plan.constant_bytes // dtype.itemsize, dtype)
    elements[:labels] = np.arange(labels)
    elements[-1] = min(1 << 8, np.iinfo(dtype).max)
    return elements


def labels_builder(
    labels: int, bits: int, plan: LabelsPlan, *, vault_bits: int | None
) -> KernelBuilder:
    """The program.

    Parameters:
        labels, bits: of the problem. plan: places in the scratchpad.
        vault_bits: as for :func:`microkernels.bp.kernel.bp_builder`.
    """
    return _LabelsKernel(labels, bits, plan, vault_bits).build()


class _LabelsKernel:
    """The program."""

    def __init__(self, labels: int, bits: int, plan: LabelsPlan, vault_bits: int | None) -> None:
        self.plan = plan
        self.vault_bits = vault_bits
        self.size = element_type(bits).itemsize
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
        self.labels = labels
        w.constant("one", 1, "1")
        w.constant("labels", labels, "labels")
        inputs = (RECORD_VECTORS - 1) * plan.vector // self.size + labels
        if plan.in_blocks:
            inputs = LOADED_VECTORS * PART // self.size
            rest = (RECORD_VECTORS - LOADED_VECTORS) * PART // self.size
            w.constant("others", rest, "elements of the messages along rows")
        w.constant("inputs", inputs, "elements of a record, or of its first three parts")
        w.constant("group", plan.group, "pixels of a group")
        w.constant("step", plan.step, "bytes from a pixel to the next one")

    def build(self) -> KernelBuilder:
        """The whole program."""
        w, p = self.writer, self.plan
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
        w.op("mov", self.y, p.index)
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
        if self.plan.in_blocks:
            at = self.plan.place(buffer, 0, 0)
            w.op("mov", self.x, at)
            w.load(self.x, self.load, "inputs")
            w.op("mov", self.x, at + LOADED_VECTORS * PART)
            w.op("add", self.y, self.load, ROW_MESSAGES)
            w.load(self.x, self.y, "others")
            w.op("add", self.load, self.load, "step")
            return
        for number in range(self.plan.group):
            w.op("mov", self.x, self.plan.place(buffer, number, 0))
            w.load(self.x, self.load, "inputs")
            w.op("add", self.load, self.load, "step")

    def _group(self, buffer: int) -> None:
        """Choose the labels of a group; the row may end after it."""
        w, p = self.writer, self.plan
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
            w.op("mov", self.z, p.least + pixel * _ALIGN)
            w.vector("m.v.nop.min", self.z, self.x, self.x, note="g")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, p.least + pixel * _ALIGN)
            w.vector("v.s.sub", self.x, self.x, self.y, note="belief - g")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, p.factor)
            w.vector("v.s.mul", self.x, self.x, self.y, note="more than any label")
        for pixel in pixels:
            w.op("mov", self.x, p.place(buffer, pixel, 0))
            w.op("mov", self.y, p.index)
            w.op("mov", self.z, p.labels + pixel * self.size)
            w.vector("m.v.add.min", self.z, self.x, self.y, note="label")
        w.op("mov", self.x, p.labels)
        w.store(self.out, self.x, "group")
        w.op("add", self.out, self.out, p.group * self.size)
        w.op("sub", self.groups, self.groups, 1)
        w.op("beq", self.groups, w.zero, "row_end")
