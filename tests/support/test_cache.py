"""The cache of results between runs."""

from pathlib import Path

import pytest

from support.cache import CacheError, build_folder


@pytest.mark.parametrize(
    ("chosen", "cache", "expected"),
    [
        (None, None, "/somewhere/of/user/.cache/vip"),
        ("", "", "/somewhere/of/user/.cache/vip"),
        (None, "/var/caches", "/var/caches/vip"),
        (None, "relative/caches", "/somewhere/of/user/.cache/vip"),
        ("/some/where", "/var/caches", "/some/where"),
    ],
)
def test_the_folder_is_the_users_and_not_the_current_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str, cache: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/somewhere/of/user")
    for name, value in (("VIP_BUILD_DIR", chosen), ("XDG_CACHE_HOME", cache)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert build_folder() == Path(expected)


def test_a_relative_choice_counts_from_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VIP_BUILD_DIR", "here")
    assert build_folder() == tmp_path / "here"


def test_without_a_home_the_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("VIP_BUILD_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(CacheError, match="set VIP_BUILD_DIR"):
        build_folder()
