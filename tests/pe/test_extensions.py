"""What a declaration of an extension of the load-store unit has to say."""

import pytest

from pe.extensions.extension import LsuExtension


def test_an_extension_says_which_engines_have_it() -> None:
    class Silent(LsuExtension):
        pass

    with pytest.raises(TypeError, match=r"abstract method '?is_in"):
        Silent()  # type: ignore[abstract]
