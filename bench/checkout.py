"""The checkout that a measurement is made in: its commit, and whether files differ from it."""

import subprocess
from pathlib import Path

from .measurement import BenchError

__all__ = ["ROOT", "clean_commit", "has_commit"]

#: The checkout's top folder.
ROOT = Path(__file__).parent.parent
#: Files that recording itself changes: the records, and files rendered from them.
_WRITTEN = ("bench/results", "docs", "README.md")


def _git(*arguments: str, root: Path) -> str:
    command = ["git", "-C", str(root), *arguments]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise BenchError("a record needs git, to name the commit that was measured") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[:1]
        raise BenchError(f"{root}: no commit to record: {''.join(reason)}") from None
    return found.stdout


def clean_commit(root: Path = ROOT) -> str:
    """The commit in the checkout ``root``, as 40 hexadecimal digits.

    Raises:
        BenchError: there is no git or no checkout, or files differ from the commit or are not in
            it. Records, ``README.md`` and ``docs`` may differ: no measurement reads them.
    """
    top = Path(_git("rev-parse", "--show-toplevel", root=root).strip())
    if top.resolve() != root.resolve():
        raise BenchError(f"{root}: a record needs a checkout of VIP; this is a part of {top}")
    paths = [".", *(f":(exclude){path}" for path in _WRITTEN)]
    changed = _git("status", "--porcelain", "--untracked-files=all", "--", *paths, root=root)
    if lines := changed.splitlines():
        more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
        raise BenchError(
            f"a record needs a clean checkout; {lines[0][3:]}{more} differ from the commit"
        )
    return _git("rev-parse", "HEAD", root=root).strip()


def has_commit(commit: str, root: Path = ROOT) -> bool:
    """Whether ``commit`` is an ancestor of the checked-out commit, or this commit itself; true in a
    checkout without its history.

    Raises:
        BenchError: there is no git or no checkout.
    """
    if _git("rev-parse", "--is-shallow-repository", root=root).strip() == "true":
        return True
    command = ["git", "-C", str(root), "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
