"""The extensions that the load-store unit can have."""

from collections.abc import Iterator
from typing import Any

from amaranth.lib.wiring import Member

from hdl.bundle import Bundle
from pe.config import PeConfig

from .extension import LsuExtension
from .history import HISTORY
from .workspace import WORKSPACE

#: In the order in which their rules apply. A new extension adds a line here.
EXTENSIONS: tuple[LsuExtension, ...] = (WORKSPACE, HISTORY)


def extensions(config: PeConfig) -> tuple[LsuExtension, ...]:
    """The extensions of an engine with ``config``."""
    return tuple(extension for extension in EXTENSIONS if extension.is_in(config))


def extension_members(config: PeConfig, layout: str) -> dict[str, Any]:
    """Their members of ``layout`` (:meth:`pe.extensions.extension.LsuExtension.members`); a later
    one may widen an earlier one's."""
    members: dict[str, Any] = {}
    for extension in extensions(config):
        members |= extension.members(config).get(layout, {})
    return members


def extension_outputs(config: PeConfig, unit: str) -> dict[str, Member]:
    """Their outputs of ``unit`` (:meth:`pe.extensions.extension.LsuExtension.outputs`)."""
    members: dict[str, Member] = {}
    for extension in extensions(config):
        if unit in (outputs := extension.outputs(config)):
            members |= outputs[unit].outputs()
    return members


def links(config: PeConfig) -> Iterator[tuple[str, str, Bundle]]:
    """Source, sink and signals of each of their links."""
    for extension in extensions(config):
        for (source, sink), bundle in extension.links(config).items():
            yield source, sink, bundle


def link_members(config: PeConfig, unit: str) -> dict[str, Member]:
    """Members that ``unit`` has for their links."""
    members: dict[str, Member] = {}
    for source, sink, bundle in links(config):
        if source == unit:
            members |= bundle.outputs()
        if sink == unit:
            members |= bundle.inputs()
    return members
