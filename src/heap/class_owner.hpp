// SPDX-License-Identifier: MIT
//
// class_owner: who answers for the objects of a class of a space in the place of its dense heap. The
// space goes on to say which addresses are its own; size and end of an object in that class are asked
// of the owner. The audit is one (audit/arenas.hpp): it lays objects out so that what they have left
// can become inaccessible.
//
// Threads: any, without a lock of the space's.
#pragma once

#include <cstddef>

namespace obase::heap {

class class_owner {
  public:
    // 0 where no object begins.
    virtual std::size_t size_of(const void* object) const noexcept = 0;
    virtual void free(void* object) noexcept = 0;

  protected:
    ~class_owner() = default;
};

} // namespace obase::heap
