"""Element-wise layers ready to run (:mod:`microkernels.runtime.job`)."""

from isa.run import Launch
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK
from microkernels.common.feature_map import ROW_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Writable
from microkernels.runtime.job import Golden, KernelJob

from .element_kernel import element_program
from .element_layout import ElementLayout
from .element_shape import ElementShape, element
from .jobs import DEFAULT_OUT_DEPTH

__all__ = ["element_job"]


@CHECK.arguments
def element_job(
    shape: ElementShape,
    image: Elements,
    other: Elements | None = None,
    *,
    depth: int | None = None,
    padding: int = 0,
    out_padding: int = 0,
    sharers: int = 1,
    base: int = 0,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> KernelJob:
    """An element-wise layer.

    Parameters:
        image, other: see :func:`microkernels.nn.element_shape.element`.
        depth: channels in a slice of the maps; None: :data:`microkernels.nn.jobs.DEFAULT_OUT_DEPTH`
            at most.
        padding: pixels around the maps that are read. out_padding: around the output.
        sharers: engines. base: first address of the job's memory; a multiple of 32.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: a shape that does not fit, or data that do not fit the shape.
    """
    if depth is None:
        depth = min(shape.channels, DEFAULT_OUT_DEPTH)
    maps: list[FeatureMap] = []
    for edge in (*[padding] * shape.maps, out_padding):
        # Maps that are used together begin in different banks.
        first = round_up(maps[-1].end, ROW_BYTES) + ROW_BYTES if maps else base
        maps.append(
            FeatureMap(
                base=first,
                width=shape.width,
                height=shape.height,
                channels=shape.channels,
                depth=depth,
                padding=edge,
            )
        )
    *read, target = maps
    layout = ElementLayout(
        shape=shape,
        source=read[0],
        other=read[1] if shape.maps == 2 else None,
        target=target,
        base=round_up(target.end, ROW_BYTES),
        sharers=sharers,
        scratchpad_bytes=scratchpad_bytes,
    )
    golden = Golden(lambda: element(shape, image, other))

    def prepare(memory: Writable) -> None:
        for held, values in zip(read, (image, other), strict=False):
            assert values is not None
            held.store(memory, values)
        layout.store(memory)

    return KernelJob(
        name=f"element-wise {shape.operation}",
        launches=(Launch(program=element_program(layout), parameters=layout.parameters),),
        end=layout.end,
        pes=sharers,
        declared=layout.declared,
        prepare=prepare,
        outputs=target.load,
        golden=golden,
        operations=golden.values.size * shape.operations,
    )
