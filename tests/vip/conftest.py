"""The command line, called as from a shell."""

import pytest

from vip.cli.app import main
from vip.cli.console import console


@pytest.fixture
def vip(monkeypatch, capsys, tmp_path):
    """``vip(*arguments)`` -> exit code, standard output, standard error; run in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    # Whichever test made it.
    monkeypatch.setattr(console, "width", 120)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["vip", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        shown = capsys.readouterr()
        code = end.value.code
        return (code if isinstance(code, int) else 0), shown.out, shown.err

    return run
