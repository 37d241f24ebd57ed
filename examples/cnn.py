"""A trained network in ONNX, from its file to cycles on a vault of four engines.

``python examples/cnn.py`` writes the model and its data (handwritten digits of scikit-learn),
compiles it, compares it with onnxruntime, and runs a digit. Your own model needs its file and some
of its inputs, for calibration. The extras ``onnx`` and ``digits`` are needed.
"""

from pathlib import Path

import numpy as np

import vip
from microkernels.apps.digits_onnx import write_digits

FOLDER = Path("build/cnn")


def main():
    """From a model to its cycles."""
    write_digits(FOLDER)
    model, train = FOLDER / "digits_cnn.onnx", np.load(FOLDER / "digits_train.npz")
    test = np.load(FOLDER / "digits_test.npz")

    print(f"every operator is supported: {vip.check_model(model).supported}")
    vip.compile_model(model, {"x": train["x"]}, FOLDER / "vault")
    quality = vip.evaluate_model(FOLDER / "vault", {"x": test["x"], "y": test["y"]})
    print(f"accuracy {quality.accuracy:.1%}; onnxruntime's {quality.float_accuracy:.1%}")
    run = vip.run_model(FOLDER / "vault", {"x": test["x"][:1]}, on="model")
    print(f"a digit takes {run.cycles:,} cycles: it is a {run.outputs['scores'].argmax()}")


if __name__ == "__main__":
    main()
