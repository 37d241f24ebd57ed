"""Diagrams: what is drawn where, and the command."""

import json
from itertools import combinations

import pytest
from PIL import Image

from soc.generate.generate import verilog
from soc.generate.presets import design
from vip.diagrams.draw import placed
from vip.diagrams.links import Diagram, find_links


@pytest.mark.parametrize(
    ("preset", "module", "columns"),
    [
        ("pe", None, 0),
        pytest.param("pe-logistic", None, 0, marks=pytest.mark.slow),
        ("vault", None, 0),
        ("vault", "controller", 0),
        ("tiny", None, 2),
    ],
)
def test_no_block_covers_another(preset, module, columns):
    found = find_links(verilog(design(preset)), module)
    places = placed(found, columns)
    assert {name for name, module in found.blocks.items() if module} <= places.keys()
    for (one, (x, y)), (other, (across, down)) in combinations(places.items(), 2):
        assert abs(x - across) > 0.85 or abs(y - down) > 0.5, (one, other)


def test_an_engine_with_a_unit_more_is_drawn_too():
    blocks = dict.fromkeys(("fetch", "issue", "mine"), "unit")
    links = {("fetch", "mine"): 9, ("mine", "issue"): 9}
    found = Diagram(module="pe", blocks=blocks, numbers={}, links=links)
    assert placed(found).keys() == blocks.keys()


def test_the_command_draws_and_reports(vip, tmp_path):
    arguments = ("diagram", "-o", "engine.png", "--preset", "pe-small", "--json", "engine.json")
    code, output, error = vip(*arguments, "--least-bits", "32")
    assert (code, error) == (0, "")
    content = json.loads((tmp_path / "engine.json").read_text())
    drawn = sum(link["bits"] >= 32 for link in content["links"])
    assert f"13 units, {drawn} of {len(content['links'])} links" in output
    assert Image.open(tmp_path / "engine.png").size > (600, 300)
    assert {"source": "operands", "target": "decode", "bits": 32} in content["links"]
    again = (tmp_path / "engine.png").read_bytes()
    assert vip(*arguments, "--least-bits", "32")[0] == 0
    assert (tmp_path / "engine.png").read_bytes() == again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("engine.gif",), "engine.gif"),
        (("engine.png", "--preset", "none"), "unknown preset 'none'"),
        (("engine.png", "--preset", "pe", "--config", "x.json"), "x.json"),
        (("engine.png", "--module", "nosuch"), "no module 'nosuch'; modules with units are: fetch"),
    ],
)
def test_what_is_refused(vip, tmp_path, arguments, message):
    code, _, error = vip("diagram", "-o", *arguments)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.glob("engine.*"))
