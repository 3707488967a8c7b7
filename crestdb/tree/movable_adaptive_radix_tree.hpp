// SPDX-License-Identifier: MIT
//
// The adaptive radix tree whose nodes and leaves are managed objects, as keys and values are:
// "movable-adaptive-radix-tree". See adaptive_radix_tree.hpp, and
// docs/indexes/adaptive-radix-tree.md for what that is good for.
#pragma once

#include "crestdb/node_links.hpp"
#include "crestdb/tree/adaptive_radix_tree.hpp"

namespace crestdb {

template <class Protocol = obase::arming>
using movable_adaptive_radix_tree = adaptive_radix_tree<Protocol, movable_links>;

} // namespace crestdb
