/* SPDX-License-Identifier: MIT */
static const int* watched;
void observe(const int* key) { watched = key; }
int observed(void) { return *watched; }
