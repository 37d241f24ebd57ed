"""Microkernels: assembly and its generators, data layouts, golden models."""
