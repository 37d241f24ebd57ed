"""``python -m microkernels.data.models FOLDER [NAME...]`` writes models and calibration data."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .collection import inputs_of, make, names


def main(arguments: Sequence[str] | None = None) -> None:
    """Write ``NAME.onnx`` and ``NAME.npz`` for each name, all models without one."""
    parser = argparse.ArgumentParser(
        prog="python -m microkernels.data.models",
        description="Write ONNX models with seeded weights, and data for their calibration.",
    )
    parser.add_argument("folder", type=Path, help="it is made if it is missing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in names():
            parser.error(f"no model {name!r}; there are {', '.join(names())}")
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names or names():
        made = make(name)
        (given.folder / f"{name}.onnx").write_bytes(made.SerializeToString())
        np.savez(given.folder / f"{name}.npz", allow_pickle=False, **inputs_of(name, made))


if __name__ == "__main__":
    main()
