"""The verb ``browser_page``: a static page that contains VIP's Python part."""

import re
from importlib.metadata import version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from isa.manual import manual
from microkernels.data.pictures import need_photographs
from microkernels.data.stereo import StereoScene, motorcycle
from support.extras import need, together
from support.files import write_atomically
from vip.output import WrittenPage
from vip_rooms import ROOMS

from .runtime import FILES, LOCK, lock_file, runtime_files

#: Width and height of the problem, and its labels.
SIZE = (32, 24)
_LABELS = 16
#: Pixels of the photograph per pixel of the problem, along each side.
_ZOOM = 10


def packed_scene() -> tuple[bytes, bytes]:
    """The problem of the Motorcycle pair as an archive of NumPy, and its left photograph as PNG.

    Raises:
        MissingExtraError: scikit-image or Pillow is not installed.
    """
    scene = motorcycle(*SIZE, _LABELS)
    file = BytesIO()
    np.savez_compressed(
        file,
        costs=scene.problem.data_costs,
        smoothness=scene.problem.smoothness,
        truth=np.asarray(scene.truth),
    )
    return file.getvalue(), _photograph(scene)


def _photograph(scene: StereoScene) -> bytes:
    """The part of the left photograph that the problem covers."""
    # The extra that the scene needs installs it.
    from PIL import Image

    file = BytesIO()
    size = (_ZOOM * SIZE[0], _ZOOM * SIZE[1])
    Image.fromarray(scene.picture).resize(size).save(file, "PNG")
    return file.getvalue()


_PAGE = Path(__file__).parent / "page"
_INDEX = "index.html"
_OWN = ("page.js", "worker.js", "style.css")
_PYTHON, _SCENE, _PHOTOGRAPH = "vip.zip", "stereo.npz", "photograph.png"
#: Names of the files of the page.
PAGE_FILES = (_INDEX, *_OWN, _PYTHON, _SCENE, _PHOTOGRAPH, LOCK, *FILES)
#: Files of a package that run in the page.
_ENDINGS = (".py", ".lark")
#: Time stamp of all files in the archive, which makes it reproducible byte for byte.
_TIME = (1980, 1, 1, 0, 0, 0)


def browser_page(folder: Path | str, *, pyodide: Path | None = None) -> WrittenPage:
    """Write a static page that runs VIP in a browser and needs only the server of its files.

    ``browser_page("build/browser").path`` offers the assembler, simulator, manual, belief
    propagation and trimming; Pyodide runs the same Python code.

    Parameters:
        folder: created if missing. pyodide: folder with Pyodide :data:`vip.browser.runtime.RELEASE`
            and its NumPy; None: that of the extra.

    Raises:
        VipError: an extra is missing, or the files are not those of this release of Pyodide.
        OSError: a file can't be read or written.
    """
    with together():
        need("markdown_it", "pages with a manual")
        need_photographs()
    contents = {**runtime_files(pyodide), LOCK: lock_file()}
    contents[_PYTHON] = _sources()
    contents[_SCENE], contents[_PHOTOGRAPH] = packed_scene()
    contents |= {name: (_PAGE / name).read_bytes() for name in _OWN}
    text = (_PAGE / _INDEX).read_text(encoding="utf-8")
    text = text.replace("{{manual}}", _manual()).replace("{{version}}", version("vip-inference"))
    # Written last: a page that exists is complete.
    contents[_INDEX] = text.encode()
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(target / name, content)
    return WrittenPage(
        path=target / _INDEX,
        files=len(contents),
        bytes=sum(map(len, contents.values())),
    )


def _manual() -> str:
    # Imported late: an extra installs it.
    from markdown_it import MarkdownIt

    html = str(MarkdownIt("commonmark").enable("table").render(manual()))
    # The page has its own heading, and lacks the documents that the manual links to.
    return re.sub(r"</?a[^>]*>", "", html).replace("<h1>", "<h2>").replace("</h1>", "</h2>")


def _sources() -> bytes:
    """VIP's packages and the parser that they need, as an archive."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for package in ("vip_rooms", *ROOMS, "lark"):
            spec = find_spec(package)
            assert spec is not None
            assert spec.origin is not None
            origin = Path(spec.origin)
            within = origin.parent.parent if origin.stem == "__init__" else origin.parent
            for path in sorted(origin.parent.rglob("*")) if within != origin.parent else [origin]:
                if path.suffix in _ENDINGS:
                    name = path.relative_to(within).as_posix()
                    archive.writestr(ZipInfo(name, _TIME), path.read_bytes(), ZIP_DEFLATED)
    return file.getvalue()
