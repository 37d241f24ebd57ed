"""The page on a result: what a command wrote with ``--json``, as interactive figures."""
