"""Wherever an option takes an address, hexadecimal is one."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bench.harness.command import Experiments as Benches
from vip.cli.app import Commands
from vip.cli.commands.options import address

SOURCE = "mov r1, #42\nst.reg [64-bit] r5, r1\nmemfence\nhalt\n"


def commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    loader = getattr(command, "load", inner.get)
    if not inner:
        yield name, command
    for key in inner:
        yield from commands(loader(key), f"{name} {key}")


def all_commands() -> dict[str, Any]:
    vip, bench = Commands(name="vip"), Benches(name="bench")
    found = dict(commands(bench, "bench"))
    for name in vip.entries:
        if name != "bench":
            found.update(commands(vip.load(name), name))
    return found


def test_every_option_with_an_address_takes_hexadecimal():
    seen = []
    for name, command in all_commands().items():
        for parameter in command.params:
            if "ADDRESS" not in str(parameter.metavar):
                continue
            seen.append(f"{name} {parameter.opts[0]}")
            if parameter.nargs == 1:
                for text in ("0x1000", "4096"):
                    given = [parameter.opts[0], text]
                    context = command.make_context(name, given, resilient_parsing=True)
                    assert context.params[parameter.name] == 4096
    assert set(seen) == {
        "run --parameters",
        "run --dump",
        "cosim program --parameters",
        "cosim program --dump",
        "trim --parameters",
        "fit --parameters",
        "power --parameters",
        "debug --parameters",
    }


def test_run_takes_hexadecimal(vip, tmp_path):
    (tmp_path / "a.s").write_text(SOURCE)
    result = vip("run", "a.s", "--parameters", "0x1000", "--dump", "0x1000", "0x8", "out.bin")
    assert re.search(r"out.bin: 8 bytes, as 64-bit numbers:\n +0x1000 +42\n", result[1])
    assert result[0] == 0, result
    assert int.from_bytes((tmp_path / "out.bin").read_bytes(), "little") == 42


@pytest.mark.parametrize("text", ["", "0x", "-1", "0b1", "12x", f"{1 << 64}", "0x" + "f" * 5000])
def test_other_texts_are_refused(vip, tmp_path, text):
    (tmp_path / "a.s").write_text(SOURCE)
    for arguments in (("--parameters", text), ("--dump", text, "8", "out.bin")):
        code, _, err = vip("run", "a.s", *arguments)
        assert code == 2
        assert "not an address" in err
        assert len(err) < 1200
    assert not (tmp_path / "out.bin").exists()


def test_addresses_are_read_as_written():
    assert [address(text) for text in ("0", "010", "0X1f", "18446744073709551615")] == [
        0,
        10,
        31,
        (1 << 64) - 1,
    ]


@pytest.mark.parametrize("form", ["hex", "bin", "mem"])
def test_asm_writes_formats(vip, tmp_path, form):
    (tmp_path / "a.s").write_text(SOURCE)
    assert vip("asm", "a.s", "--format", form, "--json", "a.json")[0] == 0
    assert not (tmp_path / "a.vip").exists()
    content = (tmp_path / f"a.{form}").read_bytes()
    assert vip("asm", "a.s", "-o", f"named.{form}")[0] == 0
    assert (tmp_path / f"named.{form}").read_bytes() == content
    assert len(content) == 16 if form == "bin" else content.count(b"\n") >= 4
    assert json.loads((tmp_path / "a.json").read_text())["program"] == f"a.{form}"
