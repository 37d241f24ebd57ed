"""The ring over the vaults, and which vault has which tile."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.bp.problem import MessageDirection
from microkernels.bp.tiles import TileGrid
from microkernels.common.errors import KernelError
from microkernels.runtime.ring import ChipEngines

SIDES = range(1, 10)
#: Thesis Figure 6.2: the first and the second row of tiles of 4 x 4 vaults, counted from 1.
FIGURE = (
    (1, 2, 3, 4, 8, 7, 6, 5, 9, 10, 11, 12, 16, 15, 14, 13),
    (2, 3, 4, 8, 7, 6, 5, 9, 10, 11, 12, 16, 15, 14, 13, 1),
)


@pytest.mark.parametrize("rows", SIDES)
@pytest.mark.parametrize("columns", SIDES)
def test_the_ring_visits_every_vault_by_single_links(columns: int, rows: int) -> None:
    ring = ChipEngines(columns=columns, rows=rows, address_bits=28)
    assert sorted(ring.order) == list(range(columns * rows))
    around = [*ring.order, ring.order[0]]
    assert {ring.links(one, other) for one, other in pairwise(around)} == {
        0 if ring.vaults == 1 else 1
    }
    for position, vault in enumerate(ring.order):
        assert ring.position(vault) == position
        assert ring.next(ring.next(vault), -1) == vault


def test_links_are_counted_the_short_way_around() -> None:
    ring = ChipEngines(columns=8, rows=4)
    assert [ring.links(0, vault) for vault in (0, 1, 4, 7, 8, 24, 20)] == [0, 1, 4, 1, 1, 1, 6]


def test_the_assignment_of_the_thesis() -> None:
    grid = TileGrid(width=160, height=160, ring=ChipEngines(columns=4, rows=4))
    for row, expected in enumerate(FIGURE):
        assert tuple(grid.tile(column, row).vault + 1 for column in range(16)) == expected


def test_full_hd_has_the_thesis_tiles() -> None:
    grid = TileGrid(width=1920, height=1080, ring=ChipEngines(columns=8, rows=4))
    assert (grid.columns, grid.rows, grid.tile_width, grid.tile_height) == (32, 32, 60, 34)
    assert {grid.tile(column, 0).width for column in range(32)} == {60}
    assert {grid.tile(0, row).height for row in range(32)} == {33, 34}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    columns=st.integers(1, 8),
    rows=st.integers(1, 4),
    width=st.integers(1, 70),
    height=st.integers(1, 70),
    cut=st.none() | st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
def test_tiles_cover_the_image_and_every_vault_works_in_every_step(
    columns: int, rows: int, width: int, height: int, cut: tuple[int, int] | None
) -> None:
    ring = ChipEngines(columns=columns, rows=rows)
    grid = TileGrid(width=width, height=height, ring=ring, cut=cut)
    if cut is not None:
        assert (grid.columns, grid.rows) == (
            min(cut[0], ring.vaults, width),
            min(cut[1], ring.vaults, height),
        )
    held = {}
    for vault in range(ring.vaults):
        tiles = grid.tiles(vault)
        assert [tile.column for tile in tiles] == sorted({tile.column for tile in tiles})
        for tile in tiles:
            assert tile.vault == vault
            assert grid.tile_width - tile.width in (0, 1)
            assert grid.tile_height - tile.height in (0, 1)
            for y in range(tile.y, tile.y + tile.height):
                for x in range(tile.x, tile.x + tile.width):
                    assert held.setdefault((x, y), tile) is tile
    assert len(held) == width * height
    for direction in MessageDirection:
        seen = []
        for step in range(grid.steps(direction)):
            tiles = [grid.step(direction, vault, step) for vault in range(ring.vaults)]
            lanes = grid.rows if direction.horizontal else grid.columns
            working = [tile for tile in tiles if tile is not None]
            assert len(working) == lanes
            assert all(tile.vault == vault for vault, tile in enumerate(tiles) if tile is not None)
            if seen:
                # Messages that left the tiles of the previous step arrive at those of this step.
                before = [grid.following(direction, tile) for tile in seen[-1]]
                key = [(tile.column, tile.row) for tile in before if tile is not None]
                assert sorted(key) == sorted((tile.column, tile.row) for tile in working)
            seen.append(working)
        assert all(grid.following(direction, tile) is None for tile in seen[-1])
        # Messages leave for the next vault of the ring, or for the one before.
        for tile in (tile for step in seen[:-1] for tile in step):
            there = grid.following(direction, tile)
            assert there is not None
            assert there.vault == ring.next(tile.vault, -1 if direction.reverse else 1)


def test_addresses() -> None:
    ring = ChipEngines(columns=8, rows=4, address_bits=28)
    assert ring.address(31, 5) == (31 << 28) + 5
    assert ring.vault_of(ring.address(31, 5)) == 31


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChipEngines(columns=0), "columns of vaults must be at least 1, not 0"),
        (lambda: ChipEngines(rows=-1), "rows of vaults must be at least 1, not -1"),
        (lambda: ChipEngines(address_bits=41), "of each of 1 vaults must be 12 to 40, not 41"),
        (lambda: ChipEngines(columns=3, address_bits=39), "3 vaults must be 12 to 38, not 39"),
        (lambda: TileGrid(width=0, height=1, ring=ChipEngines()), "width must be at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)
