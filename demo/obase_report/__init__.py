# SPDX-License-Identifier: MIT
"""What demo/report.py is made of: results are read (result), then told as a table and as a page."""
