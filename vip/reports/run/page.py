"""The verb ``report_run``: a page on a result."""

import json
from collections.abc import Callable, Iterable, Mapping
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from support.errors import VipError, clipped, printable
from support.files import read_bytes, write_atomically
from vip.output import WrittenPage, origin_line

from .figures import FIGURES

STYLE = """
:root{--ink:#1e293b;--quiet:#64748b;--line:#e2e8f0}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);max-width:62em;margin:0 auto;padding:1em}
h1{font-size:1.5em;overflow-wrap:anywhere}h2{font-size:1.15em;margin:1.6em 0 .4em}
h3{font-size:1em;margin:.8em 0 .3em}
section{break-inside:avoid}img{max-width:100%}
.note,footer{color:var(--quiet);font-size:13px;overflow-wrap:anywhere}
.wide{overflow-x:auto}
table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;
border-bottom:1px solid var(--line)}td:first-child,th:first-child{text-align:left}
.legend{display:flex;flex-wrap:wrap;gap:.3em;margin:.4em 0}
.legend button{font:inherit;font-size:13px;border:1px solid var(--line);border-radius:4px;
background:#fff;color:inherit;padding:.1em .5em;cursor:pointer}
.legend button[aria-pressed=false]{opacity:.4}
.legend i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}
.bars{display:grid;grid-template-columns:max-content 1fr;gap:3px .6em;align-items:center;
font-size:13px}
.bars div{position:relative;display:flex;height:1.6em;background:#f1f5f9}
.bars b{display:block;height:100%}
.bars u{position:absolute;top:-2px;bottom:-2px;width:3px;background:var(--ink);
box-shadow:0 0 0 1px #fff}
.bars.thin{gap:1px .6em;font-size:9px;line-height:1}.bars.thin div{height:10px}
.plot{font-size:13px;color:var(--quiet)}.plot svg{display:block;width:100%;height:14em;
background:#f1f5f9}
.chart{width:100%;height:auto}.chart text{font-size:13px;fill:var(--quiet);
dominant-baseline:middle}.chart line{stroke:var(--line)}
.share{stroke-dasharray:6 5}.roof{fill:none;stroke:var(--ink);stroke-width:2}
.treemap{position:relative;aspect-ratio:2;background:#f1f5f9}
.treemap b{position:absolute;overflow:hidden;border:1px solid #fff;color:#fff;font-weight:400;
font-size:12px;line-height:1.2;padding:2px}
.torus{display:grid;grid-template-columns:repeat(var(--columns),minmax(0,7em));
gap:6px}
.torus div{position:relative;aspect-ratio:1;border:1px solid var(--line)}
.torus span{position:absolute;inset:0;display:grid;place-items:center;font-size:13px}
.torus b{position:absolute}
.torus .north{top:0;left:22%;right:22%;height:22%}
.torus .south{bottom:0;left:22%;right:22%;height:22%}
.torus .west{left:0;top:22%;bottom:22%;width:22%}
.torus .east{right:0;top:22%;bottom:22%;width:22%}
[data-tip]:hover,[data-tip]:focus{outline:2px solid var(--ink);outline-offset:-1px;z-index:1}
polygon[data-tip]:focus,circle[data-tip]:focus{stroke:var(--ink);stroke-width:2}
.hidden{display:none!important}
#tip{position:fixed;left:1em;bottom:1em;max-width:calc(100% - 2em);background:var(--ink);color:#fff;
padding:.3em .7em;border-radius:4px;font-size:14px;visibility:hidden;z-index:9}
details{margin-top:2em}pre{font-size:12px;overflow:auto;max-height:30em}
@media(max-width:40em){body{font-size:16px}.bars{grid-template-columns:1fr}
.bars span{margin-top:.2em}
.chart text{font-size:22px}.treemap{aspect-ratio:1.4}}
@media print{*{print-color-adjust:exact;-webkit-print-color-adjust:exact}.legend button{border:0}
#tip,details{display:none}}
""".strip()

SCRIPT = """
const tip=document.getElementById('tip');
function show(mark){tip.textContent=mark?mark.dataset.tip:'';
tip.style.visibility=mark?'visible':'hidden'}
for(const kind of ['mouseover','focusin'])
document.addEventListener(kind,e=>show(e.target.closest('[data-tip]')));
document.addEventListener('focusout',()=>show(null));
document.addEventListener('keydown',e=>{if(e.key==='Escape')show(null)});
document.addEventListener('click',e=>{const button=e.target.closest('button[data-series]');
if(!button)return;const on=button.getAttribute('aria-pressed')!=='true';
button.setAttribute('aria-pressed',on);
for(const mark of button.closest('section').querySelectorAll('[data-tip][data-series]'))
if(mark.dataset.series===button.dataset.series)mark.classList.toggle('hidden',!on)});
""".strip()


#: Exceptions of a figure for a part of the result that has its name but another form.
_OTHER_FORM = (AttributeError, ArithmeticError, IndexError, KeyError, TypeError, ValueError)


def _drawn(draw: Callable[[Mapping[str, Any]], str], content: Mapping[str, Any]) -> str:
    """The figure; "" if the result has nothing for it."""
    try:
        return draw(content)
    except _OTHER_FORM:
        return ""


def run_page(name: str, content: Mapping[str, Any], folder: Path = Path()) -> str:
    """The page's HTML.

    Parameters:
        name: of the result, its title.
        content: what a command wrote with ``--json``.
        folder: of the result; the path of its picture is relative to it.
    """
    origin = content.get("provenance")
    origin = origin if isinstance(origin, dict) else {}
    entries = {key: value for key, value in content.items() if key != "provenance"}
    if isinstance(content.get("picture"), str):
        entries["picture"] = str(folder / content["picture"])
    sections = [section for draw in FIGURES if (section := _drawn(draw, entries))]
    source = escape(json.dumps(content, indent=1))
    sections.append(f"<details><summary>All data</summary><pre>{source}</pre></details>")
    return html_page(name, origin, sections)


def html_page(name: str, origin: Mapping[str, Any], sections: Iterable[str]) -> str:
    """A page of ``sections`` (:mod:`vip.reports.run.charts`) that needs no other file.

    Parameters:
        name: its title. origin: where its content comes from (:func:`vip.output.provenance`).
    """
    command = escape(str(origin.get("command", "")))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(name)}</title><style>{STYLE}</style></head>'
        f"<body><h1>{escape(name)}</h1>\n"
        + (f"<pre>{command}</pre>\n" if command else "")
        + "\n".join(sections)
        + f'\n<footer>{escape(origin_line(origin))}</footer><div id="tip" role="status"></div>'
        + f"<script>{SCRIPT}</script></body></html>\n"
    )


#: Most bytes of a result, and of its page.
_RESULT_BYTES = 2 << 20
_PAGE_BYTES = 3 << 20


class ResultError(VipError):
    """A file that is not a result; one line says why."""


def report_run(result: Path | str, page: Path | str) -> WrittenPage:
    """Write an interactive page on a result of any command.

    ``report_run("bp.json", "bp.html")`` draws what the result contains: where the
    cycles of each engine went, roofline, DRAM bandwidth and rows, links of the torus, area before
    and after trimming, power. The page needs no other file and no network.

    Parameters:
        result: file that a command wrote with ``--json``, up to 2 MB.
        page: HTML file to write, below 3 MB.

    Raises:
        ResultError: not a result, or of another minor version of VIP.
        OSError: a file can't be read or written.
    """
    result, page = Path(result), Path(page)
    text = run_page(result.stem, _content(result), result.parent)
    data = text.encode()
    if len(data) > _PAGE_BYTES:
        raise ResultError(
            f"{result}: its page would have {len(data):,} bytes, at most 3 MB are allowed"
        )
    write_atomically(page, data)
    headings = tuple(part.split("</h2>")[0] for part in text.split("<section><h2>")[1:])
    return WrittenPage(path=page, bytes=len(data), figures=headings)


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bytes(path, _RESULT_BYTES))
    except (ValueError, RecursionError) as error:
        why = clipped(printable(str(error)), 100)
        raise ResultError(f"{path}: not JSON: {why}") from None
    origin = content.get("provenance") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(origin, dict) or "version" not in origin:
        raise ResultError(f"{path}: not a result file, as written by --json")
    installed = version("vip-inference")
    if _series(str(origin["version"])) != _series(installed):
        writer = clipped(printable(str(origin["version"])), 20)
        raise ResultError(
            f"{path}: of version {writer}, this is {installed}; run the command again"
        )
    return content


def _series(text: str) -> list[str]:
    """Major and minor number of a version; results keep their form within a minor one."""
    return text.split(".")[:2]
