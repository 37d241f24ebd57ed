"""Networks with layers that work on rows: softmax, normalisations, products of two maps."""

import pytest

from microkernels.common.errors import KernelError
from microkernels.networks.network import (
    Conv,
    ElementWise,
    MapSize,
    Network,
    Normalize,
    Product,
    Rearrange,
)
from tests.microkernels.networks.test_networks import check, engines, job_of

#: Attention of one head in each of two columns, with a residual connection.
ATTENTION = Network(
    input=MapSize(2, 9, 12),
    layers=(
        Conv(name="stem", filters=16, kernel=1, fraction=12, relu=False),
        Normalize(name="norm", operation="layer", factor=20, fraction=10, epsilon=3),
        Conv(name="q", source="norm", filters=6, kernel=1, fraction=10, relu=False),
        Conv(name="k", source="norm", filters=6, kernel=1, fraction=10, relu=False),
        Conv(name="v", source="norm", filters=9, kernel=1, fraction=10, relu=False),
        Product(name="scores", source="q", other="k", fraction=10),
        Normalize(name="soft", operation="softmax", source_fraction=11, factor=15),
        Product(name="heads", source="soft", other="v", fraction=12),
        Conv(name="out", filters=16, kernel=1, fraction=12, relu=False),
        ElementWise(name="sum", function="add", other="stem"),
        Normalize(name="rms", operation="rms", factor=20, fraction=10, epsilon=3),
    ),
)


@pytest.mark.parametrize(("grid", "batch"), [((1, 1), 1), ((2, 2), 1), ((2, 1), 3)])
def test_every_activation_equals_the_golden_models(grid: tuple[int, int], batch: int) -> None:
    check(job_of(ATTENTION, engines(*grid), batch=batch))


def test_a_map_of_one_column_serves_all_columns() -> None:
    one = tuple(row * 2 * 8 + channel for row in range(5) for channel in range(8))
    network = Network(
        input=MapSize(2, 5, 8),
        layers=(
            Conv(name="conv", filters=8, kernel=1, fraction=12, relu=False),
            Rearrange(name="one", inputs=("conv",), size=MapSize(1, 5, 8), order=one),
            Product(name="first", source="one", other="conv", fraction=8),
            Product(name="second", source="conv", other="one", fraction=8),
        ),
    )
    for grid in ((1, 1), (2, 2)):
        check(job_of(network, engines(*grid)))


def test_maps_that_have_no_product_are_refused() -> None:
    layers = (
        Conv(name="a", filters=4, kernel=1, fraction=8),
        Conv(name="b", source="a", filters=5, kernel=1, fraction=8),
        Product(name="p", source="a", other="b", fraction=8),
    )
    with pytest.raises(KernelError, match="p: maps of 2 x 3 x 4 and 2 x 3 x 5"):
        Network(input=MapSize(2, 3, 4), layers=layers)
