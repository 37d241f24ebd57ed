"""The exception of proofs."""

from synth.errors import SynthesisError

__all__ = ["ProofError"]


class ProofError(SynthesisError):
    """A proof that can't be set up or run; the message says what and why."""
