// SPDX-License-Identifier: MIT
//
// What a client asks of a store, and where its requests come from.
#pragma once

#include "tools/workload/operation.hpp"

#include <cstdint>

namespace obase::tools {

using workload::operation;

struct request {
    operation what = operation::read;
    std::uint32_t scan_length = 0;
    std::uint32_t value_size = 0; // of writes; 0: the usual one
    std::uint64_t record = 0;
};

// Each client has one of its own.
class request_source {
  public:
    virtual ~request_source() = default;
    // Cheap: it is called within the measured time. An insert names a record that no request has
    // inserted.
    virtual request next() = 0;
    // True: next() must not be called any more.
    virtual bool ended() const { return false; }
    // The record of an insert is in the store.
    virtual void inserted(std::uint64_t /*record*/) {}
};

} // namespace obase::tools
