"""Emission of Verilog in which each component appears once, however often it is instantiated.

A component instantiates its parts with :func:`shared_instance`. In Amaranth's simulator this
changes nothing, except what the tests' platform adds to each component. While :func:`emit` runs,
every part becomes an instance of a module that all equal parts share, so that 128 equal processing
engines are elaborated and written once (docs/decisions/machine.md).

Two components are equal when they have the same class and the same parameters. The parameters are
those of the class's constructor: **each constructor parameter must be an attribute of the component
under the same name**, and hold plain data (numbers, text, enumerations, frozen dataclasses, frozen
sets, tuples, Amaranth shapes). A component that breaks this rule is refused, as are two equal
components with different ports.

Elaborated modules are cached by the process, so a second design with the same parts elaborates only
what differs.

Ports carry the names of the component's signature, joined by two underscores, plus ``clk`` and
``rst`` where the module uses them, and the clocks of other domains likewise
(:data:`hdl.clocks.CLOCK_PORTS`). A module has the name of its class (``VectorControl`` becomes
``vector_control``) or the component's ``module_name`` attribute; when a design holds several
configurations under one name, each gets a suffix derived from its parameters alone.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from amaranth.back import rtlil  # type: ignore[attr-defined]
from amaranth.hdl import ClockSignal, Elaboratable, Fragment, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib import wiring

from support.coverage import coverage_folder
from support.errors import VipError
from support.files import write_file
from support.scratch import scratch_folder

from .clocks import CLOCK_PORTS, named_domain
from .elaborated import ElaboratedModule, ModulePort, elaborated, full_name, no_collections
from .lines import mark_lines, marks_only
from .parameters import ParameterError, component_parameters, describe, flat_parameters
from .verilog import header, split_modules, tidy
from .yosys import YosysError, need_yosys, run_yosys


class EmissionError(VipError):
    """A component that can't be emitted; the message names it and the violated rule."""


@dataclass(frozen=True, kw_only=True)
class Emission:
    """Verilog of a design.

    Attributes:
        top: name of the top module.
        modules: module name -> Verilog text of the module (and of the parts that belong to it
            alone), every module after those that it instantiates; the top module is last.
        classes: module name -> full name of the Python class that it was elaborated from.
        instances: module name -> name of each module that it instantiates -> how often.
        black_boxes: names of the modules that are instantiated but not in ``modules``, sorted.
    """

    top: str
    modules: Mapping[str, str]
    classes: Mapping[str, str]
    instances: Mapping[str, Mapping[str, int]]
    black_boxes: tuple[str, ...]


def shared_instance(component: "wiring.Component[Any]", platform: object) -> Elaboratable:
    """``component`` as a submodule that emission shares between all instances of equal kind.

    Parameters:
        component: the part; this module's text has the rule for its constructor parameters.
        platform: the argument of the caller's ``elaborate``.

    Returns:
        ``component`` itself, or its replacement by the platform's ``instance``: during :func:`emit`
        an instance of the shared module, connected to the ports of ``component``.

    Raises:
        EmissionError: during emission, a component that violates the rule.
    """
    instance = getattr(platform, "instance", None)
    return component if instance is None else cast(Elaboratable, instance(component))


def emit(component: "wiring.Component[Any]", name: str) -> Emission:
    """Elaborate ``component`` and all that it instantiates; write Verilog-2005.

    The result depends only on the design and the versions of the tools.

    Parameters:
        component: top of the design.
        name: name of the top module, a Verilog identifier without ``$``.

    Raises:
        EmissionError: a component that can't be emitted, or a bad ``name``.
        MissingExtraError: there is no Yosys.
    """
    need_yosys()
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise EmissionError(f"module name {name!r} is not an identifier")
    emitter = _Emitter()
    with elaborated.lock, no_collections():
        elaborated.trim()
        emitter.add(component)
    return emitter.finish(name)


_PLACEHOLDER = re.compile(r"\\once\$(\d+)((?:\.[\w$]+)*)(?![\w$.])")
_INPUT = re.compile(r"^ *wire width \d+ input \d+ +(?:signed +)?\\(\S+)", re.MULTILINE)
#: Replacement of signals without bits: Verilog would give them two.
_EMPTY = re.compile(
    r"(?:^ *attribute .*\n)*^ *wire width 0 .*\n|^(?:connect| *assign) \\\S+ \{  \}\n", re.MULTILINE
)
_NUMBER = re.compile(r"^( *wire width \d+ (?:input|output) )(\d+)", re.MULTILINE)
_CELL = re.compile(r"^ *cell \\(\S+) ", re.MULTILINE)


#: Domain -> its place among clocks.
_DOMAINS = {name: place for place, name in enumerate(CLOCK_PORTS)}


class _Emitter:
    """The platform of components during emission."""

    def __init__(self) -> None:
        self._index: dict[tuple[type, str], ElaboratedModule] = {}
        #: Modules in the order in which elaboration ended: every one after its parts.
        self._order: list[ElaboratedModule] = []
        #: Modules that are being elaborated, the innermost last.
        self._open: list[ElaboratedModule] = []

    def instance(self, component: "wiring.Component[Any]") -> Elaboratable:
        """Replacement of ``component`` in the module that instantiates it."""
        module = self.add(component)
        self._open[-1].parts[module.number] = module
        connections: dict[str, Any] = {
            ("i_" if port.is_input else "o_") + port.name: value
            for port, value in _ports(component)
            if port.width
        }
        for domain, (clock, reset) in CLOCK_PORTS.items():
            if clock in module.clocks:
                connections[f"i_{clock}"] = ClockSignal(domain)
            if reset in module.clocks:
                connections[f"i_{reset}"] = ResetSignal(domain)
        # In Amaranth's type hints an instance is not elaboratable.
        return cast(Elaboratable, Instance(f"once${module.number}", **connections))

    def add(self, component: "wiring.Component[Any]") -> ElaboratedModule:
        """The module of ``component``, which is elaborated if it is the first such."""
        kind = type(component)
        where = full_name(kind)
        try:
            parameters = component_parameters(component)
            described = describe(parameters)
        except ParameterError as error:
            raise EmissionError(f"{where}: {error}") from error
        ports = tuple(port for port, _ in _ports(component))
        module = self._index.get((kind, described))
        if module is not None:
            # The first one of its kind represents this one.
            interface_only(component)
            if module.key[2] != ports:
                raise _different_ports(module)
            return module
        base = getattr(component, "module_name", None) or _snake(kind.__name__)
        key = kind, described, ports, base
        module = elaborated.modules.get(key)
        if module is not None:
            interface_only(component)
            self._take(module)
            return module
        module = ElaboratedModule(elaborated.number(), key, flat_parameters(parameters))
        self._index[kind, described] = module
        self._open.append(module)
        self._elaborate(component, module)
        self._open.pop()
        self._order.append(module)
        elaborated.add(module)
        return module

    def _take(self, module: ElaboratedModule) -> None:
        """Add ``module`` and its parts as they were elaborated for another design."""
        same_class = self._index.get(module.key[:2])
        if same_class is None:
            self._index[module.key[:2]] = module
            for part in module.parts.values():
                self._take(part)
            self._order.append(module)
        elif same_class is not module:
            raise _different_ports(module)

    def _elaborate(self, component: "wiring.Component[Any]", module: ElaboratedModule) -> None:
        name = f"once${module.number}"
        text = self._convert(component, name)
        text = _EMPTY.sub("", text)
        names = {port.name for port in module.key[2]}
        section = text[text.index(f"module \\{name}\n") :]
        inputs = _INPUT.findall(section[: section.index("\nend\n")])
        clocks = [port for ports in CLOCK_PORTS.values() for port in ports]
        extra = sorted(set(inputs) - names - set(clocks))
        if extra:
            allowed = " and ".join(map(repr, CLOCK_PORTS))
            raise EmissionError(
                f"{module.where}: only the domains {allowed} are allowed, not {extra[0]}"
            )
        # Yosys takes number 0, where Amaranth starts, for the last port.
        text = _NUMBER.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", text)
        for port in clocks:
            text, used = _without_unused(text, port)
            if used:
                module.clocks += (port,)
        module.rtlil = text

    def _convert(self, component: "wiring.Component[Any]", name: str) -> str:
        """RTLIL of ``component``.

        As by Amaranth's ``rtlil.convert``, which adds missing domains in the order of a set: with
        two clocks, the order of ports would depend on Python's hash seed.
        """
        fragment: Any = Fragment.get(component, self)  # type: ignore[no-untyped-call]
        if coverage_folder():
            mark_lines(fragment)
        fragment._propagate_domains_up()
        fragment._propagate_domains_down()
        new = fragment._create_missing_domains(named_domain)
        for domain in sorted(new, key=lambda domain: _DOMAINS.get(domain.name, len(_DOMAINS))):
            fragment.domains.move_to_end(domain.name)
        fragment._propagate_domains_down()
        ports: list[Any] = [
            (port.name, value, PortDirection.Input if port.is_input else PortDirection.Output)
            for port, value in _ports(component)
        ]
        for domain in fragment.domains.values():
            if domain in new:
                ports += [
                    (None, signal, PortDirection.Input) for signal in (domain.clk, domain.rst)
                ]
        text, _ = rtlil.convert_fragment(
            fragment, ports, name, emit_src=False, propagate_domains=False
        )
        return cast(str, text)

    def finish(self, top: str) -> Emission:
        """Everything elaborated so far as Verilog; ``top`` names the last module."""
        names = self._names(top)

        def name_of(match: re.Match[str]) -> str:
            return "\\" + names[int(match[1])] + match[2].replace(".", "__")

        sources = {
            names[module.number]: _PLACEHOLDER.sub(name_of, module.rtlil) for module in self._order
        }
        verilog = split_modules(tidy(_to_verilog("\n".join(sources.values()))))
        if coverage_folder():
            verilog = {name: marks_only(text) for name, text in verilog.items()}
        modules: dict[str, str] = {}
        classes: dict[str, str] = {}
        instances: dict[str, dict[str, int]] = {}
        for module in self._order:
            name = names[module.number]
            classes[name] = module.where
            parts = {part for part in verilog if part == name or part.startswith(f"{name}__")}
            cells = Counter(_CELL.findall(sources[name]))
            instances[name] = {cell: cells[cell] for cell in sorted(cells) if cell not in parts}
            modules[name] = header(
                name, module.kind.__doc__ or "", module.where, module.flat
            ) + "\n".join(
                verilog[part] for part in sorted(parts, key=lambda part: (part == name, part))
            )
        boxes = {cell for cells in instances.values() for cell in cells} - set(modules)
        return Emission(
            top=top,
            modules=modules,
            classes=classes,
            instances=instances,
            black_boxes=tuple(sorted(boxes)),
        )

    def _names(self, top: str) -> dict[int, str]:
        """A name for each module's number; see the rule in the module's docstring."""
        users: dict[str, list[ElaboratedModule]] = {}
        last = self._order[-1]
        for module in self._order[:-1]:
            users.setdefault(module.key[3], []).append(module)
        names = {last.number: top}
        for base, modules in users.items():
            for module in modules:
                if len(modules) == 1 and base != top:
                    names[module.number] = base
                    continue
                # Without the Python module: names stay when a source file moves.
                key = f"{module.kind.__qualname__} {module.key[1]}"
                names[module.number] = f"{base}_{hashlib.sha256(key.encode()).hexdigest()[:6]}"
        if len(set(names.values())) != len(names):
            raise EmissionError("two modules of the design would get the same name")
        return names


def interface_only(component: "wiring.Component[Any]") -> "wiring.Component[Any]":
    """``component``, which is never elaborated, without Amaranth's warning that it is unused."""
    setattr(component, "_MustUse__used", True)  # noqa: B010
    return component


def _different_ports(module: ElaboratedModule) -> EmissionError:
    return EmissionError(
        f"{module.where}: two components with equal parameters have different ports; a port "
        f"depends on something that is not a constructor parameter"
    )


def _ports(component: "wiring.Component[Any]") -> list[tuple[ModulePort, Value]]:
    """Each port of ``component`` with its signal."""
    ports = []
    for path, member, signal in component.signature.flatten(component):
        value = Value.cast(signal)
        port = ModulePort(
            "__".join(map(str, path)), member.flow == wiring.In, len(value), value.shape().signed
        )
        ports.append((port, value))
    return ports


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _without_unused(text: str, port: str) -> tuple[str, bool]:
    """``text`` without the port ``port`` if it has no reader, and whether it has one."""
    uses = re.findall(rf"(?<!\S)\\{port}(?!\S)", text)
    declaration = re.compile(rf"^ *wire width 1 input \d+ +\\{port}\n", re.MULTILINE)
    declared = len(declaration.findall(text))
    if len(uses) > declared:
        return text, True
    return declaration.sub("", text), False


def _to_verilog(text: str) -> str:
    remove = "-remove generator -remove top -remove src -remove amaranth.hierarchy"
    remove += " -remove amaranth.decoding"
    with scratch_folder("emit") as folder:
        write_file(folder / "design.il", text)
        commands = [
            "read_rtlil design.il",
            "proc -nomux -norom",
            "memory_collect",
            "opt_clean",
            f"attrmap {remove}",
            f"attrmap -modattr {remove}",
            "write_verilog design.v",
        ]
        try:
            run_yosys(commands, purpose="writing Verilog", folder=folder)
        except YosysError as error:
            raise EmissionError(str(error)) from error
        return (folder / "design.v").read_text(encoding="utf-8")
