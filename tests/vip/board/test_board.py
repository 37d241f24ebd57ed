"""Designs and bit files of boards, and the command."""

import json
from dataclasses import replace
from subprocess import CompletedProcess

import numpy as np
import pytest
from onnx import helper

from isa.image import DramImage
from pe.interface import PeCounter
from sim_tb.cosim.board import BoardSimulation, DamagedLine
from sim_tb.cosim.machine import open_machine
from soc.board.boards import BoardError
from soc.board.serial_transport import SerialTransport
from soc.board.terminal import Terminal
from soc.generate.presets import preset
from soc.host.transport import HostError
from support.errors import VipError
from synth.errors import SynthesisError
from tests.onnx_models.graphs import model
from vip.__main__ import main
from vip.board import design as board
from vip.board import run as board_runs
from vip.board.design import board_design, build_board
from vip.board.run import run_over, simulate_board
from vip.models.compile import compile_model
from vip.trimming.models import find_work
from vip.trimming.runs import launches_alone

_DOUBLE = "mov r1, #8\nld.reg [64-bit] r2, r1\nadd r2, r2, r2\nst.reg [64-bit] r1, r2\nhalt\n"


def test_memory_is_what_the_application_needs():
    design = board_design("ulx3s-85f", find_work("fully-connected"))
    assert design.chip.tile.vault.bytes == 32 << 10
    assert (design.rate, design.divisor) == (2_000_000, 25)
    whole = board_design("ulx3s-85f", find_work("fully-connected"), whole=True, memory_kib=64)
    assert whole.chip.tile.vault.bytes == 64 << 10
    assert whole.chip.pe.instructions > design.chip.pe.instructions
    assert whole.chip.digest != design.chip.digest


@pytest.mark.parametrize(
    ("board", "memory", "message"),
    [
        ("ulx3s-85f", 50, r"^bp on ulx3s-85f: memory must be a multiple of 16 KiB from 64, which "),
        ("ulx3s-85f", 48, r"not 48 KiB$"),
        ("ulx3s-25f", 128, r"to 112, all block RAM of the device, not 128 KiB$"),
    ],
)
def test_memory_that_does_not_fit(board, memory, message):
    with pytest.raises(BoardError, match=message):
        board_design(board, find_work("bp"), memory_kib=memory)


def test_sdram_takes_the_data_that_no_block_ram_holds():
    big = _with_data(find_work("bp"), 500_000)
    design = board_design("ulx3s-85f", big, sdram=2, mhz=60.0)
    assert design.chip.vault_bytes == 1 << 19
    assert design.to_json()["sdram_clock_mhz"] == 120
    for parameters, message in (
        ({}, r"has 425,984: 74,016 too many; --sdram 1 would do$"),
        (
            {"sdram": 1, "memory_kib": 768},
            r"a power of two from 512, which its data need, to 32768",
        ),
        ({"sdram": 3}, r"^the SDRAM's clock must be 1 or 2 times the chip's, not 3$"),
    ):
        with pytest.raises(BoardError, match=message):
            board_design("ulx3s-85f", big, **parameters)
    with pytest.raises(BoardError, match=r"^colorlight-i9 has no SDRAM; there are: ulx3s-25f, "):
        board_design("colorlight-i9", big, sdram=1)
    with pytest.raises(BoardError, match=r"and the SDRAM has 33,554,432: 16,777,216 too many$"):
        board_design("ulx3s-85f", _with_data(big, 48 << 20), sdram=1)


def _with_data(work, size):
    """``work`` whose data end at ``size``."""
    work = replace(work, name="big")
    work.__dict__["jobs"] = tuple(replace(job, end=size) for job in work.jobs)
    return work


@pytest.fixture
def little_model(tmp_path, rng):
    """An ONNX file with a convolution and a matrix, and images of it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        helper.make_node("Flatten", ["a"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"], transB=1, name="gemm"),
    ]
    random = np.random.default_rng(rng.randrange(1 << 32))
    constants = {"w": random.normal(size=(4, 2, 3, 3)), "v": random.normal(size=(5, 16))}
    file = tmp_path / "little.onnx"
    file.write_bytes(model(nodes, ("n", 2, 4, 4), constants).SerializeToString())
    return file, random.normal(size=(2, 2, 4, 4)).astype(np.float32)


@pytest.fixture
def placed(monkeypatch):
    """Bit files of two placements without the tools; calls ``placed(*mhz)`` set their clocks."""

    def place(*rates):
        def bit_file(netlist, board, mhz, sdram, seed):
            return bytes([seed]), rates[seed - 1]

        monkeypatch.setattr(board, "bit_file", bit_file)
        monkeypatch.setattr(board, "board_verilog", lambda chip, **_: None)
        used = {"luts": 1000.0}
        monkeypatch.setattr(board, "map_board", lambda *_: (None, used))

    return place


def test_the_fastest_placement_is_packed(placed):
    placed(51.0, 62.5, 60.0)
    built = build_board(board_design("ulx3s-85f", find_work("bp")), seeds=3)
    assert (built.seed, built.content, built.margin) == (2, b"\2", 0.25)
    assert built.to_json()["seeds"] == {"1": 51.0, "2": 62.5, "3": 60.0}


def test_missed_timing_is_refused(placed):
    placed(45.4)
    design = board_design("ulx3s-85f", find_work("bp"))
    with pytest.raises(
        SynthesisError,
        match=r"^bp on ulx3s-85f reaches 45.4 MHz, and its clock is 50: --clock 45 would do$",
    ):
        build_board(design)
    assert build_board(replace(design, mhz=45.0)).margin > 0


def test_the_command(placed, tmp_path, capsys):
    placed(55.0)
    file, report = tmp_path / "a.bit", tmp_path / "a.json"
    arguments = ["board", "build", "ulx3s-85f", "bp", "-o", str(file), "--json", str(report)]
    assert _run(arguments) == 0
    assert file.read_bytes() == b"\1"
    assert json.loads(report.read_text())["margin"] == 0.1
    assert "a margin of 10%" in capsys.readouterr().out
    assert _run(["board", "list"]) == 0
    assert _run(["board", "run", "ulx3s-85f", "bp", "--port", str(tmp_path / "tty")]) == 2
    assert "tty: there is no such port" in capsys.readouterr().err


def _run(arguments):
    import sys

    before, sys.argv = sys.argv, ["vip", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
    finally:
        sys.argv = before
    return 0


class BadChip:
    """A host of a chip with bit ``bit`` of its memory at ``value``, and counters."""

    def __init__(self, bit=None, value=0, **counters):
        self.memory = bytearray(2048)
        self.bit, self.value = bit, value
        self.counted = {counter: counters.get(counter.name, 0) for counter in PeCounter}

    async def write(self, address, content):
        self.memory[address : address + len(content)] = content

    async def read(self, address, length):
        if self.bit is not None:
            place, bit = divmod(self.bit, 8)
            self.memory[place] = self.memory[place] & ~(1 << bit) | self.value << bit
        return bytes(self.memory[address : address + length])

    async def counters(self, pe):
        return self.counted


@pytest.mark.parametrize("value", [0, 1])
def test_a_bit_that_does_not_change_fails_the_test_of_the_memory(rng, value):
    board_runs._march(BadChip(), 2048, lambda *_, **__: None)
    bit = rng.randrange(8 * 2048)
    with pytest.raises(
        HostError, match=rf"^the memory fails its test at {bit // 32 * 4:#x}: wrote"
    ):
        board_runs._march(BadChip(bit, value), 2048, lambda *_, **__: None)


def test_lines_of_the_address_that_are_one_fail_the_test_of_the_memory():
    class Half(BadChip):
        async def write(self, address, content):
            await super().write(address % 1024, content)

        async def read(self, address, length):
            return await super().read(address % 1024, length)

    with pytest.raises(HostError, match=r"^the memory fails its test at 0x0: wrote 00000000, "):
        board_runs._march(Half(), 2048, lambda *_, **__: None)


def test_counters_have_to_add_up():
    good = BadChip(CYCLES=10, ISSUED_SCALAR=4, STALL_FETCH=6, VECTOR_BUSY=3)
    assert board_runs._counters(good, True)["vector_busy"] == 3
    assert board_runs._counters(BadChip(), False) == {}
    for chip, present in (
        (BadChip(CYCLES=10, ISSUED_SCALAR=4), True),
        (BadChip(), True),
        (good, False),
    ):
        with pytest.raises(HostError, match=r"^the engine's counters are wrong: "):
            board_runs._counters(chip, present)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("x: libusb-1.0.so.0: cannot open", r"it needs a library: apt install libusb-1.0-0 "),
        ("unable to open ftdi device: -3 (device not found)", r"there is no such board; is it "),
        ("unable to open ftdi device: -4 (usb_open() failed)", r"no permission on the USB device"),
        ("", r"failed: no message$"),
    ],
)
def test_loading_says_what_to_do(monkeypatch, tmp_path, said, message):
    started = []

    def run_tool(command, **_):
        started.append(command)
        return CompletedProcess(command, 1, said.encode())

    monkeypatch.setattr(board_runs, "run_tool", run_tool)
    with pytest.raises(BoardError, match=r"^loading ulx3s-85f failed: ") as error:
        board_runs.load_board("ulx3s-85f", tmp_path / "a.bit")
    assert error.match(message)
    assert started[0][1:] == ["--board", "ulx3s", str(tmp_path / "a.bit")]
    with pytest.raises(BoardError, match=r"^board icesugar-pro: openFPGALoader has no name for it"):
        board_runs.load_board("icesugar-pro", tmp_path / "a.bit")


@pytest.mark.slow
def test_the_test_at_the_pins_of_a_board():
    """With an engine that has counters."""
    result = simulate_board(board_design("ulx3s-25f", find_work("cnn"), whole=True), test=True)
    assert result.match
    assert result.counters["cycles"] > 100


@pytest.mark.slow
def test_bp_at_the_pins_of_a_board():
    result = simulate_board(board_design("ulx3s-85f", find_work("bp")))
    assert result.match
    assert result.values > 1000
    assert result.resent == 0
    assert result.cycles > 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sdram", "mhz"),
    [
        (lambda: find_work("cnn"), 1, 50.0),
        (lambda: find_work("cnn"), 2, 50.0),
        (lambda: find_work("bp").on(2), 2, 60.0),
    ],
)
def test_an_sdram_at_the_pins_of_a_board(make, sdram, mhz):
    """No rule of it is broken; its data follow a READ after two clocks, and after three."""
    result = simulate_board(board_design("icepi-zero", make(), sdram=sdram, mhz=mhz))
    assert result.match
    assert result.values > 900


@pytest.mark.slow
@pytest.mark.parametrize("sdram", [1, 2])
def test_the_cells_of_a_board_with_an_sdram(tmp_path, sdram):
    program = tmp_path / "double.s"
    program.write_text(_DOUBLE)
    program.with_suffix(".memory").write_bytes(bytes(range(64)))
    design = board_design("icepi-zero", find_work(str(program)), sdram=sdram)
    assert simulate_board(design, netlist=True).match


@pytest.mark.slow
def test_damaged_bytes_at_the_pins_of_a_board(rng):
    """One in a thousand, both ways; the data are written anew for each of three runs."""
    design = board_design("ulx3s-25f", find_work("cnn"))
    with BoardSimulation(design.chip, design.divisor) as simulation:
        with Terminal(simulation.terminal, design.rate) as line:
            damaged = DamagedLine(line, rng, 0.001)
            transport = SerialTransport(damaged, patience=3.0)
            results = [run_over(transport, design) for _ in range(3)]
    assert all(result.match for result in results)
    assert damaged.damage.number > 20
    assert transport.resent > 5


def test_launches_of_equal_layers_have_names_that_differ():
    launches = launches_alone(find_work("cnn").jobs, preset("pe"), 1)
    assert len({launch.name for launch in launches}) == len(launches) > 1


def test_a_program_works_on_the_memory_beside_it(tmp_path):
    """All of the memory is compared with the simulator's."""
    program, memory = tmp_path / "double.s", tmp_path / "double.memory"
    program.write_text(_DOUBLE)
    memory.write_bytes(bytes(8) + (21).to_bytes(8, "little") + b"\1")
    work = find_work(str(program))
    (job,) = work.jobs
    assert job.expected.tobytes() == bytes(8) + (42).to_bytes(8, "little") + b"\1" + bytes(7)
    design = board_design("ulx3s-25f", work)
    assert design.chip.tile.vault.bytes == 16 << 10
    assert "v.add[16]" not in design.chip.pe.instructions


def test_a_model_works_on_a_batch_at_a_time(little_model, tmp_path):
    """The trimmed engine is for all of them; a model for several engines is refused."""
    file, images = little_model
    work = find_work(str(file), calibration=images, inputs=np.repeat(images, 3, axis=0))
    assert len(work.jobs) == 3 * len(images)
    with DramImage(1 << 33) as memory, open_machine(preset("pe"), "iss") as machine:
        for job in work.jobs:
            # The first one's weights are those of all.
            job.prepare(memory)
            for launch in job.launches:
                assert not machine.run(launch, memory, engines=1).faults
            assert not job.differing(job.outputs(memory))
    with pytest.raises(VipError, match=r"--calibrate DATA is needed: images that choose"):
        find_work(str(file))
    compile_model(file, images, tmp_path / "vault")
    with pytest.raises(VipError, match=r"compiled for vault, a vault with processing engines \(4"):
        find_work(str(tmp_path / "vault"))


def test_data_that_no_block_ram_holds():
    big = _with_data(find_work("bp"), 120_000)
    with pytest.raises(
        BoardError,
        match=r"^big on colorlight-i5: its data need 120,000 bytes, and all block RAM of the "
        r"device has 114,688: 5,312 too many; ulx3s-85f or colorlight-i9 or ecpix5-85f would do$",
    ):
        board_design("colorlight-i5", big)
