"""ONNX models with seeded weights: the architectures of MLPerf Tiny, MobileNet-v2, a transformer's
encoder, and the light graphs of the ``onnx`` package.

``python -m microkernels.data.models FOLDER [NAME...]`` writes them with data for calibration.
"""
