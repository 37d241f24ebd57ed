"""The C header says the same as the register map: a C program prints every macro."""

import subprocess
from itertools import product
from pathlib import Path

import pytest

from soc.generate.c_header import HEADER_NAME, c_header
from soc.host.register_map import BLOCKS, IDENTITY, MAP_ADDRESS_BITS, MAP_VERSION


def expected() -> dict[str, int]:
    """C expression -> value."""
    found = {
        "VIP_IDENTITY": IDENTITY,
        "VIP_MAP_VERSION": MAP_VERSION,
        "VIP_MAP_BYTES": 1 << MAP_ADDRESS_BITS,
    }
    for block in BLOCKS:
        pages = sorted({0, 1, block.pages - 1}) if block.pages > 1 else [0]
        for register in block.registers:
            name = f"VIP_{block.name}_{register.name}"
            numbers = sorted({0, 1, register.count - 1}) if register.count > 1 else [0]
            for page, number in product(pages, numbers):
                arguments = [str(page)] * (block.pages > 1) + [f"{number} + 0"] * (
                    register.count > 1
                )
                call = f"{name}({', '.join(arguments)})" if arguments else name
                address = block.base + page * block.page_bytes
                found[call] = address + register.offset + number * register.stride
            for field in register.fields:
                part = f"{name}_{field.name.upper()}"
                found[f"{part}_LSB"] = field.low
                found[f"{part}_MASK"] = ((1 << field.bits) - 1) << field.low
                for item in field.values or ():
                    found[f"{part}_{item.name}"] = item.value
    return found


@pytest.mark.parametrize("language", ["c", "c++"])
def test_compiled_macros_are_the_maps_addresses(language: str, tmp_path: Path) -> None:
    (tmp_path / HEADER_NAME).write_text(c_header())
    values = expected()
    assert len(values) > 100
    lines = "".join(f'    printf("%lx\\n", (unsigned long)({call}));\n' for call in values)
    source = tmp_path / "print.c"
    source.write_text(
        f'#include <stdio.h>\n#include "{HEADER_NAME}"\n#include "{HEADER_NAME}"\n'
        f"int main(void) {{\n{lines}    return 0;\n}}\n"
    )
    standard = "-std=c99" if language == "c" else "-std=c++11"
    flags = ["-x", language, standard, "-Wall", "-Wextra", "-Werror", "-pedantic"]
    program = tmp_path / "print"
    subprocess.run(["g++", *flags, source, "-o", program], check=True, cwd=tmp_path)
    shown = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert dict(zip(values, (int(line, 16) for line in shown.split()), strict=True)) == values


def test_every_register_is_there_once() -> None:
    defined = [line.split()[1] for line in c_header().splitlines() if line.startswith("#define ")]
    names = [name.partition("(")[0] for name in defined]
    assert len(set(names)) == len(names)
    for block in BLOCKS:
        for register in block.registers:
            assert f"VIP_{block.name}_{register.name}" in names
