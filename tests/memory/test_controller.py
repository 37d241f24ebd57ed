"""The controller against a DRAM that checks every command (tests/memory/dram_stub.py)."""

import random
from dataclasses import replace
from typing import get_args

import pytest

from memory.config import PagePolicy, VaultConfig
from memory.controller.controller import Controller
from memory.timing import DramTiming
from tests.executed_lines import design_of
from tests.memory.dram_stub import ALL, Access, bandwidth, random_accesses, run_accesses

#: Small enough to be simulated quickly, with short refresh intervals so that there are many.
TIMING = DramTiming(trfc_ns=40.0, trefi_ns=400.0)
SMALL = VaultConfig(
    banks=4,
    rows=16,
    row_bytes=128,
    timing=TIMING,
    transaction_queue=8,
    command_queue=4,
    tag_bits=5,
)


def _timing(seed: int) -> DramTiming:
    """Random timing of a DRAM that could be."""
    rng = random.Random(seed)
    while True:
        try:
            return DramTiming(
                tccd_ns=rng.choice((0.8, 3.2, 5.0)),
                tcl_ns=rng.choice((0.8, 5.0, 13.75, 20.0)),
                tcwl_ns=rng.choice((1.6, 5.0, 13.75, 25.0)),
                trcd_ns=rng.choice((1.6, 13.75)),
                trp_ns=rng.choice((0.8, 13.75)),
                tras_ns=rng.choice((20.0, 27.5, 45.0)),
                twr_ns=rng.choice((0.8, 15.0)),
                trtp_ns=rng.choice((0.8, 7.5)),
                twtr_ns=rng.choice((0.0, 7.5)),
                trrd_ns=rng.choice((0.0, 5.0)),
                tfaw_ns=rng.choice((0.0, 30.0)),
                trfc_ns=rng.choice((10.0, 40.0)),
                trefi_ns=rng.choice((400.0, 600.0)),
                turnaround_clocks=rng.choice((0, 1, 4)),
            )
        except ValueError:
            continue


VARIANTS = {
    "default": SMALL,
    "closed page": replace(SMALL, page_policy="closed"),
    "adaptive page": replace(SMALL, page_policy="adaptive"),
    "in order": replace(SMALL, scheduler="in-order"),
    "timed turns": replace(SMALL, scheduler="first-ready-timed"),
    "learned": replace(SMALL, scheduler="learned"),
    "bank on top": replace(SMALL, address_map="bank-row-column"),
    "bank at the bottom": replace(SMALL, address_map="row-column-bank"),
    "two banks, narrow rows": replace(SMALL, banks=2, row_bytes=64),
    "no counters": replace(SMALL, counters=False),
    "smallest queues": replace(SMALL, transaction_queue=4, command_queue=2),
    "fpga memories": replace(SMALL, sram="fpga"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_random_accesses(simulate, rng, name):
    config = VARIANTS[name]
    accesses = random_accesses(config, rng, 110, columns=12)
    dram = run_accesses(simulate, Controller(config), accesses, rng=rng)
    kinds = {kind for _, kind, _ in dram.log}
    assert kinds == {"ACT", "READ", "WRITE", "PRE", "REFRESH"}


@pytest.mark.parametrize("seed", range(5))
def test_random_accesses_with_random_timing_and_waiting(simulate, seed):
    rng = random.Random(seed)
    config = replace(SMALL, timing=_timing(seed), page_policy=rng.choice(get_args(PagePolicy)))
    accesses = random_accesses(config, rng, 120, columns=12)
    run_accesses(
        simulate,
        Controller(config),
        accesses,
        rng=rng,
        request_rate=rng.choice((0.2, 1.0)),
        response_rate=rng.choice((0.1, 0.5, 1.0)),
    )


def test_latency_of_an_idle_vault(simulate):
    # Bank 0 refreshes at once.
    accesses = [Access(SMALL.row_bytes, words=4)]
    run_accesses(simulate, design_of(Controller, SMALL), accesses)
    last_word = accesses[0].answered - accesses[0].accepted
    assert last_word == TIMING.trcd + TIMING.tcl + 7 + 3


def test_access_beyond_the_memory_is_an_error(simulate, rng):
    config = replace(SMALL, port_address_bits=SMALL.address_bits + 2)
    size = config.size_bytes
    words = (1, 2, 3)
    accesses = [
        Access(0, True, 1, (5,), (ALL,)),
        Access(size, words=4),
        Access(3 * size + 8, True, 3, words, (ALL,) * 3),
        Access(size, True, 1, (7,), (ALL,)),
        Access(0, words=2),
        Access(size - 8, words=1),
    ]
    run_accesses(simulate, Controller(config), accesses, rng=rng)
    assert [access.error for access in accesses] == [False, True, True, True, False, False]


def test_refresh_goes_on_under_load_and_without(simulate):
    busy = [Access(32 * (n % 4), words=4) for n in range(300)]
    dram = run_accesses(simulate, design_of(Controller, SMALL), busy)
    cycles = dram.log[-1][0]
    for bank in dram.banks:
        assert bank.refreshes >= cycles // TIMING.trefi - 4


def test_sequential_reads_fill_the_bus(simulate):
    config = VaultConfig(tag_bits=7)
    accesses = [Access(32 * n, words=4) for n in range(300)]
    run_accesses(simulate, Controller(config), accesses)
    assert bandwidth(config, accesses[50:]) > 9.7
