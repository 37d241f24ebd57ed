"""What tests of trimming need of it."""

from typing import Any

from isa.program import Program
from pe.config import PeConfig
from synth.analysis.contents import Subject
from synth.analysis.trim import report


def trim(
    programs: Subject | Program | list[Subject | Program],
    config: PeConfig,
    *args: Any,
    **options: Any,
) -> PeConfig:
    """The trimmed configuration of :func:`synth.analysis.trim.report`."""
    return report(programs, config, *args, **options).trimmed
