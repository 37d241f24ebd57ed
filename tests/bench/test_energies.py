"""``python -m bench.energies``: a small picture and what it says."""

from pathlib import Path

import pytest
from PIL import Image

from bench.energies import bp_energies as main


def test_energies_are_printed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "energies.png"
    main(picture, width=48, height=32)
    assert "two levels reach the energy of 8 iterations on one" in capsys.readouterr().out
    with Image.open(picture) as image:
        assert image.size[0] > 500
