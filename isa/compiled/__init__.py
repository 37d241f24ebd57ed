"""The instruction set simulator, compiled: the same results as :mod:`isa.iss`, faster."""
