from dataclasses import fields, replace

import pytest
from amaranth.hdl import Module, Signal
from hypothesis import given
from hypothesis import strategies as st

from hdl.config import ConfigurationError
from memory.address_map import DramAddress, join_address, slice_address
from memory.config import VaultConfig
from memory.timing import DramTiming


def test_clocks_of_the_thesis():
    t = DramTiming()
    assert (t.tccd, t.tcl, t.trcd, t.trp, t.tras, t.twr) == (7, 18, 18, 18, 35, 19)
    assert (t.trfc, t.trefi, t.trc) == (102, 2437, 53)
    assert (t.tcwl, t.trtp, t.twtr, t.trrd, t.tfaw) == (18, 10, 10, 0, 0)
    assert (t.write_to_read, t.write_to_precharge) == (32, 41)


def test_whole_clocks_are_not_rounded_up():
    # 0.1 + 0.2 and its like must not cost a clock.
    assert DramTiming(tck_ns=0.1, trcd_ns=0.3, twr_ns=0.7).trcd == 3
    assert DramTiming(tck_ns=0.1, trcd_ns=0.3, twr_ns=0.7).twr == 7


@pytest.mark.parametrize(
    ("mode", "trfc", "trefi"), [(4, 102, 2437), (2, 204, 4875), (1, 408, 9750)]
)
def test_refresh_modes_scale_both_times(mode, trfc, trefi):
    timing = DramTiming().refresh_mode(mode)
    assert (timing.trfc, timing.trefi) == (trfc, trefi)


@pytest.mark.parametrize("mode", [0, 3, 8, True, "4"])
def test_other_refresh_modes_are_refused(mode):
    with pytest.raises(ConfigurationError, match="refresh mode must be one of 1, 2, 4"):
        DramTiming().refresh_mode(mode)


@pytest.mark.parametrize("name", [f.name for f in fields(DramTiming)])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "5", None, True])
def test_bad_times_are_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=name):
        DramTiming(**{name: value})


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"trcd_ns": 0}, "trcd_ns must be more than 0"),
        ({"trfc_ns": 1e6, "trefi_ns": 4e6}, "trfc_ns must be at most 65536 clocks"),
        ({"tras_ns": 20.0}, "tras_ns must cover trcd_ns and trtp_ns"),
        ({"tcwl_ns": 0.8}, "tcwl_ns must be at least 2 clocks"),
        ({"trrd_ns": 5.0, "tfaw_ns": 4.0}, "tfaw_ns must be 0 or at least trrd_ns"),
        ({"trefi_ns": 200.0}, "trefi_ns must leave time to use a bank"),
        ({"turnaround_clocks": 16}, "turnaround_clocks must be a whole number from 0 to 15"),
    ],
)
def test_impossible_sets_are_refused(values, match):
    with pytest.raises(ConfigurationError, match=match):
        DramTiming(**values)


def test_vault_of_the_thesis():
    config = VaultConfig()
    assert (config.banks, config.rows, config.columns) == (16, 65536, 8)
    assert (config.size_bytes, config.address_bits) == (256 << 20, 28)
    assert config.request_address_bits == 28


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("banks", 12),
        ("banks", 1),
        ("banks", 128),
        ("rows", 3),
        ("row_bytes", 32),
        ("row_bytes", 96),
        ("timing", None),
        ("page_policy", "ajar"),
        ("address_map", "row-bank"),
        ("scheduler", "best"),
        ("transaction_queue", 33),
        ("command_queue", 64),
        ("tag_bits", 0),
        ("port_address_bits", 27),
        ("counters", 1),
        ("sram", "core"),
    ],
)
def test_bad_vaults_are_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=f"^{name} must be"):
        VaultConfig(**{name: value})


def test_refreshes_of_all_banks_must_fit():
    with pytest.raises(ConfigurationError, match="8 clocks for each of 64 banks"):
        VaultConfig(banks=64, timing=DramTiming(trfc_ns=10.0, trefi_ns=400.0))


MAPS = ("row-bank-column", "bank-row-column", "row-column-bank")
CONFIG = VaultConfig(banks=4, rows=32, row_bytes=128)


def split_address(config: VaultConfig, address: int) -> DramAddress:
    """Row, bank and column of the byte at `address`."""
    sizes = {"row": config.rows, "bank": config.banks, "column": config.row_bytes // 32}
    rest, fields = address // 32, {}
    for name in reversed(config.address_map.split("-")):
        rest, fields[name] = divmod(rest, sizes[name])
    return DramAddress(**fields)


def test_address_maps_put_neighbours_where_they_say():
    places = {name: split_address(replace(CONFIG, address_map=name), 32) for name in MAPS}
    assert places["row-bank-column"] == (0, 0, 1)
    assert places["bank-row-column"] == (0, 0, 1)
    assert places["row-column-bank"] == (0, 1, 0)
    assert split_address(CONFIG, 128) == (0, 1, 0)
    assert split_address(replace(CONFIG, address_map="bank-row-column"), 128) == (1, 0, 0)
    assert split_address(CONFIG, CONFIG.size_bytes - 1) == (31, 3, 3)


@given(st.sampled_from(MAPS), st.integers(0, CONFIG.size_bytes // 32 - 1))
def test_address_maps_can_be_undone(name, column):
    config = replace(CONFIG, address_map=name)
    assert join_address(config, split_address(config, 32 * column)) == 32 * column


def test_addresses_outside_are_refused():
    with pytest.raises(ConfigurationError, match="bank must be from 0 to 3, not 4"):
        join_address(CONFIG, split_address(CONFIG, 0)._replace(bank=4))


@pytest.mark.parametrize("name", MAPS)
def test_hardware_and_python_agree_on_addresses(simulate, rng, name):
    config = replace(CONFIG, address_map=name)
    address = Signal(config.address_bits)
    place = slice_address(config, address)
    m = Module()
    back = Signal(config.address_bits)
    m.d.comb += back.eq(join_address(config, place))

    async def bench(ctx):
        for _ in range(100):
            value = rng.randrange(config.size_bytes)
            ctx.set(address, value)
            assert tuple(ctx.get(part) for part in place) == split_address(config, value)
            assert ctx.get(back) == value & ~31

    simulate(m, bench, combinational=True)
