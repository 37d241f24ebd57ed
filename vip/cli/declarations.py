"""The texts of options that declare memory as constant or bounded."""

import re
from collections.abc import Mapping, Sequence

from isa.declared import Declared, Numbers, Span

from .errors import UserError

__all__ = ["declarations"]

_NUMBER = r"(?:0x[0-9a-fA-F]{1,16}|[0-9]{1,20})"
_SPAN = rf"(?:(?P<owner>.+)=)?(?P<start>{_NUMBER}):(?P<size>{_NUMBER})"
_CONSTANT = re.compile(_SPAN)
_RANGE = re.compile(
    rf"{_SPAN}(?:/(?P<width>8|16|32|64))?=(?P<low>-?{_NUMBER})\.\.(?P<high>-?{_NUMBER})"
)


def _number(text: str) -> int:
    return int(text, 16 if "0x" in text else 10)


def declarations(
    programs: Sequence[str], constants: Sequence[str], ranges: Sequence[str], slots: int
) -> Mapping[str, Declared]:
    """For each program what is declared about its memory.

    Parameters:
        programs: as the user names them. constants: ``[PROGRAM=]START:BYTES``, of the only
            program without a name. ranges: ``[PROGRAM=]START:BYTES[/BITS]=LOW..HIGH``. slots: all
            programs run in the slots below.

    Raises:
        UserError: a text of another form, of none of the programs, or of an unknown one of several.
    """
    spans: dict[str, list[Span]] = {program: [] for program in programs}
    numbers: dict[str, list[Numbers]] = {program: [] for program in programs}
    for option, texts, form, allowed in (
        ("--constant", constants, _CONSTANT, "START:BYTES, such as 0x100:64"),
        ("--range", ranges, _RANGE, "START:BYTES[/BITS]=LOW..HIGH, such as 0x140:8=1..256"),
    ):
        for text in texts:
            found = form.fullmatch(text)
            if found is None:
                raise UserError(f"{option} {text}: must be {allowed}")
            owner = found["owner"] or programs[0]
            if not found["owner"] and len(programs) > 1:
                raise UserError(f"{option} {text}: with several programs, put PROGRAM= before it")
            if owner not in spans:
                raise UserError(f"{option} {text}: {owner} is none of the programs")
            span = Span(_number(found["start"]), _number(found["size"]))
            if form is _CONSTANT:
                spans[owner].append(span)
            else:
                low, high = _number(found["low"]), _number(found["high"])
                numbers[owner].append(Numbers(span, low, high, int(found["width"] or 64)))
    return {
        program: Declared(
            constants=tuple(spans[program]), numbers=tuple(numbers[program]), slots=slots
        )
        for program in programs
    }
