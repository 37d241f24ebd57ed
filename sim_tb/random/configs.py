"""Random small engines, like trimmed ones, for comparison with the simulator."""

from random import Random

from isa.table import BY_KEY, INSTRUCTIONS, MIN_REGISTER_WIDTH, Unit, Width
from pe.config import PeConfig

from .program_builder import NEEDED

_DECLARING = "set.ws"
#: Share of engines with a workspace.
_WORKSPACES = 0.2


def random_config(seed: int) -> PeConfig:
    """A small engine that can run random programs, determined by ``seed``.

    It has the instructions that every random program needs, all, some or none of each unit's other
    instructions, and sizes down to the smallest.
    """
    random = Random(seed)
    keys = {*NEEDED, "halt"}
    for unit in Unit:
        of_unit = [row.key for row in INSTRUCTIONS if row.unit is unit]
        optional = [key for key in of_unit if key not in keys | {_DECLARING}]
        share = random.choice((0.0, 0.1, 0.3, 1.0))
        keys.update(key for key in optional if random.random() < share)
    # An engine has a kind of transfer in every width or in none, so that some engines lack kinds.
    for kind in ("ld.sram", "st.sram", "ld.reg", "st.reg"):
        if random.random() < 0.3:
            keys -= {row.key for row in INSTRUCTIONS if row.mnemonic == kind}
    if Random(f"workspace {seed}").random() < _WORKSPACES:
        keys.add(_DECLARING)
    scratchpad = random.choice((64, 128, 512, 1024))
    address_bits = random.randint(max(12, scratchpad.bit_length() + 2), 30)
    rows = [BY_KEY[key] for key in keys]
    narrowest = min(
        (row.width for row in rows if row.reduction is not None and row.width is not None),
        default=Width.W64,
    )
    alignments = [width.bytes for width in Width if width <= narrowest]
    return PeConfig(
        instructions=frozenset(keys),
        instruction_words=random.choice((128, 256, 1024)),
        registers=random.choice((8, 16, 32)),
        register_width=random.choice(
            (max(MIN_REGISTER_WIDTH, address_bits + 1), random.randint(31, 63), 64)
        ),
        max_vl=random.choice((1, 256, random.randint(2, 255))),
        max_mr=random.choice((1, 256, random.randint(2, 255))),
        scratchpad_bytes=scratchpad,
        arc_entries=random.choice((1, 2, 5, 20)),
        load_store_queue=random.choice((2, 8, 64)),
        address_bits=address_bits,
        counters=random.random() < 0.5,
        scratchpad_alignment=random.choice((1, random.choice(alignments))),
    )
