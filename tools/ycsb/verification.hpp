// SPDX-License-Identifier: MIT
//
// The last check of a run: every record is read and compared with the ledger.
#pragma once

#include "tools/ycsb/client.hpp"

namespace obase::tools {

// `records`: how many there may be. No client may be at work. Counts what is missing or should not
// be there as lost writes; what is there, but not the value that was written last, as corrupt. With
// `in_place` a value may be a mix of versions, and only its presence is checked.
client_counts verify_all(const crestdb::store& store, const record_set& records,
                         const value_ledger& ledger, std::uint64_t count, unsigned threads,
                         bool in_place);

} // namespace obase::tools
