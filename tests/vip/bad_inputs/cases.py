"""Calls with one thing wrong each, made at random."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from .commands import Command, Parameter, commands
from .contents import BAD, GOOD, SUFFIX
from .items import Item

_LONG_NAME = "n" * 300
_LONG_NUMBER = "9" * 5_000
#: Strings that are no valid name, number or file.
_STRANGE = (
    "",
    " ",
    "nosuch",
    "no such",
    "[/red]",
    "[bold]x",
    "[link=x]y[/link]",
    ":smile:",
    "\x1b[31mx",
    "a\nb",
    "a\rb",
    "\u202ex",
    "é",
    "\udcff",
    "%s{0}",
    "x" * 3_000,
    "../../nosuch",
    "bp\n",
)
_ROOT = os.geteuid() == 0
#: Commands that compile a simulator, whatever their arguments.
_BUILDING = ("cosim bp", "cosim program", "power", "trim", "bench vault", "bench kernels", "demo")


@dataclass
class Case:
    """A call that must be refused.

    Attributes:
        arguments: after ``vip``. items: what is in its folder.
        what: which parameter is wrong, and how.
        environment: variables that are set.
    """

    arguments: list[str]
    items: list[Item]
    what: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class _Draft:
    """A call on the way: what is typed for each parameter."""

    command: Command
    random: Random
    typed: dict[str, list[str]] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)

    def add(self, item: Item) -> str:
        self.items[item.name] = item
        return item.name

    def type(self, parameter: Parameter, *values: str) -> None:
        self.typed[parameter.name] = [parameter.flag, *values] if parameter.flag else [*values]

    def good(self, parameter: Parameter) -> None:
        """Give ``parameter`` something right."""
        if parameter.kind == "read":
            name = parameter.name + SUFFIX[parameter.detail]
            self.type(parameter, self.add(Item(name, GOOD[parameter.detail]())))
        elif parameter.kind == "folder":
            self.type(parameter, f"out-{parameter.name}")
        elif parameter.kind == "write":
            ending = parameter.detail.split(" ")[0]
            self.type(parameter, f"out-{parameter.name}{ending}")
        elif parameter.kind == "name":
            self.type(parameter, self.random.choice(parameter.known))
        elif parameter.kind == "dump":
            self.type(parameter, "0", "8", "out-dump")

    def finish(self, what: str, extra: list[str] | None = None) -> Case:
        arguments = list(self.command.words)
        parts = list(self.typed.values())
        self.random.shuffle(parts)
        for part in parts:
            arguments += part
        return Case(arguments + (extra or []), list(self.items.values()), what)


def case(seed: int, number: int) -> Case:
    """Case ``number`` of ``seed``; it depends on these alone. The first cases spoil each parameter
    of each command once."""
    random = Random(f"{seed}:{number}")
    each = [(command, parameter) for command in commands() for parameter in command.parameters]
    if number >= len(each) and random.random() < 0.01:
        return _no_command(random)
    command = random.choice(commands())
    # Most wrong things are a parameter's; the rest is about the call as a whole.
    parameter = random.choice(command.parameters)
    if number < len(each):
        command, parameter = each[number]
    draft = _Draft(command, random)
    for other in command.parameters:
        if other.required and other is not parameter:
            draft.good(other)
    if number < len(each):
        return _spoiled(draft, parameter)
    if command.name in _BUILDING and random.random() < 0.05:
        if parameter.required:
            draft.good(parameter)
        made = draft.finish("environment")
        made.environment = {"CXX": random.choice(("nosuch", "/nosuch/c++", "'", "[/b]"))}
        return made
    if random.random() < 0.06:
        if parameter.required:
            draft.good(parameter)
        return _bad_call(draft)
    return _spoiled(draft, parameter)


def _spoiled(draft: _Draft, parameter: Parameter) -> Case:
    """The call with something wrong for ``parameter``."""
    for other in draft.command.parameters:
        # Outputs beside it, so that one written too early would show.
        if other.kind == "write" and other is not parameter and draft.random.random() < 0.4:
            draft.good(other)
    what = _SPOIL[parameter.kind](draft, parameter)
    return draft.finish(f"{parameter.kind} {parameter.flag or parameter.name}: {what}")


def _no_command(random: Random) -> Case:
    word = random.choice([name for name in _STRANGE if not name.startswith("-")])
    options = random.choice(([], ["--json", "x"], ["--help-me"], ["-x"]))
    return Case([word or "nosuch", *options], [], "command")


def _bad_call(draft: _Draft) -> Case:
    command, random = draft.command, draft.random
    kind = random.randrange(4)
    if kind == 0:
        extra = random.choice(("--nosuch", "--js0n", "-Z", "--nosuch=3", "--jobs=", "--no-", "--="))
        return draft.finish("unknown option", [extra])
    if kind == 1:
        valued = [p for p in command.parameters if p.flag and p.kind != "switch"]
        return draft.finish("option without its value", [random.choice(valued).flag])
    if kind == 2 and not any(p.multiple and not p.flag for p in command.parameters):
        return draft.finish("argument too many", ["one.s", "two.s", "three.s"])
    needed = [p for p in command.parameters if p.required]
    if kind == 3 and needed:
        del draft.typed[random.choice(needed).name]
        return draft.finish("parameter missing")
    switch = [p for p in command.parameters if p.kind == "switch"]
    if switch:
        return draft.finish("switch with a value", [f"{random.choice(switch).flag}=maybe"])
    return draft.finish("unknown option", ["--nosuch"])


def _no_file(draft: _Draft) -> Iterator[tuple[str, str]]:
    """What is no file to read or write: what it is, and how it is called."""
    add = draft.add
    good = add(Item("good", b"x"))
    yield "empty name", ""
    yield "this folder", "."
    yield "upper folder", ".."
    yield "root", "/"
    yield "folder", add(Item("folder", kind="folder"))
    yield "folder with slash", add(Item("folder", kind="folder")) + "/"
    yield "folder in brackets", add(Item("[red]", kind="folder"))
    yield "through a file", f"{good}/x"
    yield "in a missing folder", "missing/x"
    yield "in a strange folder", f"{draft.random.choice(_STRANGE).strip() or 'x'}/x"
    yield "long name", _LONG_NAME
    yield "long path", "/".join(["d"] * 3000)
    yield "link to itself", add(Item("loop", kind="link", target="loop"))
    yield "link to a folder", add(Item("up", kind="link", target="."))
    yield "pipe", add(Item("pipe", kind="pipe"))
    yield "socket", add(Item("socket", kind="socket"))
    yield "file of the system", draft.random.choice(("/proc/self", "/dev", "/sys"))


def _spoil_read(draft: _Draft, parameter: Parameter) -> str:
    random = draft.random
    suffix = SUFFIX[parameter.detail]
    kind = random.random()
    if kind < 0.45 and parameter.detail != "memory":
        name = random.choice(("bad", "[bad]", "ba d", "b\x1bad", "b\nad", "b\udcffad")) + suffix
        draft.type(parameter, draft.add(Item(name, BAD[parameter.detail](random))))
        if parameter.name in ("left", "right"):
            other = "right" if parameter.name == "left" else "left"
            draft.typed[other] = [f"--{other}", draft.add(Item("other.png", GOOD["picture"]()))]
        return "contents"
    if kind < 0.55:
        name = draft.add(Item(f"huge{suffix}", kind="hole", size=9 << 30))
        draft.type(parameter, name)
        return "far too large"
    if kind < 0.6 and not _ROOT:
        name = draft.add(Item(f"secret{suffix}", GOOD[parameter.detail](), mode=0))
        draft.type(parameter, name)
        return "no right to read"
    if kind < 0.75:
        draft.type(parameter, random.choice(_STRANGE[1:]) + suffix)
        return "strange name of nothing"
    what, name = random.choice(
        [
            *_no_file(draft),
            ("nothing", f"nothing{suffix}"),
            ("endless device", "/dev/zero"),
            ("device", "/dev/full"),
            ("link to nothing", draft.add(Item("dangling", kind="link", target="nothing"))),
        ]
    )
    draft.type(parameter, name)
    return what


def _inputs(draft: _Draft) -> list[str]:
    """Names of files that the call reads."""
    return [
        values[-1]
        for parameter in draft.command.parameters
        if parameter.kind == "read" and (values := draft.typed.get(parameter.name))
    ]


def _spoil_write(draft: _Draft, parameter: Parameter) -> str:
    random = draft.random
    endings = parameter.detail.split()
    taken = _inputs(draft)
    if not endings and taken and random.random() < 0.35:
        name = random.choice(taken)
        kind = random.choice(("", "./", "link", "hard link", "folder/../"))
        if kind == "folder/../":
            draft.add(Item("folder", kind="folder"))
        elif kind in ("link", "hard link"):
            draft.add(Item("alias", kind=kind, target=name))
        draft.type(parameter, "alias" if "link" in kind else kind + name)
        return "an input"
    others = [p for p in draft.command.parameters if p.kind == "write" and p.name in draft.typed]
    if not endings and others and random.random() < 0.3:
        other = random.choice(others)
        draft.type(parameter, random.choice(("", "./")) + draft.typed[other.name][-1])
        return "another output"
    if endings and random.random() < 0.4:
        name = random.choice(("x", "x.foo", "x.png.txt", ".png", "x.", "[x].bmp", "x.fst2", "x.s"))
        draft.type(parameter, name)
        return "ending"
    if not _ROOT and random.random() < 0.1:
        if random.random() < 0.5:
            draft.type(parameter, draft.add(Item(f"kept{(*endings, '')[0]}", b"x", mode=0o400)))
        else:
            draft.add(Item("closed", kind="folder", mode=0o500))
            draft.type(parameter, f"closed/x{(*endings, '')[0]}")
        return "no right to write"
    what, name = random.choice(list(_no_file(draft)))
    if endings and what in ("pipe", "socket", "link to itself"):
        item = draft.items.pop(name)
        name = draft.add(Item(name + endings[0], kind=item.kind, target=name + endings[0]))
    draft.type(parameter, name)
    return what


def _spoil_folder(draft: _Draft, parameter: Parameter) -> str:
    add = draft.add
    good = add(Item("good", b"x"))
    add(Item("pe", b"x"))
    choices = [
        ("file", good),
        ("through a file", f"{good}/x"),
        ("far through a file", f"{good}/x/y/z"),
        ("long name", _LONG_NAME),
        ("long path", "/".join(["d"] * 3000)),
        ("link to itself", add(Item("loop", kind="link", target="loop"))),
        ("below a link to itself", "loop/x"),
        ("pipe", add(Item("pipe", kind="pipe"))),
        ("socket", add(Item("socket", kind="socket"))),
        ("device", "/dev/null"),
        ("below a device", "/dev/null/x"),
        ("file of the system", "/proc/self/status"),
    ]
    if draft.command.name in ("generate", "trim"):
        choices += [("folder of others", name) for name in (".", "", "..", "./", "/", "/etc")]
    if not _ROOT:
        add(Item("closed", kind="folder", mode=0o500))
        choices.append(("no right to write", "closed/x"))
    what, name = draft.random.choice(choices)
    draft.type(parameter, name)
    return what


def _spoil_name(draft: _Draft, parameter: Parameter) -> str:
    random = draft.random
    if parameter.name == "define":
        value = random.choice(
            (
                "",
                "A",
                "A=",
                "=1",
                "A=x",
                "A=1=2",
                "A=0x" + "f" * 5_000,
                f"A={_LONG_NUMBER}",
                "A=1e3",
                "r1=3",
                "[/b]=3",
                "A\n=3",
                "a b=1",
                f"{'A' * 3000}*=1",
            )
        )
        draft.type(parameter, value)
        return "value"
    if parameter.name == "what":
        draft.type(parameter, random.choice(("nosuch", "[/b]", "a\nb", "x" * 3000, "/", ".")))
        return "name"
    strange = [name for name in _STRANGE if name.strip() not in parameter.known]
    if parameter.name in ("preset_name", "fit"):
        strange += ["thesis2", "pe ", "asic:", "asic:nan", "asic:-1", "asic:1e9", "ecp5-99k"]
    if parameter.name == "target":
        strange += ["liberty:", "liberty:/", "liberty:nothing", "liberty:/dev/zero", "ecp5-25k-9"]
        path = draft.add(Item("bad.lib", BAD["liberty"](random)))
        strange += [f"liberty:{path}"] * 6
    draft.type(parameter, random.choice(strange))
    return "name"


def _spoil_number(draft: _Draft, parameter: Parameter) -> str:
    values = ["x", "", " ", "1x", "--", "0x", "1,000", "½x", "[/b]", "nan%", _LONG_NUMBER + "x"]
    if parameter.kind == "int":
        values += ["1.5", "nan", "inf", "1e3", _LONG_NUMBER]
    if parameter.least is not None:
        values += [str(parameter.least - 1), "-1000000", "-" + "9" * 30]
    if parameter.most is not None:
        values += [str(parameter.most + 1), "9" * 30]
    if parameter.kind == "float":
        values += ["nan", "inf", "-inf", "1e999"]
    draft.type(parameter, draft.random.choice(values))
    return "number"


def _spoil_address(draft: _Draft, parameter: Parameter) -> str:
    values = ("x", "", "-1", "0x", "0xg", "1.5", str(1 << 64), "9" * 40, _LONG_NUMBER, "[/b]")
    draft.type(parameter, draft.random.choice(values))
    return "address"


def _spoil_switch(draft: _Draft, parameter: Parameter) -> str:
    draft.typed[parameter.name] = [f"{parameter.flag}={draft.random.choice(('maybe', '', '2'))}"]
    return "value"


def _spoil_dump(draft: _Draft, parameter: Parameter) -> str:
    random = draft.random
    if random.random() < 0.5:
        what = _spoil_write(draft, parameter)
        name = draft.typed[parameter.name][-1]
        draft.type(parameter, "0", "4", name)
        return what
    values = (
        ("x", "4"),
        ("0", "x"),
        ("-1", "4"),
        ("0", "-1"),
        (str(1 << 33), "1"),
        (str((1 << 33) - 4), "8"),
        ("0", str(1 << 40)),
        (_LONG_NUMBER, "4"),
        ("0", "9" * 40),
        ("1.5", "4"),
    )
    draft.type(parameter, *random.choice(values), "out-dump")
    return "range"


_SPOIL: dict[str, Callable[[_Draft, Parameter], str]] = {
    "read": _spoil_read,
    "write": _spoil_write,
    "folder": _spoil_folder,
    "name": _spoil_name,
    "int": _spoil_number,
    "float": _spoil_number,
    "address": _spoil_address,
    "switch": _spoil_switch,
    "dump": _spoil_dump,
}
