// SPDX-License-Identifier: MIT
//
// subject_of_index_test: the index that an executable of the conformance suite (index_test.cpp) is about,
// under each protocol. CMake writes a definition for each index.
#pragma once

#include "crestdb/store_of.hpp"

namespace crestdb {

const store_kinds& subject_of_index_test() noexcept;

} // namespace crestdb
