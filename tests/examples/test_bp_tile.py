"""The engine of a very small chip: trimmed to a program in ROM, with memories of flip-flops."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vip
from microkernels.bp.golden import iterate
from microkernels.bp.problem import MessageDirection
from microkernels.data.stereo import motorcycle
from soc.generate.presets import preset
from synth.physical import asic
from synth.physical.targets import find_cells
from tests.synth.trimming import trim
from tests.synth.twenty_cells import twenty_cells
from vip.programs import load_program

SOURCE = Path(__file__).parents[2] / "examples/bp_tile.s"
SIDE, LABELS, ITERATIONS = 8, 4, 2
PROBLEM = motorcycle(SIDE, SIDE, LABELS).problem
MATRIX = PROBLEM.smoothness.astype("<i2").tobytes()
#: Vectors of a pixel: four messages and, in the middle, the data costs.
VECTORS, COSTS = 5, 2
PLACES = {
    MessageDirection.UP: 0,
    MessageDirection.DOWN: 1,
    MessageDirection.LEFT: 3,
    MessageDirection.RIGHT: 4,
}
DUMP = vip.Dump(len(MATRIX), SIDE * SIDE * VECTORS * LABELS * 2)


def contents() -> bytes:
    """The memory before the program."""
    pixels = np.zeros((SIDE, SIDE, VECTORS, LABELS), "<i2")
    pixels[:, :, COSTS] = PROBLEM.data_costs
    return MATRIX + pixels.tobytes()


def check_messages(dumped: bytes) -> None:
    """All messages are the golden model's."""
    pixels = np.frombuffer(dumped, "<i2").reshape(SIDE, SIDE, VECTORS, LABELS)
    messages = iterate(PROBLEM, ITERATIONS)
    for direction, place in PLACES.items():
        assert np.array_equal(pixels[:, :, place], messages[direction])
    assert np.count_nonzero(messages) > SIDE * SIDE * LABELS


def test_its_program_does_belief_propagation() -> None:
    assert (PROBLEM.smoothness == PROBLEM.smoothness.T).all()
    check_messages(vip.run(SOURCE, memory=contents(), dump=DUMP).dumped)


@pytest.mark.slow
def test_its_netlist_in_cells_alone_does_so_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asic, "_RECIPES", asic._RECIPES[:1])
    trimmed = trim(load_program(SOURCE), preset("pe-small"), rom=True)
    assert (trimmed.registers, trimmed.scratchpad_bytes, trimmed.address_bits) == (16, 64, 12)
    engine = replace(trimmed, arc_entries=1, load_store_queue=2)
    for name, slower in (("typical", 1.0), ("slow", 1.5), ("fast", 0.7)):
        (tmp_path / f"{name}.lib").write_text(twenty_cells(slower, gated=True))
    target = f"flops:liberty:{tmp_path / 'typical.lib'}"
    netlist = vip.timing(engine, target, [tmp_path / "slow.lib", tmp_path / "fast.lib"])
    assert netlist.logic_ge * find_cells(target)[1].gate_um2 < 250_000
    _, slow, fast = netlist.corners
    assert slow.pins.fmax_mhz >= 100
    assert fast.hold.ns > 0
    ran = vip.cosim(
        SOURCE, engine, on="netlist", target=target, memory=contents(), dump=DUMP, max_cycles=10**6
    )
    assert ran.comparison is not None
    assert ran.comparison.match
    check_messages(ran.dumped)
