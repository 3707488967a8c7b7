// SPDX-License-Identifier: MIT
//
// movable_segmented_hash_table: segmented_hash_table.hpp with nodes that are managed objects and
// move as keys and values do; under a name for where a class template with one parameter is asked
// for.
//
// Where values are large, moving the nodes gains little; see segmented_hash_nodes.hpp.
#pragma once

#include "crestdb/hash/segmented_hash_nodes.hpp"
#include "crestdb/hash/segmented_hash_table.hpp"

#include <obase/arming.hpp>

namespace crestdb {

template <class Protocol = obase::arming>
using movable_segmented_hash_table = segmented_hash_table<Protocol, movable_nodes>;

} // namespace crestdb
