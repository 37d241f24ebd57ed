"""User-supplied Markov random fields: pictures and costs in; labels, energies and errors out."""
