"""Fit of chips on a device: devices, grids and their ranking, and a chip as synthesised."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pe.config import PeConfig
from soc.chip.config import ChipConfig
from soc.generate.generate import verilog
from soc.generate.presets import configuration_json, configuration_of, preset
from synth.errors import SynthesisError
from synth.physical.devices import DEVICES, FILL, find_device
from synth.physical.fit import VAULT_BYTES, Grid, chip_of, fit, grids, ranked, speed
from tests.small_engine import TINY

XC7 = find_device("xc7vx690t")
TINY_PE = replace(TINY, instructions=frozenset({"halt", "jmp"}), load_store_queue=4)


def test_devices_have_a_usable_part() -> None:
    assert XC7.target == "xc7"
    assert XC7.most("luts") == pytest.approx(303_240)
    assert XC7.fits({"luts": 303_239, "ffs": 433_200, "dsps": 2880, "brams": 1176})
    assert not XC7.fits({"luts": 303_241})
    assert XC7.used({"brams": 588})["brams"] == pytest.approx(0.5)
    for name, device in DEVICES.items():
        assert find_device(name) == device
        assert device.fill == FILL
        assert device.target == ("ecp5" if device.placer else "xc7")
    assert find_device("asic:2.5").most("area_um2") == 2.5e6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "xc7",
            r"^unknown device 'xc7'; there are: xc7a35t, .*, asic:MM2; did you mean .*ecp5-25k-6",
        ),
        ("asic:", r"^device 'asic:': asic: needs square millimetres after it, above 0 and at"),
        ("asic:-1", "needs square millimetres"),
        ("asic:nan", "needs square millimetres"),
        ("asic:1e9", "needs square millimetres"),
    ],
)
def test_unknown_devices_are_refused(name: str, message: str) -> None:
    with pytest.raises(SynthesisError, match=message):
        find_device(name)


def test_grids_have_every_number_of_vaults_once() -> None:
    found = list(grids(2))
    assert len(set(found)) == len(found)
    squares = {grid.vaults: grid for grid in found if grid.engines == 2}
    assert squares[12] == Grid(2, 4, 3)
    assert squares[13] == Grid(2, 13, 1)
    assert 17 not in squares
    assert max(grid.total for grid in grids(14)) <= 1024


def test_speed_ends_where_a_vault_is_busy() -> None:
    assert speed(Grid(6, 2, 2), 0.0) == 24
    assert speed(Grid(6, 2, 2), 0.5) == 24
    assert speed(Grid(6, 2, 2), 2.4) == pytest.approx(4 * VAULT_BYTES / 2.4)


_AREAS = st.floats(100, 50_000)


@given(engine=_AREAS, smaller=st.floats(0.05, 1.0), vault=_AREAS, demand=st.floats(0, 8))
def test_smaller_engines_never_fit_less(
    engine: float, smaller: float, vault: float, demand: float
) -> None:
    def best(one: float) -> tuple[float, list[Grid]]:
        def area(grid: Grid) -> dict[str, float]:
            return {"luts": grid.total * one + grid.vaults * vault, "brams": grid.total * 16.0}

        found = ranked(4, area, XC7, demand)
        assert all(XC7.fits(area(grid)) for grid in found)
        assert [speed(grid, demand) for grid in found] == sorted(
            (speed(grid, demand) for grid in found), reverse=True
        )
        return (speed(found[0], demand) if found else 0.0), found

    full, fitting = best(engine)
    trimmed, more = best(engine * smaller)
    assert trimmed >= full
    assert set(fitting) <= set(more)


def test_among_equals_the_fewest_engines() -> None:
    # Two engines keep a vault busy; more would wait for it.
    found = ranked(8, lambda grid: {"luts": 100_000.0 * grid.vaults}, XC7, VAULT_BYTES / 2)
    assert (found[0].vaults, found[0].engines) == (3, 2)


@pytest.mark.parametrize("pe", [replace(PeConfig(), address_bits=17, counters=False), TINY_PE])
@pytest.mark.parametrize("device", ["xc7vx690t", "ecp5-85k", "asic:1"])
@pytest.mark.parametrize("grid", [Grid(1, 1, 1), Grid(8, 4, 2), Grid(14, 3, 3)])
def test_every_grid_is_a_chip(pe: PeConfig, device: str, grid: Grid) -> None:
    chip = chip_of(pe, grid, find_device(device), tag_bits=6)
    assert (chip.tile.pes, chip.vaults) == (grid.engines, grid.vaults)
    assert not chip.remote
    assert chip.tile.windows
    assert chip.tile.always_ready == 0
    assert not chip.host.vault_counters
    assert chip.pe == pe
    assert configuration_of(configuration_json(chip)) == chip


def hardware(chip: ChipConfig) -> dict[str, str]:
    """Verilog of each module without the comments, which hold configurations."""
    return {name: re.sub("//.*", "", text) for name, text in verilog(chip).modules.items()}


@pytest.mark.parametrize(
    ("device", "grid"), [("xc7vx690t", Grid(1, 2, 2)), ("asic:1", Grid(3, 2, 1))]
)
def test_what_is_around_engines_is_equal(device: str, grid: Grid) -> None:
    full = replace(preset("pe-small"), address_bits=12, counters=False)
    # As far as any is trimmed: no loads of registers, which need buffers, and few tags.
    trimmed = replace(TINY_PE, load_store_queue=2)
    limit = find_device(device)
    known = hardware(chip_of(full, grid, limit, tag_bits=full.tag_bits))
    found = hardware(chip_of(trimmed, grid, limit, tag_bits=full.tag_bits))
    inside = {*verilog(full).modules, *verilog(trimmed).modules}
    around = {name for name in known if name not in inside}
    assert around == {name for name in found if name not in inside}
    assert {"vault_memory", "host_chain", "host_control", "host_data", "tile_control"} <= around
    # The tile holds engines; the others show sizes of the engine to the host.
    differing = {name for name in around if known[name] != found[name]}
    assert differing <= {"chip_tile", "tile_control", "host_control", "host_decode"}
    shown = replace(
        trimmed,
        instruction_words=full.instruction_words,
        scratchpad_bytes=full.scratchpad_bytes,
    )
    found = hardware(chip_of(shown, grid, limit, tag_bits=full.tag_bits))
    assert {name for name in around if known[name] != found[name]} <= {"chip_tile"}


@pytest.mark.slow
def test_a_chip_of_tiny_engines_as_synthesised() -> None:
    steps: list[str] = []
    limit = replace(XC7, capacity={**XC7.capacity, "luts": 12_000})
    config, area = fit(TINY_PE, limit, tag_bits=2, step=steps.append)
    assert limit.fits(area.total.values)
    assert config.pes > 1
    assert steps[0] == "an engine"
    rows = area.rows
    assert [row.unit for row in rows] == ["engines", "control", "memory", "network", "host"]
    luts = sum(row.values["luts"] for row in rows)
    assert area.total.values["luts"] == luts
    # Little is left.
    assert luts > 0.9 * 0.7 * 12_000
    none = replace(limit, capacity={**XC7.capacity, "luts": 5_000})
    with pytest.raises(SynthesisError, match=r"^no engine fits xc7vx690t: a chip of one takes abo"):
        fit(TINY_PE, none, tag_bits=2)
