"""Markov random fields of a user: pictures and costs in, labels, energies and errors out."""
