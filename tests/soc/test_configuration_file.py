"""Configurations as JSON: what is written is read back, and what can't be is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hdl.config import ConfigurationError
from memory.timing import DramTiming
from soc.generate.generate import MANIFEST, generate
from soc.generate.presets import (
    PRESETS,
    chip_preset,
    configuration_json,
    configuration_of,
    engine,
    preset,
    read_about,
    read_configuration,
    write_configuration,
)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_read_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    write_configuration(PRESETS[name], path)
    assert read_configuration(path) == PRESETS[name]


def test_values_that_are_no_preset(tmp_path: Path) -> None:
    chip = chip_preset("tiny")
    vault = replace(chip.tile.dram, timing=DramTiming(tcl_ns=15.0), transaction_queue=16)
    changed = replace(chip, tile=replace(chip.tile, vault=vault))
    write_configuration(changed, tmp_path / "chip.json")
    assert read_configuration(tmp_path / "chip.json") == changed
    baked = replace(preset("pe-small"), program=(5, 1 << 31), instructions=frozenset({"halt"}))
    write_configuration(baked, tmp_path / "pe.json")
    assert read_configuration(tmp_path / "pe.json") == baked


def test_manifest_of_a_generated_directory(tmp_path: Path) -> None:
    config = replace(preset("pe-small"), instructions=frozenset({"halt"}))
    generate(config, tmp_path / "pe")
    assert read_configuration(tmp_path / "pe" / MANIFEST) == config


def test_what_is_left_out_has_its_default() -> None:
    assert configuration_of({}) == PRESETS["thesis"]
    assert configuration_of({"registers": 32}) == replace(preset("pe"), registers=32)
    raw = configuration_json(chip_preset("tiny"))
    del raw["axi_id_bits"]
    assert configuration_of(raw) == chip_preset("tiny")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tile": 3}, r"^tile must be an object, not 3$"),
        (
            {"colour": "red"},
            r"^a configuration has no field 'colour'; there are: axi_id_bits, host_d",
        ),
        ({"axi_id_bits": 99}, r"^axi_id_bits must be a whole number from 1 to 16, not 99$"),
        ({"axi_id_bits": True}, r"^axi_id_bits can't be true$"),
        ({"network": {"columns": 3, "hue": 1}}, r"^network has no field 'hue'; there are: add"),
        ({"network": {"columns": 99}}, r"^network: columns must be a whole number from 1 to 16"),
        ({"tile": {"pe": {"arc_entries": True}}}, r"^tile\.pe\.arc_entries can't be true$"),
        ({"tile": {"pe": {"instructions": [[]]}}}, r"^tile\.pe\.instructions must be a list of pl"),
        ({"tile": {"pe": {"instructions": ["x", "halt"]}}}, r"^tile\.pe: instructions: 'x' is"),
        ({"tile": {"pe": {"program": [1.5]}}}, r"^tile\.pe: word 0 of program must be"),
        ({"tile": {"vault": {"data_bits": 7}}}, r"^tile\.vault: data_bits must be one of 64, 128"),
        ({"tile": {"vault": {"banks": "a"}}}, r"^tile\.vault: banks must be a power of two"),
    ],
)
def test_what_can_not_be_is_refused(change: dict[str, object], message: str) -> None:
    raw = {**configuration_json(chip_preset("fpga")), **change}
    with pytest.raises(ConfigurationError, match=message):
        configuration_of(raw)


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", '"x"', "\x00", "[" * 100_000])
def test_files_without_a_configuration(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"bad\.json: ") as refusal:
        read_configuration(path)
    assert "\n" not in str(refusal.value)


def test_manifest_without_configuration(tmp_path: Path) -> None:
    path = tmp_path / MANIFEST
    path.write_text(json.dumps({"generator": "vip"}))
    with pytest.raises(ConfigurationError, match="must be an object, not None"):
        read_configuration(path)


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    write_configuration(PRESETS["vault"], tmp_path / "v.json")
    with pytest.raises(
        ConfigurationError, match=r"v\.json: one engine is needed here, not a vault"
    ):
        engine(tmp_path / "v.json")


@pytest.mark.parametrize("about", [3, ["a"], "two\nlines", "\x1b[31m"])
def test_what_a_design_is_for_is_a_line(about: object, tmp_path: Path) -> None:
    path = tmp_path / MANIFEST
    path.write_text(json.dumps({"generator": "vip", "about": about}))
    with pytest.raises(ConfigurationError, match="about must be a line of text"):
        read_about(path)
