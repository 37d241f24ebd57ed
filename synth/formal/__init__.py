"""Proof that a trimmed processing engine behaves as the full one (docs/proofs.md)."""
