"""Element-wise layers with given data."""

from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.feature_map import ROW_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import Elements, packed
from microkernels.common.memory import Writable
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import ElementOperation, element
from microkernels.nn.jobs import DEFAULT_OUT_DEPTH, layer_job
from microkernels.nn.line import line_program
from microkernels.runtime.job import Golden, KernelJob


def element_job(
    operation: ElementOperation,
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
        depth: channels per slice of the maps; None: at most
            :data:`microkernels.nn.jobs.DEFAULT_OUT_DEPTH`.
        padding: of the input maps. out_padding: of the output.
        sharers: number of engines. base: first address of the job's memory; a multiple of 32.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: data that do not fit the operation or each other, or a scratchpad too small.
    """
    height, width, channels = image.shape
    if depth is None:
        depth = min(channels, DEFAULT_OUT_DEPTH)
    maps: list[FeatureMap] = []
    for edge in (*[padding] * operation.maps, out_padding):
        # Maps that are used together start in different banks.
        first = round_up(maps[-1].end, ROW_BYTES) + ROW_BYTES if maps else base
        maps.append(
            FeatureMap(
                base=first,
                width=width,
                height=height,
                channels=channels,
                depth=depth,
                padding=edge,
            )
        )
    *read, target = maps
    layout = ElementLayout(
        shape=operation,
        source=read[0],
        other=read[1] if operation.maps == 2 else None,
        target=target,
        base=round_up(target.end, ROW_BYTES),
        sharers=sharers,
        scratchpad_bytes=scratchpad_bytes,
    )
    golden = Golden(lambda: element(operation, image, other))

    def prepare(memory: Writable) -> None:
        for feature_map, values in zip(read, (image, other), strict=False):
            assert values is not None
            feature_map.store(memory, values)
        layout.store(memory)

    return layer_job(
        f"element-wise {operation.function}",
        layout,
        line_program(layout),
        prepare=prepare,
        outputs=target.load,
        golden=golden,
        operations=golden.values.size * operation.per_number * packed(operation.bits),
    )
