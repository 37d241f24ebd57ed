"""Contents of files: good ones of each format, and bad ones made at random."""

import hashlib
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.table import ISA_VERSION
from pe.config import PeConfig
from soc.generate.presets import PRESETS, configuration_text
from synth.analysis.profile import profile_run

from .models import arrays_file, bad_arrays, bad_compiled, bad_onnx, onnx_file
from .oddity import DEEP, LONG, oddity

#: Format -> ending of its files.
SUFFIX = {
    "assembly": ".s",
    "program": ".vip",
    "memory": ".bin",
    "configuration": ".json",
    "profile": ".profile",
    "picture": ".png",
    "liberty": ".lib",
    "onnx": ".onnx",
    "arrays": ".npz",
    "compiled": ".json",
    "sweep": ".toml",
    "debug script": ".txt",
}

_SOURCE = "start: mov r9, #42\n.equ size, 4 * 8\nadd r10, r9, r9\nhalt\n"

_BAD_LINES = (
    "foo r1",
    "mov r64, #1",
    "mov r1, #99999999999999999999999999999999999999999",
    "mov r1, 5",
    "mov r1 r2",
    "mov r1, #1 / 0",
    "mov r1, #1 << 64",
    "mov r1, #nowhere",
    "add r1, r2",
    "add r1, r2, r3, r4",
    "add [16-bit] r1, r2, r3",
    "v.v.add r1, r2, r3",
    "ld.sram [7-bit] r1, r2, r3",
    "j nowhere",
    "start: start: halt",
    "r1: halt",
    ".word",
    ".word 0x100000000",
    ".word -1",
    ".equ r1, 1",
    ".equ a",
    ".reg x, r64",
    ".org 4",
    "li r1, #1 << 63 << 63",
    "li r1, #" + "9" * LONG,
    "li r1, #0x" + "f" * LONG,
    "mov r1, #" + "(" * 3000 + "1" + ")" * 3000,
    "mov r1, #" + "(" * 1500 + "1",
    "mov r1, #" + "-" * 3000,
    "x" * 200_000,
    "a: " * 100_000,
    "b nowhere" + "!" * 100,
    "mov r1, #08",
    "halt halt",
    "\x00",
    "\x1b[31mred",
    "[/red] halt",
    "\u2028halt",
    "\u202ehalt",
    "@",
    "mov r1, #'a'",
)
_NUMBERS = (
    "x", -1, -(10**30), 10**30, 10**4000, 1.5, "", [], {}, [[]], {"a": 1}, "[/b]", "\x1b[2J",
)  # fmt: skip


def _bad_assembly(random: Random) -> bytes:
    kind = random.randrange(8)
    if kind == 0:
        return oddity(random) + b"\n@"
    if kind == 1:
        return b"halt\n" * random.randrange(1025, 5000)
    if kind == 2:
        return b"halt ; \xff\xfe\n"
    if kind == 3:
        return random.choice((b"", b"; nothing\n", b".equ a, 1\n", b"\n" * 1000))
    lines = _SOURCE.split("\n")[: random.randrange(5)]
    lines += [random.choice(_BAD_LINES)]
    lines += random.choices(("halt", "", "; comment", "nop.none"), k=random.randrange(3))
    return random.choice(("\n", "\r\n")).join(lines).encode()


def _program_file(body: bytes, **changes: str) -> bytes:
    parts = {
        "isa": str(ISA_VERSION),
        "bytes": str(len(body)),
        "sha256": hashlib.sha256(body).hexdigest(),
        **changes,
    }
    return ("vip-program " + " ".join(f"{k}={v}" for k, v in parts.items()) + "\n").encode() + body


@cache
def _program() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "k.vip"
        assemble(_SOURCE, name="k.s").save(path)
        return path.read_bytes()


def _bad_program(random: Random) -> bytes:
    good = _program()
    kind = random.randrange(7)
    if kind == 0:
        return oddity(random)
    if kind == 1:
        return good[: random.randrange(len(good))]
    if kind == 2:
        place = random.randrange(len(good))
        return good[:place] + bytes([good[place] ^ 1 << random.randrange(8)]) + good[place + 1 :]
    if kind == 3:
        return good + oddity(random) + b"x"
    body = good.partition(b"\n")[2]
    if kind == 4:
        name = random.choice(("isa", "bytes", "sha256"))
        value = random.choice(("9" * LONG, "0" * LONG, "-1", "", "1e3", "f" * 64, "99"))
        return _program_file(body, **{name: value})
    if kind == 5:
        return _program_file(oddity(random))
    content = json.loads(body)
    part = random.choice(("words", "symbols", "constants", "source"))
    if random.random() < 0.2:
        del content[part]
    else:
        content[part] = random.choice(
            (
                None,
                7,
                "x",
                [None],
                ["0xg0000000"],
                {"r1": 1},
                {"a": random.choice((None, "x", 1.5, True, [], 10**4200))},
                {"a\n[/b]": 1},
                [["x", "f", 1, "t"]],
                [[10**400, "f", 1, "t"]],
                [[1e400, "f", 1, "t"]],
                [[0, "f", 1]],
                [[99999, "f", 1, "t"]],
            )
        )
    return _program_file(json.dumps(content).encode())


def _bad_configuration(random: Random) -> bytes:
    if random.random() < 0.25:
        return oddity(random)
    content = json.loads(configuration_text(random.choice(list(PRESETS.values()))))
    place = content
    while random.random() < 0.6:
        inner = [value for value in place.values() if isinstance(value, dict)]
        if not inner:
            break
        place = random.choice(inner)
    # A part that may be absent takes null, and a switch takes nothing of the list of numbers.
    names = [name for name, value in place.items() if not isinstance(value, (dict, type(None)))]
    name = random.choice(names) if names and random.random() < 0.8 else f"x{random.random()}"
    place[name] = random.choice([value for value in _NUMBERS if value != 1.5])
    if random.random() < 0.2:
        content = {"generator": "vip", "configuration": content}
    return json.dumps(content).encode()


@cache
def _profile() -> bytes:
    with TemporaryDirectory() as folder, DramImage(1 << 20) as image:
        path = Path(folder) / "p"
        profile_run(assemble(_SOURCE), image, PeConfig()).save(path)
        return path.read_bytes()


def _bad_profile(random: Random) -> bytes:
    if random.random() < 0.3:
        return oddity(random)
    content = json.loads(_profile())
    facts: dict[str, Any] = content["facts"]
    place = random.choice((content, facts))
    # The highest parameter block and the number of runs may be any number.
    name = random.choice([name for name in place if name not in ("runs", "parameters")])
    if random.random() < 0.3:
        del place[name]
    elif name == "in_flight":
        place[name] = random.choice((1, "x", [], [1], {}, ["x", 1], [None, 1]))
    else:
        place[name] = random.choice((7, "x", [None], {"a": 1}, {"0": ["x"]}, [[1]], 1e400))
    return json.dumps(content).encode()


@cache
def _picture(mode: str = "RGB", size: tuple[int, int] = (24, 16), form: str = "PNG") -> bytes:
    content = BytesIO()
    picture = Image.frombytes("L", size, bytes(i * 7 % 251 for i in range(size[0] * size[1])))
    picture.convert(mode).save(content, form)
    return content.getvalue()


def _png(width: int, height: int, data: bytes, kind: int = 2) -> bytes:
    def chunk(name: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(name + body))
        return struct.pack(">I", len(body)) + name + body + check

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


def _bad_picture(random: Random) -> bytes:
    kind = random.randrange(7)
    if kind == 0:
        return oddity(random)
    if kind == 1:
        form = random.choice(("PNG", "JPEG", "BMP", "PPM", "GIF", "TIFF"))
        mode = "P" if form == "GIF" else "RGB"
        good = _picture(mode, form=form)
        return good[: random.randrange(len(good) // 3)]
    if kind == 2:
        side = random.choice((12_000, 20_000, 60_000, 1 << 30))
        return _png(side, side, b"")
    if kind == 3:
        return random.choice(
            (
                b"P6\n12 x\n255\n",
                b"P6\n99999999999999999999 1\n255\n",
                b"P5\n12 12\n0\n",
                b"P6\n12000 12000\n255\n",
                b"P6\n",
                b"P3\n2 2\n255\n1 2 x",
                b"P7\nWIDTH x\nENDHDR\n",
                b"Pf\n2 2\n-1.0\n",
            )
        )
    if kind == 4:
        return _picture(
            random.choice(("I;16", "F", "1")), random.choice(((24, 16), (9, 9))), "TIFF"
        )[: random.choice((40, 80))]
    if kind == 5:
        head = random.choice(
            (b"GIF89a", b"BM", b"II*\x00", b"\xff\xd8\xff\xe0", b"RIFF    WEBPVP8 ")
        )
        return head + bytes(random.randrange(256) for _ in range(random.randrange(40)))
    return b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"


_LIBERTY = (
    "library (x) {\n  nom_voltage : 1.1;\n  cell (INV) {\n    area : 1;\n"
    "    pin (A) { direction : input; capacitance : 1; }\n"
    '    pin (Y) { direction : output; function : "!A"; }\n  }\n}\n'
)


def _bad_liberty(random: Random) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return oddity(random)
    if kind == 1:
        return _LIBERTY[: random.randrange(len(_LIBERTY) - 3)].encode()
    if kind == 2:
        return b"library(x){" + b"a(b){" * DEEP
    if kind == 3:
        return b"/*" * 200_000
    return _LIBERTY.replace(
        "nom_voltage : 1.1",
        random.choice(
            ("nom_voltage : x", "} {", 'a : "', "a (", "a : ;", "\x00", "nom_voltage : 1e")
        ),
    ).encode()


_SWEEP = """target = ""
objectives = ["cycles"]
[vary]
arc_entries = [4]
[[kernels]]
kernel = "bp"
"""


def _bad_sweep(random: Random) -> bytes:
    if random.random() < 0.3:
        return oddity(random)
    old, new = random.choice(
        (
            ("arc_entries", "nosuch"),
            ("[4]", "[-1]"),
            ("[4]", "[]"),
            ("[4]", "['" + "x" * LONG + "']"),
            ("[4]", "[[[4]]]"),
            ('"bp"', '"nosuch"'),
            ('"bp"', '"bp"\nwidth = 99999999999999999999'),
            ('"cycles"', '"luts"'),
            ("target", "nosuch"),
            ('""', '"' + "liberty:nosuch" + '"'),
            ("[vary]", "[vary.vary]"),
            ("[[kernels]]", "[kernels]"),
            ('kernel = "bp"', 'kernel = "bp"\n[search]\nmethod = "tpe"\nconfigurations = -1'),
            ("[4]", "[" * 500 + "]" * 500),
        )
    )
    return _SWEEP.replace(old, new).encode()


def _bad_debug_script(random: Random) -> bytes:
    if random.random() < 0.3:
        return b"nosuch " + oddity(random)
    line = random.choice(
        (
            "break nosuch",
            "break start+99999",
            "break " + "9" * LONG,
            "watch scratchpad 0 " + "9" * LONG,
            "watch scratchpad 0x0 99999",
            "watch r99",
            "step 1 2 3",
            "step " + "9" * LONG,
            "memory 0 999999x999999 i64",
            "scratchpad 0 8 i" + "9" * LONG,
            "delete 7",
            "[/b]",
            "expect \x1b[2J 1",
            "x" * 200_000,
        )
    )
    return f"step\n{line}\n".encode()


def _bad_memory(random: Random) -> bytes:
    raise AssertionError("any bytes are a memory")


#: Format -> a good file. Memory takes any bytes.
GOOD: Mapping[str, Callable[[], bytes]] = {
    "assembly": _SOURCE.encode,
    "program": _program,
    "memory": lambda: bytes(range(256)),
    "configuration": lambda: configuration_text(PRESETS["pe-small"]).encode(),
    "profile": _profile,
    "picture": _picture,
    "liberty": _LIBERTY.encode,
    "onnx": onnx_file,
    "arrays": arrays_file,
    "compiled": lambda: b'{"schema": "vip-model-4", "sha256": {}}',
    "sweep": _SWEEP.encode,
    "debug script": b"break start\nstep\n".strip,
}

#: Format -> makes a bad file.
BAD: Mapping[str, Callable[[Random], bytes]] = {
    "assembly": _bad_assembly,
    "program": _bad_program,
    "memory": _bad_memory,
    "configuration": _bad_configuration,
    "profile": _bad_profile,
    "picture": _bad_picture,
    "liberty": _bad_liberty,
    "onnx": bad_onnx,
    "arrays": bad_arrays,
    "compiled": bad_compiled,
    "sweep": _bad_sweep,
    "debug script": _bad_debug_script,
}
