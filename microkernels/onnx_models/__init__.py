"""ONNX models as networks of the kernels: reading, mapping, calibration."""
