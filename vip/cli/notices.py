"""What the rooms report while they work, as lines on standard error."""

import logging

__all__ = ["show_notices"]

#: Loggers whose reports a user of the command line wants to see.
_ROOMS = ("sim_tb", "synth")


class _Lines(logging.Handler):
    """Prints each report on a line of its own, above whatever progress is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        # Its libraries take long to import, and most commands report nothing.
        from .console import warn

        warn(record.getMessage())


def show_notices() -> None:
    """Show the rooms' reports from now on; calling it again changes nothing."""
    for room in _ROOMS:
        logger = logging.getLogger(room)
        if not any(isinstance(handler, _Lines) for handler in logger.handlers):
            logger.addHandler(_Lines())
            logger.setLevel(logging.INFO)
            logger.propagate = False
