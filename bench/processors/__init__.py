"""The same work on the processor of this machine: BP-M with AVX2, VGG-16 with onnxruntime."""
