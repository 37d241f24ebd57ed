"""Inputs that ``vip cosim`` rejects on a chip."""

from soc.generate.presets import chip_preset

TINY = chip_preset("tiny")


def test_options_of_other_kinds_are_refused(vip, tmp_path):
    source = tmp_path / "s.s"
    source.write_text("halt\n")
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
