// SPDX-License-Identifier: MIT
//
// The index that a program of this folder is about. CMake writes a source for each index, which clang
// compiles in up to three ways: with marked pointers by the passes, as the plain program that the same
// source is for other compilers (CRESTDB_UNMARKED), with hand-written guides (CRESTDB_BY_HAND).
#pragma once

#include "crestdb/subject_of_index_test.hpp"

namespace crestdb {

// With guides of the arming protocol, as crestdb::store has it.
store_kind by_hand() noexcept;

} // namespace crestdb
