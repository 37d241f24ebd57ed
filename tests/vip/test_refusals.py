"""Bad input, output that can't be written, and what commands show without a terminal."""

import re
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import pytest

import vip as api
from isa.faults import FaultCause
from isa.run import EngineEnd, Launch, RunResult
from pe.config import PeConfig
from sim_tb.cosim import trim_check
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.trim_check import check_trimmed, measure
from soc.generate.presets import configuration_text
from support.errors import VipError


@pytest.fixture(autouse=True)
def halt(tmp_path):
    (tmp_path / "halt.s").write_text("mov r9, #-2\nhalt\n")


def _refused(result, *words):
    code, _, err = result
    assert code == 2, err
    assert re.fullmatch(r"vip: [^\n]+\n", err)
    for word in words:
        assert word in err


@pytest.mark.parametrize("command", [("run",), ("cosim", "program")])
@pytest.mark.parametrize("parameters", [-1, 1 << 64])
def test_parameters_beyond_64_bits(vip, command, parameters):
    code, _, error = vip(*command, "halt.s", "--parameters", parameters)
    assert code == 2
    assert "--parameters" in error
    assert str(parameters) in error


def test_a_program_longer_than_the_instruction_buffer(vip, tmp_path):
    (tmp_path / "long.s").write_text("halt\n" * 1101)
    _refused(vip("run", "long.s"), "1101", "1024")
    code, _, err = vip("asm", "long.s")
    assert code == 2
    assert "longer than 1024 words" in err
    assert vip("asm", "long.s", "--max-words", "2048")[0] == 0


def test_a_proof_of_no_engine():
    with pytest.raises(VipError, match="there is no program"):
        api.prove([])


def test_a_seed_beyond_64_bits(vip):
    _refused(vip("cosim", "bp", "--seed", 1 << 64), "seed", str(1 << 64))


def test_assembly_without_instructions(vip, tmp_path):
    (tmp_path / "empty.s").write_text("; nothing\n")
    _refused(vip("asm", "empty.s"), "empty.s", "no instruction")
    assert not (tmp_path / "empty.vip").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("asm", "halt.s", "-o", "halt.vip", "--listing", "none/x"),
        ("run", "halt.s", "--json", "none/x"),
        ("run", "halt.s", "--dump", "0", "8", "none/x"),
        ("cosim", "bp", "--json", "bp.json", "--picture", "none/x"),
        ("cosim", "program", "halt.s", "--trace", "none/x"),
        ("generate", "-o", "new", "--json", "none/x"),
        ("synth", "--json", "none/x"),
        ("trim", "halt.s", "-o", "new", "--json", "none/x"),
        ("trim", "halt.s", "-o", "halt.s/none/x"),
        ("demo", "-o", "new", "--json", "none/x"),
    ],
)
def test_output_that_can_not_be_written_is_refused_before_the_work(vip, tmp_path, arguments):
    _refused(vip(*arguments), "none/x")
    assert [path.name for path in tmp_path.iterdir()] == ["halt.s"]


@pytest.mark.parametrize("command", [("run",), ("cosim", "program")])
def test_dump_outside_the_memory_is_refused_before_the_run(vip, command):
    where = ("--dump", (1 << 33) - 4, 8, "out.bin")
    _refused(vip(*command, "halt.s", *where), "--dump", "0x200000000")


def test_run_uses_the_preset(vip, tmp_path):
    # The small engine's memory ends at 16 MiB, the thesis's at 8 GiB; r63 is none of its registers.
    (tmp_path / "far.s").write_text("li r9, #0x1fffffff8\nst.reg [64-bit] r9, r9\nhalt\n")
    assert vip("run", "far.s")[0] == 0
    _refused(vip("run", "far.s", "--preset", "pe-small"), "far.s:2", "0xffffff")
    (tmp_path / "high.s").write_text("mov r63, #1\nhalt\n")
    assert vip("run", "high.s")[0] == 0
    _refused(vip("run", "high.s", "--preset", "pe-small"), "high.s:1", "no r63")


def test_run_shows_the_end_and_the_registers(vip):
    code, out, err = vip("run", "halt.s")
    assert code == 0
    assert err == ""
    assert "halt.s: halted, 2 instructions" in out
    assert re.search(r"r9 .*0xfffffffffffffffe .*-2", out)
    assert not re.search(r"\br10\b", out)


def test_the_assembler_starts_without_the_hardware():
    script = (
        "import sys; from vip.cli.app import app\n"
        "import vip.cli.commands.assembly\n"
        "print(sorted({'amaranth', 'numpy', 'cocotb', 'skimage'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def _result(**changes):
    values = {
        "state": "halted",
        "cause": FaultCause.NONE,
        "pc": 0,
        "cycles": 5,
        "elapsed_cycles": 9,
        "counters": {"CYCLES": 5},
        "registers": [0] * 64,
        "scratchpad": b"",
    }
    end = EngineEnd(**{**values, **changes})
    return RunResult(engines=(end,), simulated_cycles=9, seconds=1.0)


@pytest.fixture
def engines(monkeypatch):
    """``engines(full, trimmed)``: what the next comparison's engines leave."""

    def install(*results):
        left = list(results)

        class Simulation:
            def __init__(self, config, *, watched=False, ports_only=False):
                self.config = config

            def __enter__(self):
                return self

            def __exit__(self, *_):
                pass

            def run(self, launch, image, *, memory, progress):
                return left.pop(0)

            def run_many(self, jobs):
                return iter(())

        monkeypatch.setattr(trim_check, "PeSimulation", Simulation)

    return install


def test_a_faulting_program_proves_nothing(engines):
    config = PeConfig()
    faulted = {"state": "faulted", "cause": FaultCause.DRAM_RANGE}
    work = SimpleNamespace(words=(0,))
    engines(_result(**faulted, pc=3, fault="word 3 is outside"))
    with pytest.raises(CosimError, match="faults on the full engine: word 3 is outside"):
        measure(Launch(program=work), b"", config, watched=False)
    engines(_result())
    full = measure(Launch(program=work), b"", config, watched=False)
    engines(_result(**faulted, pc=3))
    assert check_trimmed(full, config, config).different == ("end",)


@pytest.mark.parametrize(("banks", "different"), [(8, ("cycles",)), (16, ())])
def test_fewer_cycles_differ_unless_ports_are_shared(engines, banks, different):
    config = PeConfig(scratchpad_banks=banks)
    launch = Launch(program=SimpleNamespace(words=(0,)))
    engines(_result(), _result(cycles=4))
    full = measure(launch, b"", config, watched=False)
    assert check_trimmed(full, config, config, try_removed=False).different == different


def test_a_memory_of_zeros_is_told(engines):
    launch = Launch(program=SimpleNamespace(words=(0,)))
    for contents, zeros in ((bytes(9), True), (b"\0\1", False)):
        engines(_result())
        assert measure(launch, contents, PeConfig(), watched=False).zero_memory is zeros


@pytest.mark.parametrize("option", ["--pipeline", "--trace"])
def test_engines_without_counters_are_not_followed(vip, tmp_path, monkeypatch, option):
    (tmp_path / "bare.json").write_text(configuration_text(PeConfig(counters=False)))
    monkeypatch.setattr("vip.cosimulation.program.open_machine", None)
    result = vip("cosim", "program", "halt.s", "--config", "bare.json", option, "events.json")
    _refused(result, "events.json: following instructions needs counters")


def test_versions_need_no_rooms(vip):
    assert vip("--version")[:2] == (0, f"vip {version('vip-inference')}\n")
    assert vip("nosuch")[0] == 2


def test_kernels_that_are_not_measured(vip):
    _refused(vip("bench", "kernels", "--only", "conv9_9"), "conv9_9", "bp_m", "conv1_1", "fc8")
    _refused(vip("bench", "kernels", "--json", "none/x"), "none")
    _refused(vip("bench", "digits", "--preset", "vault"), "vault", "one engine is needed")


@pytest.mark.parametrize(
    "command",
    [
        ("synth", "--device", "ecp5-25k"),
        ("synth", "--target", "generic", "--device", "ecp5-25k"),
        ("bench", "trim", "--only", "bp"),
    ],
)
def test_an_address_of_no_scheduler_before_anything_runs(vip, monkeypatch, command):
    for name in ("vip.synthesis.area.synthesise", "vip.synthesis.area.place"):
        monkeypatch.setattr(name, None)
    monkeypatch.setattr("vip.trimming.suite.choose", None)
    _refused(vip(*command, "--scheduler", "nowhere"), "'nowhere' is not the address of a scheduler")


def test_a_scheduler_without_a_placement(vip):
    address = ("--scheduler", "tcp://127.0.0.1:1")
    _refused(vip("synth", "--target", "generic", *address), "no target is a device", "ecp5-25k")


LINE = "sig.s:2: v.sigmoid [16-bit] r1, r1: this engine is built without v.sigmoid[16]; the preset"


@pytest.mark.parametrize(
    "command",
    [
        ("run",),
        ("run", "--compiled"),
        ("debug", "--script", "go"),
        ("cosim", "program", "--on", "iss"),
        ("cosim", "program", "--on", "model"),
        ("cosim", "program", "--on", "model", "--no-compare"),
        ("cosim", "program", "--on", "model", "--preset", "vault"),
    ],
)
def test_a_fault_is_told_in_the_same_words(vip, tmp_path, command):
    (tmp_path / "sig.s").write_text("mov r1, #8\nv.sigmoid [16-bit] r1, r1\nhalt\n")
    (tmp_path / "go").write_text("continue\n")
    code, _, error = vip(*command, "sig.s", "--json", "run.json")
    assert code == (0 if command[0] == "debug" else 2)
    vault = "vault" in command
    assert f"{LINE} {'vault' if vault else 'pe'}-logistic has it" in error
    assert error.count("\n") == 1
    assert LINE in (tmp_path / "run.json").read_text()


def test_python_tells_the_fault_too():
    program = api.assemble("ld.reg [64-bit] r9, r4\nhalt")
    line = "<assembly>:1: ld.reg [64-bit] r9, r4: address 0x1 (r4) is not a multiple of 8"
    assert api.run(program).outcome.fault == line
    assert api.cosim(program, on="model").result.engine.fault == line
    assert api.debug(program).resume().fault == line
