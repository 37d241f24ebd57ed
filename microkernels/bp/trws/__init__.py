"""TRW-S: sequential tree-reweighted message passing (thesis 3.1); :mod:`.golden` defines it."""
