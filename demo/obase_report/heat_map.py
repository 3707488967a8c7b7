# SPDX-License-Identifier: MIT
"""The address space as rows of small cells, coloured by how much of each was touched in one window.

All maps of a section are drawn to the same scale: a cell stands for the same number of bytes in
each, so that areas may be compared. Cells of one colour are one path, which keeps the page small.
"""

from html import escape

from .colours import FAINT, NOT_TOUCHED, SHARES
from .units import in_bytes, in_percent

COLUMNS = 64
CELL = 12

NAMES = {
    "jemalloc": "jemalloc, the ordinary allocator",
    "new": "NEW, not yet sorted",
    "hot": "HOT, in use",
    "cold": "COLD, not in use",
    "large": "LARGE, objects with pages of their own",
}


def scale_of(maps):
    """Bytes per cell that all of the maps can be drawn with: the coarsest of theirs."""
    return max((region["bytes_per_cell"] for regions in maps for region in regions), default=None)


def resample(region, bytes_per_cell):
    """The region's cells, each standing for `bytes_per_cell` (not fewer than now); the last may be
    shorter. Weighted by bytes, so that the sum of the touched bytes stays."""
    own, total = region["bytes_per_cell"], region["bytes"]
    touched, weight = {}, {}
    for index, share in enumerate(region["cells"]):
        begin, end = index * own, min((index + 1) * own, total)
        while begin < end:
            cell = int(begin // bytes_per_cell)
            until = min(end, (cell + 1) * bytes_per_cell)
            if until <= begin:
                break
            touched[cell] = touched.get(cell, 0.0) + share * (until - begin)
            weight[cell] = weight.get(cell, 0.0) + (until - begin)
            begin = until
    return [touched[cell] / weight[cell] for cell in sorted(weight)]


def colour_of(share):
    if share <= 0:
        return NOT_TOUCHED
    return next((colour for bound, colour in SHARES if share <= bound), SHARES[-1][1])


def _merged(regions):
    """Regions of one name that follow each other, as one list per name."""
    groups = []
    for region in regions:
        if groups and groups[-1][0] == region["name"]:
            groups[-1][1].append(region)
        else:
            groups.append((region["name"], [region]))
    return groups


def draw(regions, bytes_per_cell):
    """HTML: a line of text and an SVG for each region."""
    parts = []
    for name, members in _merged(regions):
        cells = [c for region in members for c in resample(region, bytes_per_cell)]
        size = sum(region["bytes"] for region in members)
        share = _touched_bytes(members) / size if size else 0
        paths = {}
        for index, value in enumerate(cells):
            row, column = divmod(index, COLUMNS)
            paths.setdefault(colour_of(value), []).append(
                f"M{column * CELL} {row * CELL}h{CELL - 1}v{CELL - 1}h-{CELL - 1}z")
        parts.append(f'<p class="region"><b>{escape(NAMES.get(name, name))}</b>: {in_bytes(size)}, '
                     f"{in_percent(share)} of it touched</p>")
        height = max(-(-len(cells) // COLUMNS), 1) * CELL
        parts.append(f'<svg class="heat" viewBox="0 0 {COLUMNS * CELL} {height}" '
                     'aria-hidden="true"><title>'
                     f'{escape(name)}: {len(cells)} cells from address '
                     f'{escape(members[0]["begin"])}</title>')
        parts += [f'<path fill="{colour}" d="{"".join(steps)}"/>'
                  for colour, steps in paths.items()]
        parts.append("</svg>")
    return "\n".join(parts)


def _touched_bytes(regions):
    total = 0.0
    for region in regions:
        for index, share in enumerate(region["cells"]):
            left = region["bytes"] - index * region["bytes_per_cell"]
            total += share * max(min(region["bytes_per_cell"], left), 0)
    return total


def legend(bytes_per_cell):
    """What the colours mean, as HTML."""
    lower, items = 0, [(NOT_TOUCHED, "not touched")]
    for bound, colour in SHARES:
        begin = "above 0" if lower == 0 else f"{lower * 100:.0f}"
        items.append((colour, f"{begin} to {bound * 100:.0f} %"))
        lower = bound
    swatches = "".join(f'<li><svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">'
                       f'<rect width="14" height="14" fill="{colour}" stroke="{FAINT}" '
                       f'stroke-width="1"/></svg> {text}</li>' for colour, text in items)
    return (f'<ul class="legend"><li>Bytes touched in one window:</li>{swatches}'
            f"<li>One cell is {in_bytes(bytes_per_cell)}, {bytes_per_cell / 4096:,.0f} pages.</li>"
            "</ul>")
