"""The packages' reports during work, as lines on standard error."""

import logging

#: Loggers whose reports the command line shows.
_ROOMS = ("sim_tb", "synth")


class _Lines(logging.Handler):
    """Prints each report on a line of its own, above the progress display."""

    def emit(self, record: logging.LogRecord) -> None:
        # Imported late: the console's libraries are slow to import, and most commands report
        # nothing.
        from .console import warn

        warn(record.getMessage())


def show_notices() -> None:
    """Show the packages' reports from now on; idempotent."""
    for room in _ROOMS:
        logger = logging.getLogger(room)
        if not any(isinstance(handler, _Lines) for handler in logger.handlers):
            logger.addHandler(_Lines())
            logger.setLevel(logging.INFO)
            logger.propagate = False
