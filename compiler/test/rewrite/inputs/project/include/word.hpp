// SPDX-License-Identifier: MIT
#pragma once
using word = long;
