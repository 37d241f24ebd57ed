"""Depth from a pair of photographs, on the timing model of one engine.

``python examples/stereo.py`` takes the pair ``motorcycle`` of scikit-image (Middlebury 2014), at an
eighth of its size, and writes ``build/depth.png``. ``python examples/stereo.py LEFT RIGHT`` takes
your own pair, rectified.
"""

import sys
from pathlib import Path

import skimage

import vip

PAIR = Path(skimage.__path__[0]) / "data"


def main(left=PAIR / "motorcycle_left.png", right=PAIR / "motorcycle_right.png"):
    """Solve the pair, and draw its disparities."""
    options = vip.PairOptions(labels=16, scale=0.125)
    solve = vip.MrfOptions(iterations=5, on="model")
    depth = vip.mrf_stereo(Path(left), Path(right), options, solve)
    Path("build").mkdir(exist_ok=True)
    depth.save(Path("build/depth.png"))
    cycles = sum(depth.cycles.values())
    print(f"every message equals the golden model's: {depth.match}, {cycles:,} cycles")


if __name__ == "__main__":
    main(*sys.argv[1:])
