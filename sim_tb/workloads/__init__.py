"""Workloads used by several rooms: traffic, tiles of kernels, and the certificate."""
