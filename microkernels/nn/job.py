"""A layer ready to run: its program, what the host puts into memory, and what must come out.

:func:`conv_job`, :func:`pool_job` and :func:`dense_job` lay out a layer with given data and compute
the outputs that the golden models demand; :func:`simulate` runs it on the instruction set
simulator. How it runs on hardware is :mod:`sim_tb.cosim.nn`'s business.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from isa.image import DramImage
from isa.program import Program
from isa.table import INSTRUCTIONS, find
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import ROW_BYTES, FeatureMap, StripMap, round_up
from microkernels.common.fixed_point import Elements, check_elements
from microkernels.common.saturation import with_saturation
from microkernels.common.schedule import Hazard
from microkernels.runtime.interleave import Together

from .conv_kernel import conv_program
from .conv_layout import ConvLayout
from .conv_plan import DEFAULT_SCRATCHPAD, best_depth, plan_conv
from .conv_shape import ConvShape, convolve
from .dense_kernel import dense_program
from .dense_layout import DenseLayout, Vectors
from .dense_plan import plan_dense
from .dense_shape import DenseShape, dense, partial_sums
from .pool_kernel import pool_program
from .pool_layout import PoolLayout
from .pool_shape import PoolShape, pool

__all__ = [
    "DEFAULT_OUT_DEPTH",
    "STANDARD",
    "NnJob",
    "conv_job",
    "dense_job",
    "pool_job",
    "simulate",
]

#: Instructions of every engine that is not trimmed: all but the optional ones.
STANDARD: frozenset[str] = frozenset(row.key for row in INSTRUCTIONS if not row.optional)
#: Channels in a slice of a map, where nothing else is asked for.
DEFAULT_OUT_DEPTH = 32


@dataclass(frozen=True, kw_only=True)
class NnJob:
    """A layer with its data.

    Attributes:
        name: for messages.
        program: what all PEs execute.
        parameters: address of the parameter block.
        sharers: PEs that share the layer.
        end: first byte of memory behind all that it uses.
        prepare: puts inputs and all else into a memory.
        outputs: reads the outputs from a memory.
        expected: what they must be.
        operations: additions, multiplications and comparisons of elements that the layer asks for,
            whatever the program makes of them.
        saturated: values that saturate in the golden model (:mod:`microkernels.common.saturation`).
    """

    name: str
    program: Program
    parameters: int
    sharers: int
    end: int
    prepare: Callable[[DramImage], None]
    outputs: Callable[[DramImage], Elements]
    expected: Elements
    operations: int
    saturated: int = 0

    def differing(self, memory: DramImage) -> int:
        """Output elements in ``memory`` that are not as expected."""
        return int(np.count_nonzero(self.outputs(memory) != self.expected))


@CHECK.arguments
@with_saturation
def conv_job(
    shape: ConvShape,
    image: Elements,
    weights: Elements,
    bias: Elements,
    *,
    fraction: int,
    relu: bool = True,
    depth: int | None = None,
    filters: int | None = None,
    out_depth: int | None = None,
    out_padding: int = 0,
    strips: bool = False,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> NnJob:
    """A convolution.

    Parameters:
        image, weights, bias, fraction, relu: see :func:`microkernels.nn.conv_shape.convolve`.
        depth: channels in a slice of the image; None: the fastest.
        filters: at once; None: the fastest.
        out_depth: channels in a slice of the output; None: :data:`DEFAULT_OUT_DEPTH` at most.
        out_padding: pixels around the output.
        strips: the image lies in strips (:class:`microkernels.common.feature_map.StripMap`).
        sharers: PEs. base: where its memory begins; a multiple of 32.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    if out_depth is None:
        out_depth = min(shape.filters, DEFAULT_OUT_DEPTH)
    if depth is None:
        depth = best_depth(shape, out_depth=out_depth, scratchpad_bytes=scratchpad_bytes)
    plan = plan_conv(
        shape,
        depth=depth,
        out_depth=out_depth,
        filters=filters,
        strips=strips,
        scratchpad_bytes=scratchpad_bytes,
    )
    size = {"width": shape.width, "height": shape.height, "channels": shape.channels}
    place = {"base": base, "depth": depth, "padding": shape.padding}
    source: FeatureMap = FeatureMap(**size, **place)
    if strips:
        source = StripMap(**size, **place, rows=shape.kernel, stride=shape.stride)
    target = FeatureMap(
        base=round_up(source.end, ROW_BYTES),
        width=shape.out_width,
        height=shape.out_height,
        channels=shape.filters,
        depth=out_depth,
        padding=out_padding,
    )
    layout = ConvLayout(
        plan=plan,
        source=source,
        target=target,
        base=round_up(target.end, ROW_BYTES),
        sharers=sharers,
    )
    expected = convolve(shape, plan.order, image, weights, bias, fraction=fraction, relu=relu)

    def prepare(memory: DramImage) -> None:
        source.store(memory, image)
        layout.store(memory, weights, bias, relu=relu)

    return NnJob(
        name="convolution",
        program=conv_program(layout, fraction=fraction),
        parameters=layout.parameters,
        sharers=sharers,
        end=layout.end,
        prepare=prepare,
        outputs=target.load,
        expected=expected,
        operations=2 * shape.macs,
    )


@CHECK.arguments
@with_saturation
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
) -> NnJob:
    """A pooling layer, or the completion of partial sums.

    Parameters:
        maps, bias, relu: see :func:`microkernels.nn.pool_shape.pool`.
        depth: channels in a slice of the maps; None: :data:`DEFAULT_OUT_DEPTH` at most.
        out_padding, sharers, base, scratchpad_bytes: as for :func:`conv_job`.

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
    # Segments that are read together lie in different banks.
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
    expected = pool(shape, maps, bias, relu=relu)
    each_output = shape.window**2 - 1 + shape.scaled + (bias is not None) + relu
    added = shape.width * shape.height * shape.channels * (shape.segments - 1)

    def prepare(memory: DramImage) -> None:
        for number, segment in enumerate(maps):
            place = replace(first, base=base + number * step)
            place.store(memory, segment, around=shape.around)
        layout.store(memory, bias, relu=relu)

    return NnJob(
        name="pooling",
        program=pool_program(layout),
        parameters=layout.parameters,
        sharers=sharers,
        end=layout.end,
        prepare=prepare,
        outputs=target.load,
        expected=expected,
        operations=added + expected.size * each_output,
    )


@CHECK.arguments
@with_saturation
def dense_job(
    shape: DenseShape,
    inputs: Elements,
    weights: Elements,
    bias: Elements,
    *,
    fraction: int,
    relu: bool = True,
    others: Elements | None = None,
    completes: bool = True,
    sharers: int = 1,
    chunk: int | None = None,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> NnJob:
    """A vault's part of a fully connected layer.

    Parameters:
        inputs, weights, fraction: see :func:`microkernels.nn.dense_shape.partial_sums`.
        bias, relu: see :func:`microkernels.nn.dense_shape.dense`.
        others: the sums of other vaults' segments, segments x batch x outputs elements; None: the
            vault has all inputs. This vault's segment is the first.
        completes: the vault also adds the segments; otherwise its outputs are its sums.
        chunk: inputs in a chunk; None: choose.
        sharers, base, scratchpad_bytes: as for :func:`conv_job`.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    size = (shape.batch, shape.outputs)
    found = np.zeros((0, *size), np.int16) if others is None else np.asarray(others)
    if found.ndim != len(size) + 1:
        raise KernelError(f"others must be segments x batch x outputs, not {found.shape}")
    found = check_elements("others", found, (len(found), *size))
    plan = plan_dense(
        shape,
        segments=1 + len(found),
        sharers=sharers,
        chunk=chunk,
        scratchpad_bytes=scratchpad_bytes,
    )
    source = Vectors.packed(base, shape.inputs, shape.batch)
    target = Vectors.packed(round_up(source.end, ROW_BYTES), shape.outputs, shape.batch)
    layout = DenseLayout(
        plan=plan,
        source=source,
        target=target,
        base=round_up(target.end, ROW_BYTES),
        completes=completes,
    )
    sums = partial_sums(shape, plan.chunk, inputs, weights, fraction=fraction)
    every = np.concatenate([sums[np.newaxis], found])

    def prepare(memory: DramImage) -> None:
        source.store(memory, inputs)
        layout.store(memory, weights, bias, relu=relu)
        for number, segment in enumerate(found):
            layout.sums(1 + number).store(memory, segment)

    return NnJob(
        name="fully connected",
        program=dense_program(layout, fraction=fraction),
        parameters=layout.parameters,
        sharers=sharers,
        end=layout.end,
        prepare=prepare,
        outputs=target.load if completes else layout.sums(0).load,
        expected=dense(every, bias, relu=relu) if completes else sums,
        operations=2 * shape.inputs * sums.size + completes * found.size,
    )


def simulate(
    job: NnJob, *, seed: int = 0, instructions: frozenset[str] = STANDARD
) -> tuple[Elements, list[Hazard]]:
    """Run a job on instruction set simulators, in the order of their estimated times.

    Parameters:
        seed: of the order in which stores become visible to other PEs.
        instructions: keys of those that the PEs have, such as ``config.instructions`` of a preset.
            The default is :data:`STANDARD`.

    Returns:
        The outputs, and the hazards of the schedule.

    Raises:
        KernelError: the program has an instruction that the PEs lack, or a PE faulted.
    """
    for address, word in enumerate(job.program.words):
        row = find(word)
        if row is not None and row.key not in instructions:
            raise KernelError(
                f"{job.name}: the program needs {row.key} (word {address}), which the PEs lack"
            )
    with DramImage(job.end) as memory:
        job.prepare(memory)
        together = Together(
            job.program,
            memory,
            members=job.sharers,
            parameters=job.parameters,
            seed=seed,
            instructions=instructions,
        )
        for slot, outcome in enumerate(together.run(together.in_time, limit=1 << 28)):
            if outcome.state != "halted":
                raise KernelError(
                    f"{job.name}: PE {slot} {outcome.state} at word {outcome.pc}: "
                    f"{outcome.cause.name}"
                )
        hazards = [hazard for model in together.models for hazard in model.hazards]
        return job.outputs(memory), hazards
