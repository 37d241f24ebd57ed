"""Layers laid out with given data, ready to run (:mod:`microkernels.runtime.job`).

Data that does not fit the layer is refused when the job is created.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import ROW_BYTES, FeatureMap, round_up, vectors
from microkernels.common.fixed_point import NUMBERS, Elements, check_elements, pack, packed, unpack
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .conv_kernel import conv_program
from .conv_layout import ConvLayout
from .conv_search import best_depth, plan_conv
from .dense import DenseLayout, dense_program
from .dense_plan import dense, partial_sums, plan_dense
from .line import BlockLayout, line_program
from .lstm_kernel import lstm_program
from .lstm_layout import LstmLayout
from .lstm_shape import LstmShape, LstmState, LstmWeights, lstm_step, plan_lstm
from .pool import PoolLayout
from .window_shape import (
    ConvShape,
    PoolShape,
    convolve,
    outputs_per_element,
    pool,
    rounding_bias,
)

#: Default channels per slice of a map.
DEFAULT_OUT_DEPTH = 32


def layer_job(
    name: str,
    layout: BlockLayout,
    program: Program,
    *,
    prepare: Callable[[Writable], None],
    outputs: Callable[[Readable], Elements],
    golden: Golden,
    operations: int = 0,
) -> KernelJob:
    """A layer that takes one launch, on all engines that its layout declares.

    Parameters:
        name, prepare, outputs, golden, operations: as for
            :class:`microkernels.runtime.job.KernelJob`.
        layout: of the layer; the launch uses its parameter block.
    """
    return KernelJob(
        name=name,
        launches=(Launch(program=program, parameters=layout.parameters),),
        prepare=prepare,
        outputs=outputs,
        golden=golden,
        end=layout.end,
        pes=layout.declared.slots,
        operations=operations,
        declared=layout.declared,
    )


@CHECK.arguments
def conv_job(
    shape: ConvShape,
    image: Elements,
    weights: Elements,
    bias: Elements,
    *,
    fraction: int,
    **options: Any,
) -> KernelJob:
    """A convolution.

    Parameters:
        image, weights, bias, fraction: see :func:`microkernels.nn.window_shape.convolve`.
        options: of :func:`conv_layout`.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    layout = conv_layout(shape, fraction=fraction, **options)
    bits, narrow = layout.plan.bits, layout.plan.narrow
    golden = Golden(
        lambda: convolve(
            shape,
            image,
            weights,
            bias,
            depth=layout.plan.depth,
            joined=layout.plan.joined,
            fraction=fraction,
            relu=layout.relu,
            narrow=narrow,
            bits=bits,
        )
    )

    def prepare(memory: Writable) -> None:
        layout.source.store(memory, pack(image, bits))
        layout.store(memory, pack(weights, bits), rounding_bias(bias, shape.filters, narrow))

    def outputs(memory: Readable) -> Elements:
        elements = layout.target.load(memory)
        return elements if narrow is None else unpack(elements, 8, shape.filters)

    return layer_job(
        "convolution of bytes" if bits < 16 else "convolution",
        layout,
        conv_program(layout),
        prepare=prepare,
        outputs=outputs,
        golden=golden,
        operations=2 * shape.macs,
    )


@CHECK.arguments
def conv_layout(
    shape: ConvShape,
    *,
    fraction: int = 0,
    relu: bool = True,
    depth: int | None = None,
    filters: int | None = None,
    out_depth: int | None = None,
    out_padding: int = 0,
    strips: bool = False,
    reuse: bool = False,
    bits: int = 16,
    narrow: int | None = None,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> ConvLayout:
    """A convolution's layout, whose image starts at ``base`` and is followed by everything else.

    Parameters:
        fraction, relu: as for :class:`microkernels.nn.conv_layout.ConvLayout`.
        depth: elements of a pixel per slice of the image; None: the fastest.
        filters: at once; None: the fastest.
        out_depth: filters whose outputs form a slice of the output; even for outputs of bytes.
            None: at most :data:`DEFAULT_OUT_DEPTH`.
        out_padding: padding of the output.
        strips: the image is stored in strips (:mod:`microkernels.common.feature_map`).
        reuse: see :func:`microkernels.nn.conv_search.plan_conv`.
        bits: of the numbers of image and weights, counted by ``shape``; for 8 engines need
            ``m.v.dot.add``.
        narrow: bits by which sums are shifted to become bytes; None: the outputs
            are sums.
        sharers: number of engines. base: first address of the job's memory; a multiple of 32.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a shape that does not fit.
    """
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    shape = replace(shape, channels=-(-shape.channels // packed(bits)))
    per_element = outputs_per_element(narrow)
    if out_depth is None:
        out_depth = min(round_up(shape.filters, per_element), DEFAULT_OUT_DEPTH)
    if depth is None:
        depth = best_depth(
            shape,
            out_depth=out_depth,
            bits=bits,
            narrow=narrow,
            scratchpad_bytes=scratchpad_bytes,
        )
    plan = plan_conv(
        shape,
        depth=depth,
        out_depth=out_depth,
        filters=filters,
        strips=strips,
        reuse=reuse,
        bits=bits,
        narrow=narrow,
        sharers=sharers,
        scratchpad_bytes=scratchpad_bytes,
    )
    size = {"width": shape.width, "height": shape.height, "channels": shape.channels}
    place = {"base": base, "depth": depth, "padding": shape.padding}
    cut = {"strip_rows": shape.kernel_rows, "strip_pitch": shape.step_down} if strips else {}
    source = FeatureMap(**size, **place, **cut)
    target = FeatureMap(
        base=round_up(source.end, ROW_BYTES),
        width=shape.out_width,
        height=shape.out_height,
        channels=plan.out_channels,
        depth=out_depth // per_element,
        padding=out_padding,
    )
    return ConvLayout(
        plan=plan,
        source=source,
        target=target,
        fraction=fraction,
        relu=relu,
        base=round_up(target.end, ROW_BYTES),
        sharers=sharers,
    )


@CHECK.arguments
def pool_job(
    shape: PoolShape,
    maps: Elements,
    bias: Elements | None = None,
    *,
    relu: bool = False,
    depth: int | None = None,
    out_padding: int = 0,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> KernelJob:
    """A pooling layer, or the completion of partial sums.

    Parameters:
        maps, bias, relu: see :func:`microkernels.nn.window_shape.pool`.
        depth: channels per slice of the maps; None: at most :data:`DEFAULT_OUT_DEPTH`.
        out_padding, sharers, base, scratchpad_bytes: as for :func:`conv_layout`.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    first = FeatureMap(
        base=base,
        width=shape.width,
        height=shape.height,
        channels=shape.channels,
        depth=min(shape.channels, DEFAULT_OUT_DEPTH) if depth is None else depth,
        padding=shape.padding,
    )
    # Segments that are read together are in different banks.
    step = round_up(first.end - first.base, ROW_BYTES) + ROW_BYTES
    target = FeatureMap(
        base=base + shape.segments * step,
        width=shape.out_width,
        height=shape.out_height,
        channels=shape.channels,
        depth=first.depth,
        padding=out_padding,
    )
    layout = PoolLayout(
        shape=shape,
        source=first,
        target=target,
        base=round_up(target.end, ROW_BYTES),
        segment_step=step if shape.segments > 1 else 0,
        biased=bias is not None,
        sharers=sharers,
        scratchpad_bytes=scratchpad_bytes,
    )
    golden = Golden(lambda: pool(shape, maps, bias, relu=relu))
    each_output = shape.kernel * shape.down - 1 + shape.scaled + (bias is not None) + relu
    added = shape.width * shape.height * shape.channels * (shape.segments - 1)

    def prepare(memory: Writable) -> None:
        for number, segment in enumerate(maps):
            place = replace(first, base=base + number * step)
            place.store(memory, segment, around=shape.around)
        layout.store(memory, bias, relu=relu)

    return layer_job(
        "pooling",
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=golden,
        operations=(added + golden.values.size * each_output) * packed(shape.bits),
    )


@CHECK.arguments
def dense_job(
    inputs: Elements,
    weights: Elements,
    bias: Elements,
    *,
    fraction: int,
    relu: bool = True,
    others: Elements | None = None,
    sharers: int = 1,
    chunk: int | None = None,
    bits: int = 16,
    narrow: int | None = None,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> KernelJob:
    """A vault's part of a fully connected layer.

    Parameters:
        inputs, weights, fraction: see :func:`microkernels.nn.dense_plan.partial_sums`.
        bias, relu, narrow: see :func:`microkernels.nn.dense_plan.dense`.
        others: the sums of other vaults' segments, segments x batch x outputs elements; None: the
            vault has all inputs. This vault's segment is the first.
        chunk: elements of inputs per chunk; None: choose automatically.
        bits: of the numbers of inputs and weights; for 8 engines need ``m.v.dot.add``.
        sharers, base, scratchpad_bytes: as for :func:`conv_layout`.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    weights = check_elements("weights", weights, ("outputs", "inputs"), NUMBERS[bits])
    units, length = weights.shape
    inputs = check_elements("inputs", inputs, ("batch", length), NUMBERS[bits])
    size = (len(inputs), units)
    other_sums = np.zeros((0, *size), np.int16) if others is None else np.asarray(others)
    if other_sums.ndim != len(size) + 1:
        raise KernelError(f"others must be segments x batch x outputs, not {other_sums.shape}")
    other_sums = check_elements("others", other_sums, (len(other_sums), *size))
    plan = plan_dense(
        inputs=-(-length // packed(bits)),
        outputs=units,
        batch=len(inputs),
        segments=1 + len(other_sums),
        sharers=sharers,
        chunk=chunk,
        bits=bits,
        narrow=narrow,
        scratchpad_bytes=scratchpad_bytes,
    )
    target = vectors(base, plan.output_elements, len(inputs))
    layout = DenseLayout(
        plan=plan,
        target=target,
        fraction=fraction,
        relu=relu,
        base=round_up(target.end, ROW_BYTES),
    )

    def model() -> Elements:
        sums = partial_sums(plan.chunk * packed(bits), inputs, weights, fraction=fraction)
        every = np.concatenate([sums[np.newaxis], other_sums])
        return dense(every, bias, relu=relu, narrow=narrow)

    def prepare(memory: Writable) -> None:
        layout.store(memory, pack(weights, bits), rounding_bias(bias, units, narrow))
        layout.inputs.store(memory, pack(inputs, bits)[np.newaxis])
        for number, segment in enumerate(other_sums):
            layout.sums(1 + number).store(memory, segment[np.newaxis])

    def outputs(memory: Readable) -> Elements:
        elements = target.load(memory)[0]
        return elements if narrow is None else unpack(elements, 8, units)

    return layer_job(
        "fully connected of bytes" if bits < 16 else "fully connected",
        layout,
        dense_program(layout),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(model),
        operations=2 * inputs.size * units + other_sums.size,
    )


@CHECK.arguments
def lstm_job(
    shape: LstmShape,
    weights: LstmWeights,
    x: Elements,
    state: LstmState | None = None,
    *,
    fraction: int,
    weight_fraction: int | None = None,
    engines: ChipEngines = ONE_ENGINE,
    vaults: int | None = None,
    vault: int = 0,
) -> KernelJob:
    """A sequence of time steps of a layer on all engines of a chip, in one launch; or a step of one
    of its vaults, alone.

    The job's outputs are y after each step, then c after the last one; those that a vault computes,
    if it is alone.

    Parameters:
        weights: of the layer.
        x: steps x batch x inputs elements, at least one step.
        state: before the first step; None: all 0.
        fraction: fraction bits of all numbers except weights and peepholes, 0..15.
        weight_fraction: of weights and peepholes; None: the same.
        engines: of the chip.
        vaults: number that share the layer, of which the chip's only one is ``vault``; it finds
            what others contribute to the inputs of the projection in its memory. None: those of the
            chip.

    Raises:
        KernelError: a shape that does not fit the chip, data that do not fit the shape, or a
            ``vault`` of no ``vaults``.
    """
    if vaults is None and vault:
        raise KernelError("vault is one of vaults that share a layer: give vaults, too")
    weights = weights.checked(shape)
    x = check_elements("x", x, ("steps", shape.batch, shape.inputs))
    before = (LstmState.start(shape) if state is None else state).checked(shape)
    plan = plan_lstm(shape, engines, vaults=vaults)
    alone = None if vaults is None else vault
    layout = LstmLayout(plan=plan, engines=engines, steps=len(x), alone=alone)
    program = lstm_program(layout, fraction=fraction, weight_fraction=weight_fraction)

    @cache
    def computed() -> tuple[Elements, Elements, Elements]:
        """y after each step; c after the last, and its inputs of the projection."""
        after, y = before, []
        for inputs in x:
            after, m = lstm_step(
                plan, weights, inputs, after, fraction=fraction, weight_fraction=weight_fraction
            )
            y.append(after.y)
        return np.stack(y), after.c, m

    def prepare(memory: Writable) -> None:
        layout.store(memory, weights, before.c, before.y)
        layout.store_inputs(memory, x)
        if alone is not None:
            layout.store_cells(memory, computed()[2])

    return KernelJob(
        name="LSTM",
        launches=(Launch(program=program, parameters=layout.parameters),),
        prepare=prepare,
        outputs=layout.outputs,
        golden=Golden(lambda: layout.results(*computed()[:2]), lazy=alone is None),
        end=layout.end,
        pes=engines.pes,
        ring=engines,
        operations=len(x) * shape.operations // (vaults or 1),
        declared=layout.declared,
    )
