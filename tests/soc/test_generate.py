"""Generated directories: complete, reproducible, clean, and never half-written."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hdl.config import SramKind
from hdl.emission import EmissionError
from isa.table import BY_KEY
from pe.frontend.fetch import GATES_DEPTH
from soc.chip.config import ChipConfig
from soc.generate.generate import (
    MANIFEST,
    OLDER_WAIVERS,
    TWO_CLOCK_WAIVERS,
    WAIVERS,
    GenerateError,
    generate,
    waiver_file,
)
from soc.generate.presets import PRESETS, chip_preset, design, preset, tile_preset
from tests.soc.readers import (
    SLANG_WAIVERS,
    VERIBLE_WAIVERS,
    icarus_says,
    slang_says,
    verible_says,
    verilator_says,
    yosys_says,
)

KINDS: tuple[SramKind, ...] = ("behavioural", "fpga", "macro")
#: Presets that Verilator looks at for minutes, as it does so for every instance.
BIG = {name for name, config in PRESETS.items() if isinstance(config, ChipConfig)} - {"tiny"}
#: Those and seven whose modules others have: engines of vaults, vaults of chips, an engine whose
#: units others have but for the width of elements, and a vault on AXI, as its wrappers have.
SLOW = BIG | {"pe", "pe-int8", "vault", "vault-axi", "vault-int8", "vault-logistic", "vault-small"}

#: Names of warnings, of those that may be of use here, of Verilator 5.006, which Debian 12 has.
KNOWN_TO_5_006 = {
    *("CASEINCOMPLETE", "CASEOVERLAP", "CMPCONST", "DECLFILENAME", "IMPLICIT", "INITIALDLY"),
    *("LATCH", "LITENDIAN", "MULTIDRIVEN", "PINCONNECTEMPTY", "SYNCASYNCNET", "UNDRIVEN"),
    *("UNOPTFLAT", "UNSIGNED", "UNUSEDPARAM", "UNUSEDSIGNAL", "VARHIDDEN", "WIDTH"),
}

Generated = Callable[[str, SramKind], Path]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Generated:
    """The directory of a preset with a kind of memories, generated once."""
    made: dict[tuple[str, SramKind], Path] = {}

    def make(name: str, kind: SramKind) -> Path:
        if (name, kind) not in made:
            folder = tmp_path_factory.mktemp("generated") / "pe"
            generate(design(name).with_sram(kind), folder)
            made[name, kind] = folder
        return made[name, kind]

    return make


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "behavioural") for name in PRESETS if name not in SLOW),
        *(pytest.param(name, "behavioural", marks=pytest.mark.slow) for name in sorted(SLOW)),
        *(pytest.param("vault-small", kind, marks=pytest.mark.slow) for kind in ("fpga", "macro")),
        ("pe-small", "macro"),
    ],
)
def test_readers_have_no_complaint(generated: Generated, name: str, kind: SramKind) -> None:
    folder = generated(name, kind)
    assert verilator_says(folder, "-Wall", str(folder / "waivers.vlt")) == ""
    assert slang_says(folder) == ""
    assert verible_says(folder) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_yosys_and_icarus_have_no_complaint(generated: Generated, name: str) -> None:
    folder = generated(name, "behavioural")
    assert yosys_says(folder) == ""
    assert icarus_says(folder) == ""


def test_every_waiver_of_the_other_readers_is_needed(generated: Generated) -> None:
    folders = [generated(name, "behavioural") for name in ("pe-small", "vault-small")]
    said = "".join(slang_says(folder, {}) for folder in folders)
    assert set(re.findall(r"\[-W([a-z-]+)\]$", said, re.MULTILINE)) == set(SLANG_WAIVERS)
    said = "".join(verible_says(folder, {}) for folder in folders)
    assert set(re.findall(r"\[([a-z-]+)\]$", said, re.MULTILINE)) == set(VERIBLE_WAIVERS)


@pytest.mark.parametrize(
    "instructions",
    [
        {"halt"},
        {"halt", "m.v.mul.add[64]", "ld.sram[32]"},
        {"halt", "v.v.max[8]", "set.vl", "v.drain", "st.sram[16]", "memfence"},
    ],
    ids=lambda keys: " ".join(sorted(keys)),
)
def test_small_engines_are_clean_too(instructions: set[str], tmp_path: Path) -> None:
    config = replace(
        preset("pe-small"), instructions=frozenset(instructions), registers=8, counters=False
    )
    generate(config, tmp_path / "pe")
    assert verilator_says(tmp_path / "pe", "-Wall", str(tmp_path / "pe" / "waivers.vlt")) == ""


@pytest.mark.parametrize("length", [3, GATES_DEPTH + 1])
def test_narrow_engines_with_a_built_in_program_are_clean_too(length: int, tmp_path: Path) -> None:
    words = [BY_KEY["add.imm"].match | number for number in range(length - 1)]
    config = replace(
        preset("pe-small"),
        register_width=30,
        max_vl=5,
        max_mr=9,
        instruction_words=128,
        program=(*words, BY_KEY["halt"].match),
        sram="fpga",
    )
    generate(config, tmp_path / "pe")
    assert verilator_says(tmp_path / "pe", "-Wall", str(tmp_path / "pe" / "waivers.vlt")) == ""


def test_every_waiver_has_a_reason_and_is_needed(generated: Generated, tmp_path: Path) -> None:
    said = "".join(
        verilator_says(generated("pe-small", kind), "-Wall", "-Wno-fatal") for kind in KINDS
    )
    for warning, reason in (WAIVERS | OLDER_WAIVERS).items():
        # A group's warnings have longer names.
        assert f"%Warning-{warning}" in said or warning in OLDER_WAIVERS
        assert f"// {reason}\nlint_off -rule {warning} " in waiver_file()


def test_the_oldest_verilator_knows_every_waiver(generated: Generated) -> None:
    """It refuses a file with a name that it does not know. Tried with one that is installed beside
    the tests' own, if it is not older."""
    assert {*TWO_CLOCK_WAIVERS, *OLDER_WAIVERS} <= KNOWN_TO_5_006
    installed = shutil.which("verilator")
    if installed is None:
        return
    said = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
    version = re.match(r"Verilator (\d+)\.(\d+)", said.stdout)
    if version is not None and tuple(map(int, version.groups())) >= (5, 6):
        folder = generated("pe-small", "behavioural")
        command = [installed, "--lint-only", "-Wall", "waivers.vlt", "-F", "filelist.f"]
        result = subprocess.run(
            [*command, "--top", "pe"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_verilog_2005(generated: Generated, kind: SramKind) -> None:
    """Verilator can be held to the old language; Icarus Verilog reads it as that."""
    folder = generated("pe-small", kind)
    waivers = str(folder / "waivers.vlt")
    assert verilator_says(folder, "--language", "1364-2005", waivers) == ""
    assert icarus_says(folder) == ""


@pytest.mark.parametrize("kind", KINDS)
def test_yosys_reads_it(generated: Generated, kind: SramKind) -> None:
    assert yosys_says(generated("pe-small", kind)) == ""


def test_same_bytes_in_every_run(generated: Generated, tmp_path: Path) -> None:
    kind: SramKind = "macro"
    script = (
        "import sys; from dataclasses import replace; from soc.generate.generate import generate;"
        "from soc.generate.presets import preset;"
        "generate(replace(preset('pe-small'), sram=sys.argv[1]), sys.argv[2])"
    )
    first = contents(generated("pe-small", kind))
    for seed in ("1", "2"):
        folder = tmp_path / seed
        subprocess.run(
            [sys.executable, "-c", script, kind, str(folder)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
        assert contents(folder) == first


def test_directory_is_complete(tmp_path: Path) -> None:
    report = generate(replace(preset("pe-small"), sram="macro"), tmp_path / "a" / "b", top="engine")
    folder = tmp_path / "a" / "b"
    assert sorted(contents(folder)) == list(report.files)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["files"] == list(report.files)
    assert manifest["top"] == report.top == "engine"
    assert manifest["configuration"]["scratchpad_bytes"] == preset("pe-small").scratchpad_bytes
    assert "halt" in manifest["configuration"]["instructions"]
    listed = (folder / "filelist.f").read_text().splitlines()
    assert sorted(listed) == sorted(
        name for name in report.files if name.startswith(("rtl/", "models/"))
    )
    assert listed[-1] == "rtl/engine.v"
    assert report.modules[-1] == "engine"
    assert set(report.macros) == {path.stem for path in (folder / "stubs").iterdir()}
    text = "".join(path.read_text() for path in (folder / "rtl").iterdir())
    assert report.bytes == len(text.encode())
    assert report.lines == len(text.splitlines())


def test_engines_of_a_vault_are_one_module(tmp_path: Path) -> None:
    config = tile_preset("vault-small")
    report = generate(config, tmp_path / "vault")
    assert report.top == "vault_tile"
    assert len(set(report.modules)) == len(report.modules)
    text = (tmp_path / "vault" / "rtl" / "vault_tile.v").read_text()
    assert len(re.findall(r"^  pe pe_\d ", text, re.MULTILINE)) == config.pes
    manifest = json.loads((tmp_path / "vault" / MANIFEST).read_text())
    assert manifest["configuration"]["pes"] == config.pes
    assert manifest["configuration"]["vault"]["timing"]["trfc_ns"] == 81.5
    assert "halt" in manifest["configuration"]["pe"]["instructions"]


def instances(folder: Path, module: str, part: str) -> int:
    """How often ``module`` instantiates ``part``."""
    text = (folder / "rtl" / f"{module}.v").read_text()
    return len(re.findall(rf"^  {part} \w+ \($", text, re.MULTILINE))


def check_chip(folder: Path, name: str) -> None:
    """Every kind of part is one module, and the other tools read the directory too."""
    config = chip_preset(name)
    assert instances(folder, "chip", "chip_tile") == config.vaults
    assert instances(folder, "chip_tile", "pe") == config.tile.pes
    assert len(list((folder / "rtl").glob("pe*.v"))) == 1
    manifest = json.loads((folder / MANIFEST).read_text())
    assert manifest["configuration"]["network"]["columns"] == config.network.columns
    assert manifest["configuration"]["tile"]["pes"] == config.tile.pes
    assert yosys_says(folder) == ""
    assert icarus_says(folder) == ""


def test_parts_of_a_chip_are_one_module_each(generated: Generated) -> None:
    check_chip(generated("tiny", "behavioural"), "tiny")


@pytest.mark.slow
def test_thesis_is_generated_in_a_minute_and_ten_megabytes(tmp_path: Path) -> None:
    script = "from vip.cli.app import main; main()"
    arguments = ["generate", "--preset", "thesis", "-o"]
    for seed in ("1", "2"):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", script, *arguments, str(tmp_path / seed)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60
    first = contents(tmp_path / "1")
    assert first == contents(tmp_path / "2")
    assert sum(map(len, first.values())) < 10_000_000
    check_chip(tmp_path / "1", "thesis")


def test_generated_directory_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "pe"
    generate(replace(preset("pe-small"), sram="macro"), folder)
    generate(preset("pe-small"), folder)
    assert not (folder / "stubs").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["pe"]


def test_a_link_to_a_directory_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    generate(preset("pe-small"), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / MANIFEST).is_file()


def test_empty_directory_is_used(tmp_path: Path) -> None:
    generate(preset("pe-small"), tmp_path)
    assert (tmp_path / MANIFEST).is_file()


def test_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(GenerateError, match="not generated by VIP"):
        generate(preset("pe-small"), tmp_path)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_own_file_in_a_generated_directory_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "pe"
    generate(preset("pe-small"), folder)
    (folder / "rtl" / "mine.v").write_text("mine")
    with pytest.raises(GenerateError, match=r"rtl/mine\.v, which VIP did not generate"):
        generate(preset("pe"), folder)
    assert (folder / "rtl" / "mine.v").read_text() == "mine"


def test_file_in_the_way_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "pe"
    target.write_text("mine")
    with pytest.raises(GenerateError, match="not a directory"):
        generate(preset("pe-small"), target)
    with pytest.raises(GenerateError, match="can't write"):
        generate(preset("pe-small"), target / "deeper")
    assert target.read_text() == "mine"


def test_bad_top_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(EmissionError, match="not an identifier"):
        generate(preset("pe-small"), tmp_path / "pe", top="no name")
    assert list(tmp_path.iterdir()) == []
