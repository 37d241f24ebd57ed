"""Libraries in C++ whose functions are hidden but for those that are called from outside."""

import shlex
import tempfile
from pathlib import Path

import pytest

from support.cache import FOLDER_VARIABLE
from support.native import CompilerError, compile_library, compiler

_SOURCE = 'int hidden() { return 41; }\nextern "C" int vip_seen() { return hidden() + 1; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # As a home may be called.
    odd = tmp_path / 'o\'b "q" $x (1), #:;&'
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    monkeypatch.setenv(FOLDER_VARIABLE, str(odd / "cache"))
    path = tmp_path / "source.cpp"
    path.write_text(_SOURCE, encoding="utf-8")
    return path


def _compiler_without_lto(folder: Path) -> str:
    """A compiler that refuses to optimize at link time."""
    path = folder / "compiler"
    usual = shlex.join(compiler())
    path.write_text(f'#!/bin/sh\ncase "$*" in *-flto*) exit 1 ;; esac\nexec {usual} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_only_what_is_called_from_outside_is_seen(source: Path) -> None:
    library = compile_library("seen", source, ("-O1",), exports="vip_*")
    assert library.vip_seen() == 42
    assert not hasattr(library, "_Z6hiddenv")
    assert hasattr(compile_library("all", source, ("-O1",)), "_Z6hiddenv")


def test_a_compiler_that_cannot_hide_functions_does_without(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", _compiler_without_lto(tmp_path))
    assert compile_library("seen", source, ("-O1",), exports="vip_*").vip_seen() == 42


def test_an_error_of_the_source_is_reported(source: Path) -> None:
    # The compiler's first line says only where it is.
    source.with_name("part.h").write_text("int vip_seen(", encoding="utf-8")
    source.write_text('#include "part.h"\n', encoding="utf-8")
    with pytest.raises(CompilerError, match=r"fails on source\.cpp: .*error: "):
        compile_library("broken", source, ("-O1",), exports="vip_*")


def test_a_full_disk_is_reported(
    small: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where the first fixture made it.
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    source.write_text('extern "C" char vip_seen[1 << 22] = {1};\n', encoding="utf-8")
    with pytest.raises(CompilerError, match=rf"{small}.*No space left on device"):
        compile_library("large", source, ("-O1",))
