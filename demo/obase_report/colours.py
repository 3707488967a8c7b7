# SPDX-License-Identifier: MIT
"""Colours that stay apart for the colour-blind (Okabe and Ito, Color Universal Design) and, by
lightness or hatching, on a grey printer."""

INK = "#1a1a1a"
FAINT = "#6b6b6b"
RULE = "#d0d4d9"

RUNS = {"none": "#5a5a5a", "kernel": "#cc79a7", "arming": "#0072b2", "atc": "#009e73"}
DASHES = {"none": "--", "kernel": ":", "arming": "-", "atc": "-."}

HEAPS = {"new": "#f0c75e", "hot": "#d55e00", "cold": "#8cc5ea", "large": "#b9b9b9"}
HATCHES = {"new": "...", "hot": "", "cold": "///", "large": "xx"}

# Share of a cell's bytes that were touched: upper bound, colour. The first is exactly nothing.
NOT_TOUCHED = "#d9dde2"
SHARES = [(0.10, "#fdeaa8"), (0.25, "#fdc05f"), (0.50, "#f08535"), (0.75, "#c8431a"),
          (1.00, "#7a1408")]
