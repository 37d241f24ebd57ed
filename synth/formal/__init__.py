"""Proof that a trimmed processing engine does what the full one does (docs/proofs.md)."""
