"""Benchmarks of neural networks: whole ones on a chip, and ONNX models."""
