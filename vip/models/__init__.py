"""ONNX models on the machine: check, compile, run, evaluate."""
