"""``python -m bench``: the same as ``vip bench``."""

from support.command import run_command
from vip.cli.notices import show_notices

from .harness.command import app

if __name__ == "__main__":
    show_notices()
    run_command(app)
