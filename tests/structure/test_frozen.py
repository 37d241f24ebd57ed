"""Verilog and programs are those on record (``tests/structure/frozen.py``)."""

import pytest

from microkernels.suite import suite
from soc.generate.presets import PRESETS
from tests.structure.frozen import application_digest, recorded, verilog_digest

#: Presets that together have every kind of unit; each of the others takes seconds as well.
QUICK = {"pe-logistic", "vault-axi", "tiny"}


@pytest.mark.parametrize(
    "preset",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PRESETS],
)
def test_verilog_of_a_preset_is_as_recorded(preset: str) -> None:
    assert verilog_digest(preset) == recorded()["verilog"][preset]


def test_every_preset_and_application_has_a_record() -> None:
    assert recorded()["verilog"].keys() == PRESETS.keys()
    assert list(recorded()["programs"]) == list(suite())


def test_programs_memories_and_outputs_of_the_suite_are_as_recorded() -> None:
    digests = {name: application_digest(application) for name, application in suite().items()}
    assert digests == recorded()["programs"]
