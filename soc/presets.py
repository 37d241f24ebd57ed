"""Named configurations."""

from hdl.config import ConfigurationError, PeConfig

__all__ = ["PRESETS", "preset"]

#: Name -> configuration. ``pe`` is the thesis's processing engine (chapter 5, section 7.1.3);
#: ``pe-small`` has every instruction but small memories and queues, for quick looks.
PRESETS: dict[str, PeConfig] = {
    "pe": PeConfig(),
    "pe-small": PeConfig(
        instruction_words=256,
        registers=32,
        scratchpad_bytes=1024,
        arc_entries=4,
        load_store_queue=8,
        address_bits=24,
    ),
}


def preset(name: str) -> PeConfig:
    """The configuration called ``name``.

    Raises:
        ConfigurationError: there is none; the message names those that there are.
    """
    try:
        return PRESETS[name]
    except KeyError:
        known = ", ".join(PRESETS)
        raise ConfigurationError(f"unknown preset {name!r}; there are: {known}") from None
