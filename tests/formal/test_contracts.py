"""Streams stay, and memory ports answer what they were asked and nothing else, at all times."""

from collections.abc import Callable
from typing import Any

import pytest
from amaranth.hdl import Array, Mux, Signal, Value

from hdl.ports import COLUMN_BITS
from hdl.stream_buffer import StreamBuffer
from memory.axi.backend import AxiBackend
from memory.axi.layout import AxiConfig
from memory.axi.scoreboard import AxiScoreboard
from memory.config import VaultConfig
from memory.controller.request_decoder import RequestDecoder
from memory.controller.responses import Responses
from memory.fifo import Fifo
from memory.on_chip import OnChipMemory, RegisteredMemory
from memory.preload import Preload
from noc.config import NetworkConfig
from noc.crossbar import Crossbar
from noc.node.demux import Demux
from soc.host.burst import BurstWalker
from soc.host.read import HostRead
from soc.host.write import HostWrite

from .contracts import axi_rules, keeps_contracts
from .host_bursts import HOST
from .proof import Watch, proved, seeded

_VAULT = VaultConfig(
    banks=2, rows=4, row_bytes=64, transaction_queue=4, command_queue=2, tag_bits=2
)
_AXI = AxiConfig(address_bits=8, tag_bits=2, data_bits=64, outstanding=4)


def _in_its_place(dut: Any, watch: Watch) -> None:
    """The place of a node is one, and does not change."""
    watch.assume(watch.first | (dut.vault == watch.before(dut.vault)))
    watch.assume(dut.vault < dut.config.vaults)
    keeps_contracts(dut, watch)


def _on_a_bus(dut: Any, watch: Watch) -> None:
    """Also: no write is offered with an access to its column on the bus, no read with a write."""
    axi, m = dut.axi, watch.m
    columns = {
        name: Array(
            Signal(dut.config.address_bits - COLUMN_BITS, name=f"{name}_column_{number}")
            for number in range(1 << dut.config.id_bits)
        )
        for name in ("aw", "ar")
    }
    moving = {name: Signal(1 << dut.config.id_bits, name=f"{name}_moving") for name in columns}
    for name, ends in (
        ("aw", axi.bvalid & axi.bready),
        ("ar", axi.rvalid & axi.rready & axi.rlast),
    ):
        identifier, ended = getattr(axi, f"{name}id"), axi.bid if name == "aw" else axi.rid
        offered = getattr(axi, f"{name}valid")
        begins = Mux(offered, 1 << identifier, 0)
        m.d.sync += moving[name].eq((moving[name] | begins) & ~Mux(ends, 1 << ended, 0))
        with m.If(offered):
            m.d.sync += columns[name][identifier].eq(getattr(axi, f"{name}addr")[COLUMN_BITS:])
    for name, others in (("aw", ("aw", "ar")), ("ar", ("aw",))):
        column = getattr(axi, f"{name}addr")[COLUMN_BITS:]
        for other in others:
            for number, place in enumerate(columns[other]):
                itself = (getattr(axi, f"{name}id") == number) if other == name else 0
                watch.never(
                    getattr(axi, f"{name}valid")
                    & moving[other][number]
                    & (place == column)
                    & ~Value.cast(itself)[0]
                )
    watch.never(axi.awvalid & axi.arvalid & (axi.awaddr[COLUMN_BITS:] == axi.araddr[COLUMN_BITS:]))
    manager, subordinate = axi_rules(watch, dut.axi, dut.config.id_bits)
    watch.assume(subordinate)
    watch.never(~manager)
    keeps_contracts(dut, watch)


_Show = Callable[[Any, Watch], None]
#: Name -> class, what makes one of it, what is shown of it, bugs in its text, and for how many
#: cycles from the reset it is shown (None: for all times).
UNITS: dict[
    str, tuple[type, Callable[[Any], Any], _Show, tuple[tuple[str, str], ...], int | None]
] = {
    "stream buffer": (
        StreamBuffer,
        lambda kind: kind(shape=4),
        keeps_contracts,
        (("Mux(pop, level == 1, level == 0)", "Mux(pop, level == 1, 1)"),),
        None,
    ),
    "deep stream buffer": (
        StreamBuffer,
        lambda kind: kind(shape=4, depth=5),
        keeps_contracts,
        (("oldest.eq(level - 1)", "oldest.eq(0)"),),
        None,
    ),
    "fifo": (
        Fifo,
        lambda kind: kind(width=2, depth=4, sram="behavioural"),
        keeps_contracts,
        (("(stored != 0) & (~self.output.valid | self.output.ready)", "stored != 0"),),
        None,
    ),
    "responses": (
        Responses,
        lambda kind: kind(_VAULT),
        keeps_contracts,
        (("advance.eq(~self.response.valid | self.response.ready)", "advance.eq(1)"),),
        None,
    ),
    "request decoder": (
        RequestDecoder,
        lambda kind: kind(_VAULT),
        keeps_contracts,
        (
            ("with m.Elif(used):", "with m.Else():"),
            (
                "with m.If(self.transaction.valid & self.transaction.ready):",
                "with m.If(self.transaction.valid):",
            ),
        ),
        None,
    ),
    "preload": (
        Preload,
        lambda kind: kind(size=256, base=256, address_bits=9, tag_bits=1, sram="behavioural"),
        keeps_contracts,
        (
            (
                "memory.request.valid.eq(request.valid & ~inside)",
                "memory.request.valid.eq(request.valid)",
            ),
            (
                "own.port.request.valid.eq(request.valid & inside)",
                "own.port.request.valid.eq(request.valid)",
            ),
        ),
        None,
    ),
    **{
        name: (
            kind,
            lambda kind: kind(size=256, address_bits=8, tag_bits=1, sram="behavioural"),
            keeps_contracts,
            (
                ("free.eq(~valid | taken)", "free.eq(1)"),
                ("ends_beat = waiting & (~beat.write | beat.last)", "ends_beat = waiting"),
            ),
            None,
        )
        for name, kind in (
            ("on-chip memory", OnChipMemory),
            ("registered memory", RegisteredMemory),
        )
    },
    "demux": (
        Demux,
        lambda kind: kind(NetworkConfig(columns=3, rows=1, address_bits=10, tag_bits=1)),
        _in_its_place,
        (
            ("locked.eq(~(response.ready & response.payload.last))", "locked.eq(~response.ready)"),
            ("beats_left.eq(request.payload.words)", "beats_left.eq(3)"),
        ),
        None,
    ),
    "burst walker": (
        BurstWalker,
        lambda kind: kind(HOST),
        keeps_contracts,
        (
            (
                "connect(m, buffer.output, flipped(self.beat))",
                "connect(m, buffer.output, flipped(self.beat)); "
                "m.d.comb += self.beat.payload.id.eq(burst.id)",
            ),
        ),
        None,
    ),
    "host write": (
        HostWrite,
        lambda kind: kind(HOST),
        keeps_contracts,
        (
            ("request.words.eq(end - place)", "request.words.eq(end)"),
            (
                "send_ready.eq(~sending | (self.port.request.ready & request.last))",
                "send_ready.eq(1)",
            ),
        ),
        None,
    ),
    "host read": (
        HostRead,
        lambda kind: kind(HOST),
        keeps_contracts,
        (
            ("request.words.eq(high - low)", "request.words.eq(high)"),
            ("(requests.input.ready & reorder.ready)", "requests.input.ready"),
        ),
        12,
    ),
    "AXI back end": (AxiBackend, lambda kind: kind(_AXI), _on_a_bus, (), 8),
    "crossbar": (
        Crossbar,
        lambda kind: kind(requesters=2, address_bits=6, tag_bits=1),
        keeps_contracts,
        (
            ("locked.eq(~beat.last)", "locked.eq(0)"),
            ("return tag | number << self.tag_bits", "return tag"),
        ),
        7,
    ),
}
#: Those of which a proof takes less than a second of processor time.
_QUICK = ("stream buffer", "fifo", "responses")


@pytest.mark.parametrize(
    "unit",
    [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in UNITS],
)
def test_streams_stay_and_ports_keep_their_rules(unit: str) -> None:
    kind, make, show, _, cycles = UNITS[unit]
    assert proved(make(kind), show, cycles=cycles)


@pytest.mark.parametrize(
    ("unit", "bug"),
    [
        pytest.param(unit, bug, marks=() if unit == "fifo" else pytest.mark.slow)
        for unit, (_, _, _, bugs, _) in UNITS.items()
        for bug in range(len(bugs))
    ],
)
def test_a_bug_is_found(unit: str, bug: int) -> None:
    kind, make, show, bugs, cycles = UNITS[unit]
    assert not proved(make(seeded(kind, *bugs[bug])), show, cycles=cycles)


@pytest.mark.slow
def test_accesses_to_a_column_that_pass_each_other_on_the_bus_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blind = seeded(AxiScoreboard, "(column == self.column) & (write | self.write)", "write")
    monkeypatch.setattr("memory.axi.backend.AxiScoreboard", blind)
    kind, make, show, _, cycles = UNITS["AXI back end"]
    assert not proved(make(kind), show, cycles=cycles)
