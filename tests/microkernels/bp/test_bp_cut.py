"""The choice of an image's tiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microkernels.bp.tiles import TileCut, fastest_cut, predicted_updates
from microkernels.common.errors import KernelError


@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    vaults=st.sampled_from([1, 2, 4, 8]),
    pes=st.integers(1, 4),
    block=st.sampled_from([1, 2]),
)
def test_no_other_cut_is_predicted_to_be_faster(
    width: int, height: int, vaults: int, pes: int, block: int
) -> None:
    cut = fastest_cut(width, height, vaults=vaults, pes=pes, block=block)
    assert 1 <= cut.columns <= min(vaults, width)
    assert 1 <= cut.rows <= min(vaults, height)
    least = predicted_updates(width, height, cut, pes, block)
    for columns in range(1, min(vaults, -(-width // block)) + 1):
        for rows in range(1, min(vaults, -(-height // block)) + 1):
            assert least <= predicted_updates(width, height, TileCut(columns, rows), pes, block)


def test_the_cut_of_a_large_image_uses_every_vault() -> None:
    assert fastest_cut(1920, 1080, vaults=32, pes=4) == TileCut(32, 32)


def test_a_small_image_gets_fewer_tiles_than_vaults() -> None:
    # Cycles of all cuts near these: docs/mrf.md.
    assert fastest_cut(64, 36, vaults=32, pes=4) == TileCut(8, 9)
    assert fastest_cut(240, 136, vaults=32, pes=4) == TileCut(30, 17)


def test_a_cut_has_tiles() -> None:
    with pytest.raises(KernelError, match="rows must be at least 1, not 0"):
        TileCut(1, 0)
