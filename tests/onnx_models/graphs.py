"""Small ONNX models for tests."""

from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

from microkernels.data.models.graphs import model_of as model

__all__ = ["model", "reference"]


def reference(made: ModelProto, x: Any) -> list[Any]:
    """onnxruntime's outputs for real numbers, of the input x or by name."""
    options = onnxruntime.SessionOptions()
    # Without it, processors that lack dot products of bytes saturate sums of their products.
    options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = x if isinstance(x, dict) else {"x": x}
    return list(session.run(None, {name: np.float32(held) for name, held in feeds.items()}))
