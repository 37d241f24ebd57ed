"""Links between units, from a small design whose links are known, and from an engine's Verilog."""

import re

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import emit, shared_instance
from soc.generate.generate import verilog
from soc.generate.presets import design, preset
from vip.diagrams.links import DiagramError, find_links


class Adder(Component):
    """A register of the sum of its inputs."""

    def __init__(self, *, bits):
        self.bits = bits
        super().__init__({"one": In(bits), "other": In(bits), "sum": Out(bits)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.sum.eq(self.one + self.other)
        return m


class Pair(Component):
    """Two equal adders of the same inputs, and a wider one that reads one of them."""

    def __init__(self):
        super().__init__(
            {
                "given": Out(wiring.Signature({"one": Out(8), "other": Out(8)})).flip(),
                "result": Out(12),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("left", "right"):
            m.submodules[name] = shared_instance(self._adder(m, name), platform)
        wide = Adder(bits=12)
        m.submodules.wide = shared_instance(wide, platform)
        held = Signal(4)
        m.d.sync += held.eq(self.left.sum[:4] ^ self.given.one[:4])
        m.d.comb += [
            wide.one.eq(self.left.sum),
            wide.other.eq(held),
            self.result.eq(wide.sum ^ self.right.sum[:2]),
        ]
        return m

    def _adder(self, m, name):
        adder = Adder(bits=8)
        setattr(self, name, adder)
        m.d.comb += [adder.one.eq(self.given.one), adder.other.eq(self.given.other)]
        return adder


def test_bits_are_counted_at_the_reader_also_through_gates_and_registers():
    found = find_links(emit(Pair(), "pair"))
    assert found.links == {
        ("given", "left"): 16,
        ("given", "right"): 16,
        ("given", "wide"): 4,
        ("left", "wide"): 12,
        ("right", "result"): 12,
        ("wide", "result"): 12,
    }
    assert found.neighbours("wide") == {"given", "left", "result"}
    assert found.numbers == {}


def test_equal_units_are_one_block():
    found = find_links(verilog(design("vault")), "controller")
    assert found.blocks["bank"] == "bank_machine"
    assert found.numbers == {"bank": 16}


def test_an_engine_has_the_links_of_its_interfaces():
    found = find_links(verilog(preset("pe")))
    assert found.links["scratchpad", "vector"] == 128  # two operands of 64 bits
    assert found.links["operands", "decode"] == 32  # an instruction
    assert found.links["counters", "control"] == 44  # a counter's value
    ports = {name for name, module in found.blocks.items() if not module}
    assert ports == {"control", "identity", "memory"}


def test_deep_logic_between_ports_is_followed():
    found = find_links(verilog(preset("pe")), "issue")
    assert {name for name, module in found.blocks.items() if module} == {"check", "settings"}
    assert {"check", "settings", "offer"} <= {source for source, _ in found.links}


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("nosuch", "no module 'nosuch'; modules with units are: "),
        ("decode", "module decode has no units"),
    ],
)
def test_what_can_not_be_drawn(module, message):
    with pytest.raises(DiagramError, match=re.escape(message)):
        find_links(verilog(preset("pe")), module)
