"""A chip of engines with windows of their vaults, on AXI memories: one program, data for each."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.run import Launch
from memory.axi.layout import AxiConfig
from noc.node.counters import NetworkCounter
from sim_tb.cosim.chip import ChipSimulation, run_launch
from sim_tb.cosim.chip_copies import run_copies
from sim_tb.cosim.engine import CosimError
from soc.chip.config import ChipConfig
from soc.generate.generate import verilog
from soc.generate.presets import chip_preset
from soc.host.driver import Host
from soc.host.transport import Blocking, BusError, run
from tests.small_engine import only

_TINY = chip_preset("tiny")
WINDOW = 1 << 12
VAULT = 1 << 14
#: Moves 300 bytes within the window, unaligned, and adds the start registers r1 to r4 to a word; if
#: that word was equal to r5, then reads beyond the window's end.
PROGRAM = assemble("""
    mov r9, #0
    mov r10, #261
    mov r11, #300
    mov r12, #2051
    ld.sram [8-bit] r9, r10, r11
    st.sram [8-bit] r12, r9, r11
    ld.reg [64-bit] r13, r0
    add r16, r1, r2
    add r16, r16, r3
    add r16, r16, r4
    add r17, r13, r16
    st.reg [64-bit] r0, r17
    memfence
    mov r14, #1
    sll r14, r14, #12
    bne r13, r5, end
    ld.reg [64-bit] r15, r14
end:
    halt
""")

DOUBLE = assemble("""
    ld.reg [64-bit] r9, r5
    add r9, r9, r9
    st.reg [64-bit] r5, r9
    halt
""")
#: Of engines with as many tags as their ports, which answer at once.
PLAIN = replace(
    _TINY,
    remote=False,
    tile=replace(
        _TINY.tile,
        pe=only(replace(_TINY.tile.pe, address_bits=12), PROGRAM, DOUBLE),
        vault=AxiConfig(address_bits=14, tag_bits=6, data_bits=64, outstanding=8),
        pes=3,
        extra_ports=1,
    ),
    network=replace(_TINY.network, columns=3, rows=1, address_bits=14),
)
#: Of engines with fewer.
CONFIG = replace(
    PLAIN,
    tile=replace(PLAIN.tile, pe=replace(PLAIN.tile.pe, load_store_queue=2), buffered=True),
)
WINDOWS = [vault * VAULT + slot * WINDOW for vault in range(3) for slot in range(3)]


@pytest.fixture(scope="module")
def chip() -> Iterator[ChipSimulation]:
    with DramImage(CONFIG.memory_bytes) as image, ChipSimulation(CONFIG, image) as simulation:
        yield simulation


def test_each_engine_works_in_its_window_alone(chip: ChipSimulation) -> None:
    host = Host(Blocking(chip))
    before = {window: bytes((window // 7 + 3 * i) % 251 for i in range(300)) for window in WINDOWS}
    for number, (window, content) in enumerate(before.items()):
        run(host.write(window + 261, content))
        run(host.write(window, number.to_bytes(8, "little")))
    (fault,) = run_launch(chip, Launch(program=PROGRAM, max_cycles=20_000, parameters=4)).faults
    assert (fault.pe, fault.cause, fault.pc) == (4, FaultCause.DRAM_RANGE, 16)
    chip.settle()
    for number, (window, content) in enumerate(before.items()):
        assert run(host.read(window + 2048, 306)) == bytes(3) + content + bytes(3)
        assert chip.image.read(window, 8) == (number + 1).to_bytes(8, "little")
        assert chip.image.read(window + 2500, WINDOW - 2500) == bytes(WINDOW - 2500)


def test_host_reaches_all_vaults_and_no_more(chip: ChipSimulation) -> None:
    host = Host(Blocking(chip))
    content = bytes(range(251)) * 30
    for address in (VAULT - 4001, 2 * VAULT - 3, 3 * VAULT - len(content)):
        run(host.write(address, content))
        assert run(host.read(address, len(content))) == content
    chip.settle()
    assert chip.image.read(3 * VAULT - len(content), len(content)) == content
    with pytest.raises(BusError, match="DECERR"):
        chip.read_memory(3 * VAULT, 8)
    run(host.load(PROGRAM))
    with pytest.raises(BusError):
        # No engine's parameter block lies beyond its window.
        run(host.launch(parameters=WINDOW))


def test_hardware_has_no_network() -> None:
    instances = verilog(CONFIG).instances["chip_tile"]
    assert "node" not in instances
    assert instances["host_chain"] == 1
    assert CONFIG.host.network_counters == 0
    assert CONFIG.pe.address_bits == 12
    assert ChipConfig().host.network_counters == len(NetworkCounter)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"remote": 1}, r"^remote must be True or False, not 1$"),
        ({"remote": True}, r"^tile\.extra_ports must be 2, for the host and the network, not 1$"),
        (
            {
                "remote": True,
                "tile": replace(
                    CONFIG.tile,
                    extra_ports=2,
                    vault=replace(CONFIG.tile.vault, tag_bits=7),
                ),
            },
            r"^tile\.pe\.address_bits must be 14, as tile\.vault has, not 12: engines with windows",
        ),
        (
            {
                "tile": replace(
                    CONFIG.tile, extra_ports=2, vault=replace(CONFIG.tile.vault, tag_bits=7)
                )
            },
            r"^tile\.extra_ports must be 1, for the host, not 2$",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        replace(CONFIG, **changes)  # type: ignore[arg-type]


def double(value: int, parameters: int = 64) -> tuple[Launch, bytes]:
    launch = Launch(program=DOUBLE, parameters=parameters, max_cycles=10_000)
    return launch, bytes(64) + value.to_bytes(8, "little")


def test_copies_of_launches_are_held_against_the_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, differing = run_copies(CONFIG, [double(7)])
    assert not differing
    two, differing = run_copies(CONFIG, [double(7), double(8)])
    assert not differing
    assert 0.9 < two / one / 2 < 1.1
    late, differing = run_copies(CONFIG, [double(7)], axi_latency=200)
    assert not differing
    assert late > one + 150

    def spoil(chip: ChipSimulation) -> None:
        chip.image.write(WINDOWS[5] + 4000, b"\1")

    monkeypatch.setattr(ChipSimulation, "settle", spoil)
    assert run_copies(CONFIG, [double(7)])[1] == (5,)


def test_what_is_around_engines_with_fewer_tags_is_the_same() -> None:
    assert (CONFIG.pe.tag_bits, CONFIG.tile.port_tag_bits) == (1, 4)
    known = replace(PLAIN, tile=replace(PLAIN.tile, buffered=True))
    for module in ("vault_memory", "host_chain", "tile_control", "host_control", "host_data"):
        texts = {re.sub("//.*", "", verilog(one).modules[module]) for one in (known, CONFIG)}
        assert len(texts) == 1


@pytest.mark.slow
def test_engines_with_as_many_tags_as_their_ports() -> None:
    assert run_copies(PLAIN, [double(7)])[1] == ()


def test_copies_that_can_not_be_run() -> None:
    with pytest.raises(CosimError, match="copies need engines with windows"):
        run_copies(_TINY, [double(7)])
    with pytest.raises(CosimError, match="4097 bytes of data for windows of 4096 bytes"):
        run_copies(CONFIG, [(double(7)[0], bytes(4097))])
    with pytest.raises(CosimError, match=r"does not halt: .*:2: ld\.reg "):
        run_copies(CONFIG, [double(7, parameters=4096)])
