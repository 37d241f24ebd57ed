"""Any value in any field of a configuration: it is built, or refused by the field's name."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.config import ConfigurationError
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from memory.timing import DramTiming
from noc.config import NetworkConfig
from pe.config import PeConfig
from soc.chip.config import ChipConfig
from soc.host.config import HostConfig
from soc.tile.config import VaultTileConfig
from support.errors import VipError
from tests.junk import JUNK

CONFIGS: tuple[tuple[Any, type[VipError]], ...] = (
    (PeConfig(), ConfigurationError),
    (VaultConfig(), ConfigurationError),
    (AxiConfig(), ConfigurationError),
    (DramTiming(), ConfigurationError),
    (NetworkConfig(), ConfigurationError),
    (VaultTileConfig(), ConfigurationError),
    (ChipConfig(), ConfigurationError),
    (ChipConfig().host, ConfigurationError),
)
CASES = [
    pytest.param(config, error, item.name, id=f"{type(config).__name__}.{item.name}")
    for config, error in CONFIGS
    for item in fields(config)
]


@pytest.mark.parametrize(("config", "error", "name"), CASES)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_field_is_used_or_refused(
    config: Any, error: type[VipError], name: str, data: st.DataObject
) -> None:
    value = data.draw(JUNK)
    made, message = None, ""
    try:
        made = replace(config, **{name: value})
    except error as found:
        message = str(found)
    assert "\n" not in message
    assert len(message) < 400
    if made is None:
        return
    kept = getattr(made, name)
    assert type(kept) is type(getattr(config, name)) or isinstance(kept, (int, float, tuple))
    assert not isinstance(kept, bool) or isinstance(getattr(config, name), bool)


@pytest.mark.parametrize(("config", "error", "name"), CASES)
def test_flags_are_no_numbers(config: Any, error: type[VipError], name: str) -> None:
    """``PeConfig(arc_entries=True)`` was accepted as 1."""
    wrong = 1 if isinstance(getattr(config, name), bool) else True
    with pytest.raises(error, match=name.removesuffix("_ns")):
        replace(config, **{name: wrong})


def test_host_configuration_is_among_them() -> None:
    assert isinstance(CONFIGS[-1][0], HostConfig)
