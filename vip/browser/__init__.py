"""The browser page: assembler, simulator, manual, belief propagation and trimming in Pyodide.

:mod:`vip.browser.build` writes the page. :mod:`vip.browser.session` and what it imports run in it,
on CPython for WebAssembly with NumPy and Lark, and need nothing else.
"""
