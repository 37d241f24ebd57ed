"""A file system for temporary files that is full while a simulator writes its memory."""

import tempfile
from pathlib import Path

import pytest

from isa.image import DramImage
from sim_tb.dut.engine import engine_design
from sim_tb.runner.build import build
from soc.generate.presets import preset

#: Stores a word into each of 1,024 pages of 4 KiB.
PAGES = """
    mov r1, #0
    mov r2, #4096
    mov r3, #1024
    mov r4, #0
again:
    st.reg [64-bit] r1, r2
    add r1, r1, r2
    add r4, r4, #1
    bne r4, r3, again
    memfence
    halt
"""


def test_a_simulation_ends_with_a_line(
    vip, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What building the simulator takes has more room.
    build(engine_design(preset("pe")))
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    (tmp_path / "pages.s").write_text(PAGES)
    code, _, err = vip("cosim", "program", "pages.s")
    assert code == 2
    last = err.splitlines()[-1]
    assert last == (
        f"vip: simulator failed: no space is left for the simulated memory in {small}; TMPDIR can "
        "name another folder"
    )
    assert not [line for line in err.splitlines()[:-1] if "compiling" not in line]
    assert list(small.iterdir()) == []
    with DramImage(1 << 20) as image:
        assert image.path.is_relative_to(small)
