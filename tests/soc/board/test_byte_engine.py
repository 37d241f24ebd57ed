"""An engine behind bytes, in the project of Tiny Tapeout, beside the engine with its own ports."""

from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Array, Cat, ClockSignal, Instance, Module, Mux, ResetSignal, Signal
from amaranth.lib.wiring import Out

import vip
from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import emit
from hdl.ports import MemoryPort
from isa.image import DramImage
from isa.run import Launch
from pe.config import PeConfig
from pe.interface import ControlPort, IdentityPort, PeState
from sim_tb.cosim.engine import PeSimulation
from soc.board.byte_engine import ByteEngine
from soc.generate.exports.exported import ExportError
from soc.generate.generate import generate
from soc.generate.presets import preset
from tests.examples.test_bp_tile import DUMP, SOURCE, check_messages, contents
from tests.synth.trimming import trim
from vip.programs import load_program


class Outside(Component):
    """What is around the project's pins, with the ports of the engine."""

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        memory = MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
        control, identity = ControlPort(config), IdentityPort()
        super().__init__(
            {"memory": Out(memory), "control": Out(control), "identity": Out(identity)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pins, sent, received = Signal(8), Signal(8), Signal(8)
        valid, ready, launch = Signal(), Signal(), Signal()
        state = Signal(PeState)
        ins = Cat(valid, 0, 0, ready, launch, 0, 0, 0)
        m.submodules.project = Instance(
            "tt_um_vip",
            i_clk=ClockSignal(), i_rst_n=~ResetSignal(), i_ena=1, i_ui_in=received,
            o_uo_out=sent, i_uio_in=ins, o_uio_out=pins,
        )  # fmt: skip
        control: Any = self.control
        m.d.comb += [
            state.eq(pins[5:7]),
            control.status.state.eq(state),
            control.load.ready.eq(state != PeState.RUNNING),
            control.launch.ready.eq(state != PeState.RUNNING),
            launch.eq(control.launch.valid & control.launch.ready),
        ]
        written = Signal(16)
        self._requests(m, sent, pins[2], ready, written)
        self._responses(m, received, valid, pins[1], written)
        return m

    def _requests(self, m: Module, sent: Any, valid: Any, ready: Any, written: Any) -> None:
        request: Any = self.memory.request
        length = (self.config.address_bits + 7) // 8
        whole = [Signal(8, name=f"byte{place}") for place in range(10 + length)]
        place, done = Signal(5), Signal()
        write = Mux(place == 0, sent[6], whole[0][6])
        first, data = whole[0], Cat(*whole[2 + length :])
        m.d.comb += [
            ready.eq(~done),
            request.valid.eq(done),
            request.payload.tag.eq(first),
            request.payload.words.eq(first[4:]),
            request.payload.write.eq(first[6]),
            request.payload.last.eq(first[7]),
            request.payload.address.eq(Cat(*whole[1 : 1 + length])),
            request.payload.strobe.eq(Mux(first[6], whole[1 + length], 0xFF)),
            request.payload.data.eq(data),
        ]
        with m.If(valid & ready):
            m.d.sync += [Array(whole)[place].eq(sent), place.eq(place + 1)]
            with m.If(place == Mux(write, 9 + length, length)):
                m.d.sync += [place.eq(0), done.eq(1)]
        with m.If(request.valid & request.ready):
            m.d.sync += [done.eq(0), written.bit_select(first[:4], 1).eq(first[6])]

    def _responses(self, m: Module, received: Any, valid: Any, ready: Any, written: Any) -> None:
        response: Any = self.memory.response
        payload, place = response.payload, Signal(4)
        wrote = written.bit_select(payload.tag, 1)
        first = Cat(payload.tag, *[0] * (4 - len(payload.tag)), payload.last, payload.error, ~wrote)
        rest = [payload.data[low : low + 8] for low in range(0, 64, 8)]
        ends = place == Mux(wrote, 0, 8)
        m.d.comb += [
            valid.eq(response.valid),
            received.eq(Array([first, *rest])[place]),
            response.ready.eq(ready & ends),
        ]
        with m.If(valid & ready):
            m.d.sync += place.eq(Mux(ends, 0, place + 1))


def test_other_engines_are_refused(tmp_path: Any) -> None:
    for engine, message in (
        (preset("pe-small"), r"has its program in a ROM \(vip trim --rom\)"),
        (replace(preset("pe"), program=(0,)), "load_store_queue of at most 16, not 64"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            ByteEngine(engine)
    with pytest.raises(ConfigurationError, match="has its program in a ROM"):
        generate(preset("pe-small"), tmp_path / "project", tool="tinytapeout")
    with pytest.raises(ExportError, match="is one engine"):
        vip.generate("vault-small", tmp_path / "project", tool="tinytapeout")
    assert not (tmp_path / "project").exists()


@pytest.mark.slow
def test_its_project_does_as_the_engine(tmp_path: Any) -> None:
    program = load_program(SOURCE)
    trimmed = trim(program, preset("pe-small"), rom=True)
    engine = replace(trimmed, arc_entries=1, load_store_queue=2, sram="macro")
    generate(replace(engine, sram="behavioural"), tmp_path / "project", tool="tinytapeout")
    project = (tmp_path / "project/src/vip_bytes.v").read_text()
    # The simulator's engine is called pe.
    for before, after in (("module pe(", "module inner("), ("  pe engine (", "  inner engine (")):
        assert project.count(before) == 1
        project = project.replace(before, after)
    project += (tmp_path / "project/src/tt_um_vip.v").read_text()
    text = project + "".join(emit(Outside(engine), "pe").modules.values())
    memory = contents()
    with PeSimulation(engine, netlist=text) as simulation, DramImage(len(memory)) as image:
        image.write(0, memory)
        result = simulation.run(Launch(program=program, max_cycles=10**7), image)
        (engine_end,) = result.engines
        assert engine_end.state == "halted"
        check_messages(bytes(image.read(DUMP.address, DUMP.size)))
