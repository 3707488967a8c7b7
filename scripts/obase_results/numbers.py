# SPDX-License-Identifier: MIT
"""What repeated runs say, and numbers as they stand in a table; as tools/bench/spread.cpp and figure.cpp have them."""


def spread(values):
    """(median, low, high, trusted): low to high holds the true median in 95 of 100 cases, if trusted.

    Order statistics, whatever the distribution is. Below six values the interval is the whole sample, and not trusted.
    """
    values = sorted(values)
    count = len(values)
    middle = count // 2
    median = values[middle] if count % 2 else (values[middle - 1] + values[middle]) / 2
    # The interval from the k-th smallest to the k-th largest misses the median when fewer than k of n fair coins show
    # the same side.
    tail, probability, k = 0.0, 0.5 ** count, 0
    for i in range(middle):
        tail += probability
        if 2 * tail > 0.05:
            break
        k = i + 1
        probability *= (count - i) / (i + 1)
    outside = max(k - 1, 0)
    return median, values[outside], values[count - 1 - outside], k > 0


def verdict(low, high, trusted, at_least=None, at_most=None):
    """"" without a target; "undecided" when the interval straddles it, or is none."""
    if at_least is None and at_most is None:
        return ""
    if not trusted:
        return "undecided"
    if at_least is not None:
        return "met" if low >= at_least else "not met" if high < at_least else "undecided"
    return "met" if high <= at_most else "not met" if low > at_most else "undecided"


def number(value, unit=""):
    """Four digits or so, with its unit; "" if there is none."""
    if value is None:
        return ""
    size = abs(value)
    for least, divisor, mark in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= least:
            text = f"{value / divisor:.{1 if mark == 'k' else 2}f}{mark}"
            break
    else:
        text = f"{value:.0f}" if size >= 100 else f"{value:.3f}"
    return f"{text} {unit}" if unit else text


def ratio(value):
    return "" if value is None else f"{value:.3f}"


def interval(pair, form=ratio):
    return "" if pair is None else f"[{form(pair[0])}, {form(pair[1])}]"


def mib(size):
    return "" if size is None else f"{size / 2**20:.{0 if size >= 100 * 2**20 else 1}f} MiB"
