"""Chromium without a screen, driven through its debugging pipe, for tests and screenshots."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any

import pytest

from support.extras import MissingExtraError
from support.files import write_file
from vip.browser.runtime import runtime_files

_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: The browser; None: none is installed.
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Browser:
    """One page in a browser of its own, to be used in a ``with`` statement.

    Attributes:
        errors: texts of exceptions and of errors in the console, so far.
    """

    def __enter__(self) -> "Browser":
        assert CHROMIUM is not None
        self.errors: list[str] = []
        self._number = 0
        self._folder = tempfile.mkdtemp()
        read_commands, self._out = os.pipe()
        self._in, write_answers = os.pipe()

        def pipes() -> None:
            os.dup2(read_commands, 3)
            os.dup2(write_answers, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={self._folder}"],
            pass_fds=(3, 4, read_commands, write_answers),
            preexec_fn=pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self._buffer = b""
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._folder, ignore_errors=True)

    def send(self, method: str, **parameters: object) -> Any:
        """Do one command of the DevTools protocol; its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._in, 1 << 16)
            assert data, "the browser ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        details = found.get("params", {})
        if found.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(details["exceptionDetails"]))
        if found.get("method") == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.errors.append(details["entry"]["text"])
        if found.get("method") == "Runtime.consoleAPICalled" and details["type"] == "error":
            self.errors.append(str(details["args"]))
        return found

    def open(self, page: Path | str, width: int, height: int) -> None:
        """Show a file, or an address, in a window of this size in pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.send("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        for _ in range(200):
            if self.value("document.readyState") == "complete":
                return
            time.sleep(0.05)
        raise AssertionError(f"{page} does not load")

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until the page shows ``text``."""
        end = time.monotonic() + seconds
        while text not in self.value("document.body.innerText"):
            assert time.monotonic() < end, f"{text!r} does not appear: {self.errors}"
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}),
            )

    def screenshot(self, path: Path, part: tuple[int, int, int, int] | None = None) -> None:
        """Write the page as PNG.

        Parameters:
            part: left, top, width and height in pixels; None: the whole page.
        """
        clip: dict[str, object] = {}
        if part is not None:
            sides = dict(zip(("x", "y", "width", "height"), part, strict=True))
            clip["clip"] = {**sides, "scale": 1}
        found = self.send("Page.captureScreenshot", captureBeyondViewport=True, **clip)
        write_file(path, base64.b64decode(found["data"]))

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve ``folder`` on this machine while the statement lasts; gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def _have_pyodide() -> bool:
    try:
        runtime_files(None)
    except MissingExtraError:
        return False
    return True


needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
needs_pyodide = pytest.mark.skipif(
    not _have_pyodide(), reason="the extra browser is not installed: make browser"
)
