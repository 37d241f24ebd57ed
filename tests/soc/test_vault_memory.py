"""Crossbar and controller together, before a DRAM of the right timing."""

import pytest

from hdl.config import ConfigurationError
from hdl.emission import emit
from memory.config import VaultConfig
from memory.controller.counters import LAG_CYCLES, VaultCounter
from memory.line_buffer.layout import LineCounter
from soc.tile.vault_memory import VaultMemory


def test_tags_of_requesters_and_controller_match():
    vault = VaultMemory(config=VaultConfig(tag_bits=9), requesters=6)
    assert vault.tag_bits == 6
    assert len(vault.ports) == 6
    assert vault.ports[0].request.payload.shape()["tag"].width == 6
    assert VaultMemory(config=VaultConfig(tag_bits=9), requesters=1).tag_bits == 9


@pytest.mark.parametrize(
    ("tag_bits", "requesters", "message"),
    [
        (9, 0, "1 to 16 requesters, not 0"),
        (9, 17, "1 to 16 requesters, not 17"),
        (3, 5, "tag_bits must be at least 4 for 5 requesters, not 3"),
    ],
)
def test_what_can_not_be_built_is_refused(tag_bits, requesters, message):
    with pytest.raises(ConfigurationError, match=message):
        VaultMemory(config=VaultConfig(tag_bits=tag_bits), requesters=requesters)


def test_vault_is_emitted_with_each_part_once():
    config = VaultConfig(banks=4, rows=16, row_bytes=64, transaction_queue=4, command_queue=2)
    emission = emit(VaultMemory(config=config, requesters=3), "vault_memory")
    assert emission.classes["vault_memory"] == "soc.tile.vault_memory.VaultMemory"
    names = list(emission.classes.values())
    for part in (
        "noc.crossbar.Crossbar",
        "memory.controller.controller.Controller",
        "memory.controller.bank_machine.BankMachine",
    ):
        assert names.count(part) == 1


def test_counters_of_dram_and_line_buffer_have_their_own_indices(simulate):
    """Of a vault without accesses only the cycles count."""
    config = VaultConfig(banks=2, rows=4, row_bytes=64, transaction_queue=4, command_queue=2)
    dut = VaultMemory(config=config, requesters=1, line_buffer=8)

    async def bench(ctx):
        await ctx.tick().repeat(3 * LAG_CYCLES)
        for counter in LineCounter:
            ctx.set(dut.counter_index, counter)
            await ctx.tick()
            assert ctx.get(dut.counter_value) == 0
        ctx.set(dut.counter_index, VaultCounter.CYCLES)
        await ctx.tick()
        assert LAG_CYCLES < ctx.get(dut.counter_value) < 4 * LAG_CYCLES

    simulate(dut, bench)
