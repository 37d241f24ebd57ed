"""The choice of an image's tiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microkernels.bp.tiles import TileGrid, fastest_cut, sweep_time
from microkernels.common.errors import KernelError
from microkernels.runtime.ring import ChipEngines


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
    # The time is a sum of one for the columns and one for the rows.
    for parts, side, length in zip(cut, (width, height), (height, width), strict=True):
        times = {
            number: sweep_time(side, length, number, pes, block)
            for number in range(1, min(vaults, -(-side // block)) + 1)
        }
        assert times[parts] == min(times.values())


def test_the_cut_of_a_large_image_uses_every_vault() -> None:
    assert fastest_cut(1920, 1080, vaults=32, pes=4) == (32, 32)


def test_a_small_image_gets_fewer_tiles_than_vaults() -> None:
    # Cycles of all cuts near these: docs/mrf.md.
    assert fastest_cut(64, 36, vaults=32, pes=4) == (8, 9)
    assert fastest_cut(240, 136, vaults=32, pes=4) == (30, 17)


def test_a_cut_has_tiles() -> None:
    with pytest.raises(KernelError, match="rows must be at least 1, not 0"):
        TileGrid(width=4, height=4, ring=ChipEngines(), cut=(1, 0))
