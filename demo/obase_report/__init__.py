# SPDX-License-Identifier: MIT
"""What demo/report is made of: results are read (result), said in text (table) and as a page (page)."""
