"""Belief propagation (BP-M) on one and two levels: golden models, layouts, kernels, jobs."""
