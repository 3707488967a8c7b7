# SPDX-License-Identifier: MIT
"""The drawings that explain: pages with hot and cold objects, and how much memory stays in use."""

from html import escape

from .colours import FAINT, HEAPS, INK, RULE, RUNS
from .units import in_bytes

# Objects of six pages, four to a page, as an allocator places them: in the order they came.
MIXED = ["c.H.", ".c.H", "H.cc", "..Hc", ".Hc.", "H.Hc"]
PAGE_WIDTH, PAGE_HEIGHT, GAP = 150, 46, 12
OBJECT = 29


def _page(x, y, objects):
    parts = [f'<rect x="{x}" y="{y}" width="{PAGE_WIDTH}" height="{PAGE_HEIGHT}" rx="4" '
             f'fill="white" stroke="{FAINT}"/>']
    for index, kind in enumerate(objects):
        hot = kind == "H"
        left, top = x + 8 + index * (OBJECT + 6), y + 9
        parts.append(f'<rect x="{left}" y="{top}" width="{OBJECT}" height="{OBJECT}" rx="3" '
                     f'fill="{HEAPS["hot"] if hot else HEAPS["cold"]}"/>')
        if hot:
            parts.append(f'<text x="{left + OBJECT / 2}" y="{top + 20}" text-anchor="middle" '
                         'font-weight="700" fill="white">H</text>')
    return "".join(parts)


def _store(y, pages, title, note):
    """A box named `title` with pages, two in a row; (svg, its height)."""
    rows = max(-(-len(pages) // 2), 1)
    height = 30 + rows * (PAGE_HEIGHT + GAP)
    parts = [f'<rect x="1" y="{y}" width="338" height="{height}" rx="6" fill="#f4f6f8" '
             f'stroke="{RULE}"/>',
             f'<text x="12" y="{y + 20}" font-weight="700">{title}</text>',
             f'<text x="328" y="{y + 20}" text-anchor="end">{note}</text>']
    if not pages:
        parts.append(f'<text x="170" y="{y + 30 + PAGE_HEIGHT / 2}" text-anchor="middle" '
                     f'fill="{FAINT}">nothing can leave</text>')
    for index, objects in enumerate(pages):
        row, column = divmod(index, 2)
        parts.append(_page(12 + column * (PAGE_WIDTH + 16), y + 30 + row * (PAGE_HEIGHT + GAP),
                           objects))
    return "".join(parts), height


def _panel(memory, disk, label):
    top, height = _store(1, memory, "Memory (DRAM)", f"{len(memory)} pages")
    bottom, more = _store(height + 14, disk, "Disk or compressed", f"{len(disk)} pages")
    return (f'<svg viewBox="0 0 340 {height + more + 16}" role="img" aria-label="{escape(label)}" '
            f'font-size="13.5" fill="{INK}">{top}{bottom}</svg>')


def mixed_pages():
    return _panel(MIXED, [], "Six pages of four objects. Each page holds a hot object, so all six "
                             "stay in memory.")


def sorted_pages():
    hot = sum(page.count("H") for page in MIXED)
    pages = ["H" * 4] * (hot // 4) + (["H" * (hot % 4) + "c" * (4 - hot % 4)] if hot % 4 else [])
    return _panel(pages, ["cccc"] * (len(MIXED) - len(pages)),
                  f"The same objects sorted: the hot ones fill {len(pages)} pages, the other "
                  f"{len(MIXED) - len(pages)} pages hold cold objects only and left memory.")


def memory_bars(bars):
    """Bars of bytes below each other: [(label, bytes or None, protocol or "live")]."""
    largest = max((size for _, size, _ in bars if size), default=0)
    if not largest:
        return ""
    parts, y = [], 0
    for label, size, kind in bars:
        colour = HEAPS["hot"] if kind == "live" else RUNS[kind]
        width = 330 * (size or 0) / largest
        parts.append(f'<text x="0" y="{y + 14}">{escape(label)}: '
                     f'<tspan font-weight="700">{in_bytes(size)}</tspan></text>'
                     f'<rect x="0" y="{y + 20}" width="{max(width, 1):.1f}" height="16" rx="2" '
                     f'fill="{colour}"/>')
        y += 48
    said = "; ".join(f"{label}: {in_bytes(size)}" for label, size, _ in bars)
    return (f'<svg class="bars" viewBox="0 0 332 {y}" role="img" aria-label="{escape(said)}" '
            f'font-size="13.5" fill="{INK}">{"".join(parts)}</svg>')
