# SPDX-License-Identifier: MIT
"""Numbers as people read them. None is "not measured" everywhere."""

NOT_MEASURED = "not measured"


def _said(text):
    """Makes a formatter say NOT_MEASURED for None."""
    return lambda value: NOT_MEASURED if value is None else text(value)


def byte_unit(largest):
    """(name, bytes) of the unit in which `largest` is between 1 and 1024."""
    for name, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(largest) >= size:
            return name, size
    return "bytes", 1


def count_unit(largest):
    """(word, factor) for axes of counts."""
    for word, factor in (("million", 1e6), ("thousand", 1e3)):
        if abs(largest) >= factor:
            return word, factor
    return "", 1


def _digits(value):
    """Three significant digits, without an exponent."""
    size = abs(value)
    if size >= 99.95 or value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def _bytes(value):
    name, size = byte_unit(value)
    return f"{_digits(value / size)} {name}"


def _count(value):
    word, factor = count_unit(value)
    return f"{_digits(value / factor)} {word}".strip()


def _rate(value):
    for letter, factor in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return f"{_digits(value / factor)} {letter}/s"
    return f"{_digits(value)} /s"


def _percent(value):
    value *= 100
    # 99.95 % is not 100 %.
    return f"{value:.2f} %" if 0 < abs(value) < 1 else f"{value:.1f} %"


in_bytes = _said(_bytes)
in_count = _said(_count)
in_percent = _said(_percent)
in_whole_percent = _said(lambda value: f"{round(100 * value)} %")
in_microseconds = _said(lambda value: f"{_digits(value)} µs")
in_rate = _said(_rate)
as_ratio = _said(lambda value: f"{value:.2f}×" if value < 10 else f"{value:.1f}×")
as_number = _said(lambda value: f"{value:,.0f}" if value == int(value) else f"{value:g}")
as_text = _said(str)
