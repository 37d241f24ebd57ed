"""The area model of memories against the figures that it is made from."""

import pytest

from hdl.emission import emit
from hdl.sram import Sram
from hdl.sram_macro import SramGeometry
from synth.physical.mapping import map_module
from synth.physical.targets import CELLS, GATE_EQUIVALENT_UM2, find_target, liberty_text
from synth.physical.units import EngineUnit
from synth.sram import sram_um2


@pytest.mark.parametrize(
    ("geometry", "number", "um2"),
    [
        (SramGeometry(512, 8, 3, 2), 8, 68_061),
        (SramGeometry(64, 64, 3, 1), 1, 15_079),
        (SramGeometry(1024, 32, 1, 1), 1, 16_706),
    ],
    ids=lambda value: str(value),
)
def test_memories_of_the_thesis(geometry: SramGeometry, number: int, um2: float) -> None:
    assert number * sram_um2(geometry) == pytest.approx(um2, rel=0.001)


def test_more_is_larger() -> None:
    base = SramGeometry(256, 16, 1, 1)
    for larger in (
        SramGeometry(512, 16, 1, 1),
        SramGeometry(256, 32, 1, 1),
        SramGeometry(256, 16, 2, 1),
        SramGeometry(256, 16, 1, 2),
    ):
        assert sram_um2(larger) > sram_um2(base)


def test_library_is_relative_to_the_nand_gate() -> None:
    text = liberty_text()
    assert "cell(NAND2) { area : 1.0000;" in text
    assert "cell(DFF) { area : 5.6667;" in text
    for name, (area, _) in CELLS.items():
        assert f"cell({name}) {{ area : {area / GATE_EQUIVALENT_UM2:.4f};" in text


def test_a_large_memory_is_mapped_without_the_loop_that_clears_it() -> None:
    memory = Sram(width=8, depth=1 << 17, read_ports=1, write_ports=1, kind="fpga")
    emission = emit(memory, "memory")
    mapped = map_module(
        EngineUnit("memory", (("memory", 1),)), "memory", find_target("ecp5"), emission
    )
    # 18 Kbit each, of which bytes use 16. With the loop that clears it: more than ten minutes.
    assert mapped.cells["DP16KD"] == 64
