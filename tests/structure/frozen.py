"""``python -m tests.structure.frozen``: digests of what restructuring must not change.

``frozen.json`` has those of the Verilog of each preset, and of the programs, memories and expected
outputs of each application. A commit that changes hardware or kernels on purpose records them anew
(``--record``, ``--record programs``) and says why.
"""

import hashlib
import json
import sys
from pathlib import Path

from isa.image import DramImage
from microkernels.suite import Application, suite
from soc.generate.generate import verilog
from soc.generate.presets import PRESETS

FILE = Path(__file__).with_name("frozen.json")


def recorded() -> dict[str, dict[str, str]]:
    """The digests on record: by kind (``verilog``, ``programs``) and name."""
    content: dict[str, dict[str, str]] = json.loads(FILE.read_text())
    return content


def verilog_digest(preset: str) -> str:
    """SHA-256 of all modules of a preset, by their names."""
    modules = verilog(PRESETS[preset]).modules
    return hashlib.sha256("".join(modules[name] for name in sorted(modules)).encode()).hexdigest()


def application_digest(application: Application) -> str:
    """SHA-256 of the launches, memory and expected outputs of an application's jobs."""
    digest = hashlib.sha256()
    for job in application.jobs:
        for launch in job.launches:
            digest.update(repr((launch.parameters, tuple(launch.program.words))).encode())
        with DramImage(job.end) as memory:
            job.prepare(memory)
            digest.update(memory.read(0, job.end))
        digest.update(job.expected.tobytes())
    return digest.hexdigest()


def digests(kind: str) -> dict[str, str]:
    """The digests of this checkout, of ``verilog`` (2 minutes) or ``programs``."""
    if kind == "verilog":
        return {name: verilog_digest(name) for name in sorted(PRESETS)}
    return {name: application_digest(app) for name, app in suite().items()}


def main() -> None:
    """Compare with the record, or write it; those of one kind if it is named."""
    record = recorded()
    named = [kind for kind in record if kind in sys.argv] or list(record)
    current = {kind: digests(kind) for kind in named}
    if "--record" in sys.argv:
        FILE.write_text(json.dumps(record | current, indent=2) + "\n")
        return
    differing = [
        f"{kind} of {name}"
        for kind, names in current.items()
        for name, digest in record[kind].items()
        if names.get(name) != digest
    ]
    print("\n".join(differing) or "as recorded")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
