// SPDX-License-Identifier: MIT
//
// subject_of_index_test: the index that an executable of the conformance suite (index_test.cpp) is about,
// under each protocol. CMake writes a definition for each index; compiler/crestdb has others.
#pragma once

#include "crestdb/store_of.hpp"

#include <span>

namespace crestdb {

std::span<const store_kind> subject_of_index_test() noexcept;

} // namespace crestdb
