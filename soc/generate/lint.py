"""Waivers of Verilator's warnings about generated Verilog, each with its reason."""

__all__ = ["OLDER_WAIVERS", "TWO_CLOCK_WAIVERS", "WAIVERS", "waiver_file"]

#: Warning -> reason why it is no defect here. Verilator refuses a file that names a warning that it
#: does not know: 5.006, the oldest that is supported, knows these.
WAIVERS: dict[str, str] = {
    "UNUSEDSIGNAL": "Names of signals and of the fields of records are kept for waveforms even "
    "where nothing reads them; a shared signature can carry more than one side needs; and sums "
    "have a carry bit that is dropped on purpose.",
    "WIDTH": "Operands are extended by the rules of Verilog, for which the widths were computed, "
    "so that nothing is lost; `!` and conditions of several bits mean `== 0` and `!= 0`.",
    "CASEINCOMPLETE": "The outputs of a case have values before it, and the reset or selector "
    "values that it leaves out keep them.",
    "CMPCONST": "A comparison in generated, regular logic is constant at the ends of its range.",
    "UNSIGNED": "As CMPCONST, at the lower end.",
    "VARHIDDEN": "An instance may have the name of a signal inside it.",
    "INITIALDLY": "`at_start` changes at the start when all `always @*` wait for it, so that "
    "simulators with four states evaluate them.",
}

#: Warnings of 5.006 that later versions don't give.
OLDER_WAIVERS: dict[str, str] = {
    "UNOPTFLAT": "Bits of a vector that follow from lower ones are no loop.",
}

#: Those of designs with two clocks.
TWO_CLOCK_WAIVERS: dict[str, str] = {
    **WAIVERS,
    "DECLFILENAME": "The FIFO of a crossing stands in the file of the crossing.",
    "SYNCASYNCNET": "The reset of one clock domain asynchronously sets the synchroniser that "
    "brings it to the other domain (AsyncFFSynchronizer of Amaranth).",
}


def waiver_file(warnings: dict[str, str] = WAIVERS) -> str:
    """Text of a Verilator control file that waives ``warnings`` (name -> reason), and those of
    older versions."""
    lines = ["`verilator_config"]
    for name, reason in (warnings | OLDER_WAIVERS).items():
        lines += [f"// {reason}", f'lint_off -rule {name} -file "*rtl/*.v"']
    return "\n".join(lines) + "\n"
