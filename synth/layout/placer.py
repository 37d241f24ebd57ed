"""Runs Coloquinte on a circuit; a process of its own, since it can't be interrupted, and prints.

It reads ``circuit.json`` in its folder and writes ``places.json``: see
:func:`synth.layout.placement.place`.
"""

import json
from pathlib import Path
from typing import Any

import coloquinte  # type: ignore[import-untyped]
from coloquinte import coloquinte_pybind as native


def main() -> None:
    """Place the circuit, globally and in detail, or only in detail."""
    work: Any = json.loads(Path("circuit.json").read_text(encoding="utf-8"))
    boxes, cells = work["boxes"], work["cells"]
    circuit = coloquinte.Circuit(len(boxes))
    circuit.cell_x, circuit.cell_y, circuit.cell_width, circuit.cell_height = map(
        list, zip(*boxes, strict=True)
    )
    circuit.cell_is_fixed = [number >= cells for number in range(len(boxes))]
    # Rows leave room for memories; ports are outside.
    circuit.cell_is_obstruction = [number < cells for number in range(len(boxes))]
    turns = native.CellOrientation.N, native.CellOrientation.FS
    circuit.rows = [
        native.Row(native.Rectangle(x, x + width, y, y + height), turns[y // height % 2])
        for x, y, width, height in work["rows"]
    ]
    for pins in work["nets"]:
        circuit.add_net(*map(list, zip(*pins, strict=True)))
    circuit.check()
    parameters = coloquinte.ColoquinteParameters(work["effort"], work["seed"])
    circuit.expand_cells_to_density(work["density"])
    if work["global"]:
        circuit.place_global(parameters)
    circuit.place_detailed(parameters)
    places = zip(circuit.cell_x, circuit.cell_y, circuit.cell_orientation, strict=True)
    result = [(x, y, turn.name) for x, y, turn in places][:cells]
    Path("places.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
