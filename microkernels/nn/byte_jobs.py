"""Layers on bytes, ready to run (:mod:`microkernels.runtime.job`), laid out with given data."""

from isa.run import Launch
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob

from .conv_bytes import ByteConv, convolve_bytes, pair_bytes, split_pairs
from .conv_depth import best_depth
from .conv_kernel import conv_program
from .conv_plan import plan_conv
from .jobs import DEFAULT_OUT_DEPTH, conv_layout

__all__ = ["byte_conv_job"]


@CHECK.arguments
def byte_conv_job(
    layer: ByteConv,
    image: Elements,
    weights: Elements,
    bias: Elements,
    *,
    depth: int | None = None,
    filters: int | None = None,
    out_depth: int | None = None,
    out_padding: int = 0,
    strips: bool = False,
    reuse: bool = False,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> KernelJob:
    """A convolution of bytes; engines need ``m.v.dot.add``.

    Parameters:
        image, weights, bias: see :func:`microkernels.nn.conv_bytes.convolve_bytes`.
        depth: pairs of channels in a slice of the image; None: all for outputs of bytes, else the
            fastest.
        filters: at once; None: the fastest.
        out_depth: filters whose outputs are in a slice of the output; even for outputs of bytes.
            None: :data:`microkernels.nn.jobs.DEFAULT_OUT_DEPTH` at most.
        out_padding, strips, reuse, sharers, base, scratchpad_bytes: as for
            :func:`microkernels.nn.jobs.conv_job`.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    shape, pairs = layer.shape, layer.pairs
    narrow = layer.narrow is not None
    if out_depth is None:
        out_depth = min(shape.filters + (shape.filters % 2 if narrow else 0), DEFAULT_OUT_DEPTH)
    if depth is None:
        depth = pairs.channels
        if not narrow:
            depth = best_depth(pairs, out_depth=out_depth, scratchpad_bytes=scratchpad_bytes)
    plan = plan_conv(
        pairs,
        depth=depth,
        out_depth=out_depth,
        filters=filters,
        strips=strips,
        reuse=reuse,
        pairs=True,
        narrow=layer.narrow,
        scratchpad_bytes=scratchpad_bytes,
    )
    layout = conv_layout(
        plan,
        base=base,
        channels=-(-shape.filters // 2) if narrow else shape.filters,
        depth=out_depth // 2 if narrow else out_depth,
        padding=out_padding,
        sharers=sharers,
    )
    golden = Golden(lambda: convolve_bytes(layer, plan.order, image, weights, bias))

    def prepare(memory: Writable) -> None:
        layout.source.store(memory, pair_bytes(image))
        layout.store(
            memory,
            pair_bytes(weights),
            layer.biases(bias),
            relu=layer.relu,
            fraction=layer.fraction,
        )

    def outputs(memory: Readable) -> Elements:
        found = layout.target.load(memory)
        return split_pairs(found, shape.filters) if narrow else found

    return KernelJob(
        name="convolution of bytes",
        launches=(
            Launch(
                program=conv_program(layout, fraction=layer.fraction),
                parameters=layout.parameters,
            ),
        ),
        end=layout.end,
        pes=sharers,
        declared=layout.declared,
        prepare=prepare,
        outputs=outputs,
        golden=golden,
        operations=2 * shape.macs,
    )
