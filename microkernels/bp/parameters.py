"""The parameter block of the belief propagation kernel: the runs of each engine of a vault.

64-bit little-endian words, the header first::

    0  iterations
    1  engines that share the vault's tiles
    2  for each slot, the address of its engine's part; filled up to a multiple of 4 words in all

An engine's part::

    0  address of the flag with the engine's last event (microkernels.runtime.barrier)
    1  runs in an iteration
    2  the runs, RUN_WORDS words each

A *run* is a number of lines that an engine works on without a stop, in pairs or one by one; see
:class:`Run` for its words. With one engine the slot is ignored. All addresses are those that
engines use; on a chip of several vaults, chip addresses.
"""

from dataclasses import dataclass, fields

from microkernels.common import parameter_block
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up

__all__ = ["HEADER_WORDS", "RUN_WORDS", "SIGNALS", "Run", "block_bytes", "most_words"]

#: 64-bit words before the table of parts, and before the runs of a part.
HEADER_WORDS = 2
PART_WORDS = 2
#: Flags that may be written after a run: for the own vault and its two neighbours.
SIGNALS = 3
_ALIGNMENT = 4


@dataclass(frozen=True, kw_only=True)
class Run:
    """Lines that an engine works on without a stop. The attributes are the words, in this order.

    Attributes:
        lanes: lines worked on at a time, 2 or 1; 0: nothing to do.
        wait: address of a flag to wait for before the run; 0: none.
        costs: address of the smoothness costs to load before the run; 0: the costs in the
            scratchpad stay valid.
        load: address of the three vectors to load at the first pixel of the first line.
        edge: address of the message that arrives there.
        across: bytes from the first to the second line of a pair.
        step: bytes from a pixel to the next one of its line (negative when moving left or up).
        exit: bytes from the last message but one of a line (``edge``, if there is but one) to the
            last; different from ``step`` if the last message goes to another tile.
        turn: bytes from the last message written to a line to the first of that lane's next line.
        next: bytes from a line to that lane's next line.
        groups: pairs, or single lines.
        updates: in each line; at least 1 unless ``lanes`` is 0.
        signal_1, signal_2, signal_3: addresses of flags to write after the run; 0: no more.
        gather: not 0: a step of a sweep is over after this run; the address of the first of the
            flags to wait for at that point.
        gather_end: end of those flags; equal to ``gather``: none.
    """

    lanes: int = 0
    wait: int = 0
    costs: int = 0
    load: int = 0
    edge: int = 0
    across: int = 0
    step: int = 0
    exit: int = 0
    turn: int = 0
    next: int = 0
    groups: int = 0
    updates: int = 0
    signal_1: int = 0
    signal_2: int = 0
    signal_3: int = 0
    gather: int = 0
    gather_end: int = 0

    def words(self) -> list[int]:
        """The words."""
        return [getattr(self, field.name) for field in fields(self)]


RUN_WORDS = len(fields(Run))


def _table_end(sharers: int) -> int:
    return round_up(HEADER_WORDS + sharers, _ALIGNMENT)


def most_words(sharers: int, runs: int) -> int:
    """Words that suffice for any block with ``sharers`` engines and at most ``runs`` runs each."""
    return _table_end(sharers) + sharers * (PART_WORDS + runs * RUN_WORDS)


def block_bytes(base: int, iterations: int, flags: list[int], plans: list[list[Run]]) -> bytes:
    """The block at address ``base``.

    Parameters:
        iterations: 0 or more.
        flags: for each slot, word 0 of its part.
        plans: for each slot, its engine's runs.

    Raises:
        KernelError: a negative number of iterations.
    """
    if iterations < 0:
        raise KernelError(f"iterations must be 0 or more, not {iterations}")
    parts = [
        [flag, len(plan), *(word for run in plan for word in run.words())]
        for flag, plan in zip(flags, plans, strict=True)
    ]
    header = (iterations, len(plans))
    return parameter_block.block_bytes(base, parts, header=header, align=_ALIGNMENT)
