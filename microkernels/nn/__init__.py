"""Layers of neural networks: convolution, pooling, fully connected, LSTM."""
