"""Proof that a trimmed processing engine behaves like the full one (docs/proofs.md)."""
