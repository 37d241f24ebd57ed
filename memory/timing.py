"""DRAM timing: nanoseconds as in data sheets, and derived clock counts."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import ceil, floor

from hdl.config import ConfigurationError
from support.checks import Checks, shown

#: Clocks in which a 32-byte burst occupies the 64-bit data bus.
BURST_CLOCKS = 4
#: Refreshes by which a bank may lag its schedule (JEDEC DDR3 and DDR4 allow eight).
POSTPONED_REFRESHES = 8

#: Longest time of a timing parameter in clocks; counters are as wide as the value needs.
_LONGEST = 1 << 16
#: Refresh mode of the thesis's figures (5.2: about DDR4's 4x mode).
_THESIS_MODE = 4
#: Parameters that may be 0, for no constraint.
_OPTIONAL = frozenset({"trrd_ns", "tfaw_ns", "twtr_ns"})


#: Longer than any distance that fits in the largest number of clocks.
_MOST_NS = 10**9
_CHECK = Checks(ConfigurationError)


class _Clocks:
    """The whole clocks that cover a time, whose name ends with ``_ns``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._time = f"{name}_ns"

    def __get__(self, timing: "DramTiming", owner: type) -> int:
        return ceil(timing._exact(getattr(timing, self._time)))


@dataclass(frozen=True, kw_only=True)
class DramTiming:
    """Timing of a vault's DRAM. The defaults are thesis Table 7.1, read as in
    docs/decisions/machine.md.

    A bank behaves like a separate rank: all rules apply within one bank, except for the data bus,
    which all banks share, and tRRD and tFAW, which don't apply unless set. Times are in ns. The
    properties without ``_ns`` are whole clocks: minimum distances are rounded up; ``trefi``, a
    maximum, is rounded down.

    A command in cycle t is followed, in the same bank, no earlier than

    ===========  ==========  =====================================================
    command      next        cycle
    ===========  ==========  =====================================================
    ACT          READ WRITE  t + tRCD
    ACT          PRE         t + tRAS
    ACT          ACT         t + tRC, which is tRAS + tRP
    READ WRITE   READ WRITE  t + tCCD
    READ         PRE         t + tRTP
    WRITE        READ        t + tCWL + 4 + tWTR (4: :data:`BURST_CLOCKS`)
    WRITE        PRE         t + tCWL + 4 + tWR
    PRE          ACT REFRESH t + tRP
    REFRESH      ACT REFRESH t + tRFC
    ===========  ==========  =====================================================

    Data moves in cycles t + tCL to t + tCL + 3 after READ and t + tCWL to t + tCWL + 3 after WRITE;
    two bursts never overlap, and ``turnaround_clocks`` idle cycles lie between bursts of different
    directions. Between ACTs of any two banks lie tRRD; five ACTs of any banks span more than tFAW
    (the fifth no earlier than tFAW after the first). Cycle c after reset sees at least
    ``c // trefi - 8`` REFRESH commands to every bank done (8: :data:`POSTPONED_REFRESHES`).

    Attributes:
        tck_ns: clock period.
        tccd_ns: column command to column command.
        tcl_ns: READ to data.
        tcwl_ns: WRITE to data, at least two clocks; the thesis gives none, tCL is taken.
        trcd_ns: ACT to column command.
        trp_ns: PRE to ACT or REFRESH.
        tras_ns: ACT to PRE.
        twr_ns: end of write data to PRE.
        trtp_ns: READ to PRE (none in the thesis; as DDR3).
        twtr_ns: end of write data to READ (none in the thesis; as DDR3); may be 0.
        trrd_ns: ACT to ACT of any bank; 0, the default: no constraint.
        tfaw_ns: window of four ACTs of any banks; 0, the default: no constraint.
        trfc_ns: REFRESH to ACT or REFRESH.
        trefi_ns: average distance of REFRESH commands to a bank.
        turnaround_clocks: idle clocks of the data bus between reading and writing; 0..15.

    Raises:
        ConfigurationError: a value out of range, or a set that no DRAM can have.
    """

    tck_ns: float = 0.8
    tccd_ns: float = 5.0
    tcl_ns: float = 13.75
    tcwl_ns: float = 13.75
    trcd_ns: float = 13.75
    trp_ns: float = 13.75
    tras_ns: float = 27.5
    twr_ns: float = 15.0
    trtp_ns: float = 7.5
    twtr_ns: float = 7.5
    trrd_ns: float = 0.0
    tfaw_ns: float = 0.0
    trfc_ns: float = 81.5
    trefi_ns: float = 1950.0
    turnaround_clocks: int = 1

    tccd = _Clocks()
    tcl = _Clocks()
    tcwl = _Clocks()
    trcd = _Clocks()
    trp = _Clocks()
    tras = _Clocks()
    twr = _Clocks()
    trtp = _Clocks()
    twtr = _Clocks()
    trrd = _Clocks()
    tfaw = _Clocks()
    trfc = _Clocks()

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name == "turnaround_clocks":
                continue
            value = getattr(self, field.name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not value < float("inf"):
                raise ConfigurationError(f"{field.name} must be a number of ns, not {shown(value)}")
            if value > _MOST_NS:
                raise ConfigurationError(
                    f"{field.name} must be at most {_MOST_NS} ns, not {shown(value)}"
                )
            if value < 0 or (value == 0 and field.name not in _OPTIONAL):
                least = "0 or more" if field.name in _OPTIONAL else "more than 0"
                raise ConfigurationError(f"{field.name} must be {least} ns, not {value!r}")
            if field.name != "tck_ns" and self._exact(value) > _LONGEST:
                raise ConfigurationError(
                    f"{field.name} must be at most {_LONGEST} clocks of {self.tck_ns} ns, "
                    f"not {value!r} ns"
                )
        _CHECK.within("turnaround_clocks", self.turnaround_clocks, 0, 15)
        if self.tras < self.trcd + self.trtp:
            raise ConfigurationError(
                f"tras_ns must cover trcd_ns and trtp_ns ({self.trcd} + {self.trtp} clocks), "
                f"not {self.tras_ns!r} ns ({self.tras} clocks)"
            )
        if self.tcwl < 2:
            raise ConfigurationError(
                f"tcwl_ns must be at least 2 clocks of {self.tck_ns} ns, not {self.tcwl_ns!r} ns"
            )
        if self.tfaw and self.tfaw < self.trrd:
            raise ConfigurationError(
                f"tfaw_ns must be 0 or at least trrd_ns ({self.trrd_ns!r}), not {self.tfaw_ns!r}"
            )
        busy = self.trfc + self.trc + self.write_to_precharge
        if self.trefi < 2 * busy:
            raise ConfigurationError(
                f"trefi_ns must leave time to use a bank: at least {2 * busy} clocks "
                f"(twice trfc_ns and an access), not {self.trefi_ns!r} ns ({self.trefi} clocks)"
            )

    def _exact(self, value: float) -> Fraction:
        # Via the decimal text, so that 1950 / 0.8 gives what a person would compute.
        return Fraction(str(value)) / Fraction(str(self.tck_ns))

    @property
    def trc(self) -> int:
        """Clocks from ACT to ACT of the same bank."""
        return self.tras + self.trp

    @property
    def trefi(self) -> int:
        """Clocks between refreshes of a bank, on average at most."""
        return floor(self._exact(self.trefi_ns))

    @property
    def write_to_read(self) -> int:
        """Clocks from WRITE to READ of the same bank (tCCD may ask for more)."""
        return self.tcwl + BURST_CLOCKS + self.twtr

    @property
    def write_to_precharge(self) -> int:
        """Clocks from WRITE to PRE of the same bank."""
        return self.tcwl + BURST_CLOCKS + self.twr

    def refresh_mode(self, mode: int) -> "DramTiming":
        """This timing, taken as refresh mode 4x, converted to another mode: fewer and longer
        refreshes.

        Parameters:
            mode: 4, 2 or 1; tRFC and tREFI are multiplied by 1, 2 or 4 (thesis 7.2.3).

        Raises:
            ConfigurationError: an unknown mode, or times that become too long.
        """
        _CHECK.one_of("refresh mode", mode, (1, 2, 4))
        factor = _THESIS_MODE // mode
        return replace(self, trfc_ns=self.trfc_ns * factor, trefi_ns=self.trefi_ns * factor)
