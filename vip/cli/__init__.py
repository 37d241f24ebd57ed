"""The ``vip`` command: console, errors, signals."""
