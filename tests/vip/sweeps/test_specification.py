"""Specifications of sweeps: what they hold, and what is refused before anything runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from soc.generate.presets import preset, write_configuration
from vip.sweeps.kernels import SweepError
from vip.sweeps.specification import Specification, configuration, read_specification

GUIDE = Path(__file__).parents[3] / "docs" / "exploration.md"
BASE = """
[vary]
arc_entries = [4, 20]
[[kernels]]
kernel = "bp"
"""


def read(text: str, tmp_path: Path) -> Specification:
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    return read_specification(file)


def test_the_guides_example_has_240_points(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    found = read(text, tmp_path)
    assert found.size == 48
    assert len(found.kernels) == 5
    assert "vault.page_policy" in found.vary


def test_a_file_beside_it_can_be_the_design(tmp_path: Path) -> None:
    write_configuration(preset("pe-small"), tmp_path / "mine.json")
    found = read('design = "mine.json"\n' + BASE, tmp_path)
    config = configuration(found.base, {"arc_entries": 20})
    assert (config.registers, config.arc_entries) == (32, 20)  # type: ignore[union-attr]


def test_areas_of_several_targets(tmp_path: Path) -> None:
    assert read(BASE, tmp_path).targets == ("xc7",)
    assert read('target = ""\n' + BASE, tmp_path).targets == ()
    assert read('target = ["xc7", "ecp5"]\n' + BASE, tmp_path).targets == ("xc7", "ecp5")


@pytest.mark.parametrize(
    ("design", "vary"), [("vault", "pe.scratchpad_banks = [8, 16]"), ("mine.json", "max_vl = [9]")]
)
def test_the_usual_area_is_one_that_all_configurations_have(
    design: str, vary: str, tmp_path: Path
) -> None:
    """No FPGA has an engine with 16 banks."""
    write_configuration(replace(preset("pe"), scratchpad_banks=16), tmp_path / "mine.json")
    text = f'design = "{design}"\n' + BASE.replace("arc_entries = [4, 20]", vary)
    found = read(text, tmp_path)
    assert (found.targets, found.objectives) == (("generic",), ("time_us", "logic_ge"))
    assert read(f'target = "xc7"\n{text}', tmp_path).targets == ("xc7",)


def test_choices_run_on_the_verilog_where_it_says_so(tmp_path: Path) -> None:
    found = read("rtl = [{ arc_entries = 4 }]\n" + BASE, tmp_path)
    assert [found.on(choice) for choice in found.choices()] == ["rtl", "model"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[vary", "not TOML"),
        ("speed = 3\n" + BASE, "has no 'speed'; there are: design, vary"),
        ("mhz = true\n" + BASE, "mhz can't be True"),
        ("mhz = 0\n" + BASE, "mhz must be a number above 0, not 0"),
        ("mhz = inf\n" + BASE, "mhz must be a number above 0, not inf"),
        ("mhz = nan\n" + BASE, "mhz must be a number above 0, not nan"),
        ('design = "nosuch"\n' + BASE, "unknown preset 'nosuch'"),
        ('design = "tiny"\n' + BASE, "an engine or a vault, not a chip"),
        ('target = "xc9"\n' + BASE, "unknown target 'xc9'"),
        ('target = ["xc7", "xc9"]\n' + BASE, "unknown target 'xc9'"),
        ('target = ["xc7", "xc7"]\n' + BASE, "target must be a list of different names"),
        ("target = [7]\n" + BASE, "target must be a list of different names, not [7]"),
        ('design = "vault"\npower = true\n' + BASE, "power can be measured for an engine only"),
        ("power = 1\n" + BASE, "power can't be 1"),
        ("[vary]\narc_entries = [4]\n", "needs [[kernels]]"),
        ("[vary]\narc_entries = 4\n[[kernels]]\nkernel = 'bp'", "must be a list of values, not 4"),
        ("[vary]\nnosuch = [4]\n[[kernels]]\nkernel = 'bp'", "the design has no field nosuch"),
        (
            "[vary]\narc_entries = [4, 99]\n[[kernels]]\nkernel = 'bp'",
            "vary.arc_entries: no configuration allows 99: arc_entries must be",
        ),
        ("[[kernels]]\nkernel = 'fft'", "one of the kernels bp, conv, dense, not 'fft'"),
        ("[[kernels]]\nkernel = 'bp'\ndepth = 3", "kernels[0] has no 'depth'; there are: height"),
        ("[[kernels]]\nkernel = 'bp'\nwidth = 0", "kernels[0].width must be a whole number of 1"),
        ("[[kernels]]\napplication = 'doom'", "unknown application 'doom'; there are: matrix"),
        ("rtl = [{ pes = 4 }]\n" + BASE, "rtl[0] names 'pes', which does not vary"),
        ("objectives = []\n" + BASE, "objectives must be names of columns"),
        (BASE + "[search]\nmethod = 'luck'", "one of grid, random, tpe, nsga2, not 'luck'"),
        (BASE + "[search]\nmethod = 'tpe'", "configurations must be 1 or more for tpe"),
        (BASE + "[search]\nbatch = 0", "batch must be 1 or more, not 0"),
    ],
)
def test_what_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=re.escape(message)) as refused:
        read(text, tmp_path)
    assert str(refused.value).startswith(str(tmp_path / "sweep.toml"))


def test_a_grid_has_an_end(tmp_path: Path) -> None:
    values = ", ".join(map(str, range(1, 65)))
    many = "\n".join(f"{name} = [{values}]" for name in ("arc_entries", "max_vl", "max_mr"))
    with pytest.raises(SweepError, match="at most 100,000 configurations, not 262,144"):
        read(f"[vary]\n{many}\n[[kernels]]\nkernel = 'bp'", tmp_path)
