"""``vip cosim`` on a chip."""

import json

from soc.presets import chip_preset

TINY = chip_preset("tiny")
VAULT = 1 << TINY.network.address_bits

STORE = f"""
    sll r8, r2, #{TINY.network.address_bits}
    add r8, r8, r5
    ld.reg [64-bit] r9, r8
    add r9, r9, r1
    st.reg [64-bit] r8, r9
    halt
"""


def test_a_program_of_all_engines(vip, tmp_path):
    source, memory, dump, report = (tmp_path / name for name in ("s.s", "m", "d", "r.json"))
    source.write_text(STORE)
    memory.write_bytes(bytes(64) + (7).to_bytes(8, "little"))
    code, out, _ = vip(
        *("cosim", "program", source, "--preset", "tiny", "--parameters", 64),
        *("--memory", memory, "--dump", 3 * VAULT + 64, 8, dump, "--json", report),
    )
    assert code == 0
    assert "halted" in out
    assert int.from_bytes(dump.read_bytes(), "little") == 3
    results = json.loads(report.read_text())["results"]
    assert results["faults"] == []
    assert len(results["counters"]) == TINY.pes


def test_options_of_other_kinds_are_refused(vip, tmp_path):
    source = tmp_path / "s.s"
    source.write_text(STORE)
    for arguments, message in (
        (("program", source, "--latency", 9), "--latency can't be used: preset 'tiny' is a chip"),
        (("bp", "--pes", 1), "--pes can't be used: preset 'tiny' is a chip"),
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
    code, _, error = vip("cosim", "program", source, "--preset", "vault-small")
    assert code == 2
    assert "a vault; one engine is needed here" in error
