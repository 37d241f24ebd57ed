"""Belief propagation (BP-M) on one level and on two: golden models, layouts, kernels, jobs."""
