"""Inputs that ``vip cosim`` rejects on a chip."""

import json

import pytest

from soc.generate.presets import chip_preset

TINY = chip_preset("tiny")


def test_options_of_other_kinds_are_refused(vip, tmp_path):
    source = tmp_path / "s.s"
    source.write_text("halt\n")
    for arguments, message in (
        (("program", source, "--latency", 9), "--latency can't be used: preset 'tiny' is a chip"),
        (("bp", "--engines", 1), "--engines can't be used: preset 'tiny' is a chip"),
        (
            ("program", source, "--dump", TINY.memory_bytes, 1, tmp_path / "d"),
            "the bytes must be within 0 to 0x400000",
        ),
    ):
        code, _, error = vip("cosim", *arguments, "--preset", "tiny")
        assert code == 2
        assert message in error
        assert error.count("\n") == 1
    code, _, error = vip("cosim", "program", source, "--preset", "pe-small", "--cocotbext-axi")
    assert code == 2
    assert "--cocotbext-axi can't be used: preset 'pe-small' is one engine" in error
    code, _, error = vip("cosim", "program", source, "--on", "iss", "--latency", 9)
    assert code == 2
    assert "--latency can't be used: the instruction set simulator's memory" in error
    code, _, error = vip("cosim", "program", source, "--preset", "vault-small", "--window", "w.vcd")
    assert code == 2
    assert "--window can't be used: preset 'vault-small' is a vault" in error


@pytest.mark.parametrize("preset", ["pe", "vault-small"])
def test_runs_on_instruction_set_simulators(vip, tmp_path, preset):
    source = tmp_path / "s.s"
    source.write_text("st.reg [64-bit] r5, r5\nmemfence\nhalt\n")
    machine = ("--preset", preset, "--on", "iss")
    arguments = ("--parameters", 4096, "--dump", 4096, 8, tmp_path / "d")
    assert vip("cosim", "program", source, *machine, *arguments)[0] == 0
    assert int.from_bytes((tmp_path / "d").read_bytes(), "little") == 4096
    grid = ("--width", 8, "--height", 6, "--labels", 4, "--iterations", 1)
    code, output, error = vip("cosim", "bp", *grid, *machine)
    assert (code, error) == (0, "")
    assert "every message equals the golden model's" in output


@pytest.mark.parametrize("on", ["iss", "model"])
def test_a_program_on_all_engines_of_a_vault(vip, tmp_path, on):
    source = tmp_path / "s.s"
    source.write_text("sll r9, r1, #3\nadd r9, r9, r5\nst.reg [64-bit] r9, r1\nmemfence\nhalt\n")
    report, dump = tmp_path / "run.json", tmp_path / "d"
    arguments = ("--on", on, "--parameters", 4096, "--dump", 4096, 16, dump, "--json", report)
    code, output, _ = vip("cosim", "program", source, "--preset", "vault-small", *arguments)
    assert code == 0
    assert "halted" in output
    assert dump.read_bytes() == (0).to_bytes(8, "little") + (1).to_bytes(8, "little")
    numbers = json.loads(report.read_text())
    assert numbers["machine"] == on
    assert numbers["faults"] == []
    assert ("vault_counters" in numbers) == (on == "model")
    source.write_text("st.reg [64-bit] r1, r1\nhalt\n")
    code, _, error = vip("cosim", "program", source, "--preset", "vault-small", "--on", on)
    assert code == 2
    assert "PE 1 (vault 0, slot 1): " in error
    assert "s:1: st.reg [64-bit] r1, r1: " in error
