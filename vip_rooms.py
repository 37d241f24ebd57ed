"""The entry of the ``vip`` command, and the check that the packages found are VIP's.

VIP's packages have plain names, such as ``memory``. A module of that name beside a script or in the
current folder comes first on Python's path; without a check its user meets an ``ImportError`` from
deep inside. This module stands apart from the packages, as any of them may be the one that is
hidden.
"""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: VIP's packages.
ROOMS = (
    "support",
    "isa",
    "hdl",
    "pe",
    "memory",
    "noc",
    "soc",
    "microkernels",
    "sim_tb",
    "synth",
    "vip",
    "bench",
)

_USER_ERROR = 2


class HiddenRoomError(ImportError):
    """A module that is not VIP's has the name of one of its packages; one line."""


@cache
def check_rooms() -> None:
    """Make sure that Python finds VIP's packages, and nothing else, under their names.

    Raises:
        HiddenRoomError: another module comes first, or a package is missing.
    """
    root = Path(__file__).resolve().parent
    for name in ROOMS:
        expected = root / name / "__init__.py"
        origin = _origin(name)
        if origin is None:
            raise HiddenRoomError(f"VIP's package {name!r} is missing: there is no {expected}")
        if origin.resolve() != expected:
            raise HiddenRoomError(
                f"{origin} hides VIP's package {name!r}: rename it, or start from another folder"
            )


def _origin(name: str) -> Path | None:
    """File of the module that ``import name`` takes; None if there is none."""
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__file__", None):
        return Path(str(module.__file__))
    spec = find_spec(name)
    if spec is None:
        return None
    # A folder without __init__.py is a package too, which has no file.
    places = list(spec.submodule_search_locations or ())
    return Path(spec.origin or places[0])


def main() -> None:
    """Entry point of the ``vip`` command."""
    try:
        check_rooms()
    except HiddenRoomError as error:
        print(f"vip: {error}", file=sys.stderr)
        sys.exit(_USER_ERROR)
    from vip.cli.app import main as command

    command()
