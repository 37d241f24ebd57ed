"""Libraries in C++ whose functions are hidden but for those that are called from outside."""

import shlex
from pathlib import Path

import pytest

from isa.support.cache import FOLDER_VARIABLE
from isa.support.native import CompilerError, compile_library, compiler

_SOURCE = 'int hidden() { return 41; }\nextern "C" int vip_seen() { return hidden() + 1; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
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
    source.write_text("int vip_seen(", encoding="utf-8")
    with pytest.raises(CompilerError, match=r"fails on source\.cpp"):
        compile_library("broken", source, ("-O1",), exports="vip_*")
