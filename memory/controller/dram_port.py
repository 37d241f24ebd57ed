"""The interface between a vault's controller and its DRAM."""

from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out

from hdl.ports import WORD_BITS
from memory.config import VaultConfig


class DramCommand(enum.Enum, shape=3):
    """A command to a bank. :class:`memory.timing.DramTiming` has the rules."""

    #: Open ``row`` of a closed bank.
    ACT = 0
    #: Read ``column`` of the open row.
    READ = 1
    #: Write ``column`` of the open row.
    WRITE = 2
    #: Close the open row. On a closed bank it has no effect.
    PRE = 3
    #: Refresh one bank, which must be closed.
    REFRESH = 4


class DramPort(wiring.Signature):
    """Commands, at most one per cycle, and the data bus, seen from the controller.

    There is no handshake: every member is valid in its own cycle, and the controller ensures all
    timing. With a command in cycle t:

    - READ: ``read_data`` holds the column's four words, lowest address first, in cycles
      t + tCL .. t + tCL + 3.
    - WRITE: ``write_data`` and ``write_strobe`` hold the four words, lowest address first, in
      cycles t + tCWL .. t + tCWL + 3; a byte whose strobe is 0 keeps its value. A READ of the same
      column, at the earliest legal time after it, returns the written data.

    At other times ``read_data``, ``write_data`` and ``write_strobe`` are undefined.

    The DRAM is reset with the controller: in the first cycle after the reset every bank is closed
    and idle, and may be activated or refreshed.

    Members:
        valid (out, 1): there is a command.
        kind (out, :class:`DramCommand`): the command.
        bank (out, bank_bits): its bank.
        row (out, row_bits): valid for ACT.
        column (out, column_bits): valid for READ and WRITE.
        write_data (out, 64): word to write.
        write_strobe (out, 8): one bit for each byte of ``write_data``.
        read_data (in, 64): word read.

    Attributes:
        note: for users of the port, the times in it.
    """

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        timing = config.timing
        self.note = (
            f"Here tCL is {timing.tcl} and tCWL {timing.tcwl} cycles. The port is not that of a "
            "DDR3 or DDR4 controller: for one, take a vault with an AXI port (`vip presets`)."
        )
        super().__init__(
            {
                "valid": Out(1),
                "kind": Out(DramCommand),
                "bank": Out(config.bank_bits),
                "row": Out(config.row_bits),
                "column": Out(config.column_bits),
                "write_data": Out(WORD_BITS),
                "write_strobe": Out(WORD_BITS // 8),
                "read_data": In(WORD_BITS),
            }
        )
