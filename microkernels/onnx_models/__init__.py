"""ONNX models as networks of kernels: reading, mapping, calibration."""
