"""``python -m microkernels.data.models FOLDER [NAME...]`` writes models and calibration data."""

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from support.command import run_command
from support.files import write_atomically

from .collection import inputs_of, make, names


def main(arguments: Sequence[str] | None = None) -> None:
    """Write ``NAME.onnx`` and ``NAME.npz`` for each name, all models without one."""
    parser = argparse.ArgumentParser(
        prog="python -m microkernels.data.models",
        description="Write ONNX models with seeded weights, and data for their calibration.",
    )
    parser.add_argument("folder", type=Path, help="output folder; created if missing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in names():
            parser.error(f"no model {name!r}; there are {', '.join(names())}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or names():
        model = make(name)
        data = io.BytesIO()
        np.savez(data, allow_pickle=False, **inputs_of(name, model))
        write_atomically(options.folder / f"{name}.onnx", model.SerializeToString())
        write_atomically(options.folder / f"{name}.npz", data.getvalue())


if __name__ == "__main__":
    run_command(main)
