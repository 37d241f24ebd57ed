from pathlib import Path

import pytest

from isa.files import write_atomically


def test_an_error_names_the_path_that_was_given(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "file"
    with pytest.raises(FileNotFoundError) as error:
        write_atomically(missing, b"x")
    assert error.value.filename == str(missing)
    with pytest.raises(IsADirectoryError) as refused:
        write_atomically(tmp_path, b"x")
    assert refused.value.filename == str(tmp_path)
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}.*"))


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    write_atomically(path, b"after")
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]
