// SPDX-License-Identifier: MIT
int foreign_wins(int* at);
int stays(int* at);
int from_unit(int* at) { return foreign_wins(at) + stays(at); }
