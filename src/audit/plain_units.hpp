// SPDX-License-Identifier: MIT
//
// Which code of the process was compiled without the passes and has to do with functions on marked fields: it may access
// the fields as plain pointers.
//
//     audit::plain_units units;
//     units.look([](void*, const char* line) { puts(line); }, nullptr); // once, and when something may have been loaded
//
// Such functions, and variables with marked fields that other units see, are in the tables of sites (places.hpp: `shares`).
// What is looked at:
//   - the program, and libraries with units of the passes, but those that the drivers have linked, which name such
//     units themselves (compiler/driver/link_check.cpp): their code, for calls of such functions;
//   - each other library: what its symbols name of what those export. What a program of the drivers is linked with was
//     named then.
//
// What is in the way: `strip`, which takes tables and symbols. Calls by address, and fields that are accessed without a
// call, do not show; nor do two sources of one name in two folders.
#pragma once

#include <set>
#include <string>

namespace obase::audit {

// use(context, address behind the call, name of the function), once for each calling function of the program. A calling unit
// is known by its line table, which names no unit of the table of sites, or by having none where the function has one.
// Allocates, so not in a handler. Cost: a pass over the program's code, and one over its line tables.
void for_each_call_from_plain_units(void (*use)(void* context, const void* behind,
                                                const char* function) noexcept,
                                    void* context);

class plain_units {
  public:
    // tell(context, line) of what was loaded since the last call. Where nothing was: a walk over the list of what is
    // loaded. Else it reads the files. Throws std::bad_alloc, and then has forgotten what is left.
    void look(void (*tell)(void* context, const char* line), void* context);

  private:
    unsigned long long loaded_ = 0;             // ever, at the last call
    std::set<std::string> seen_;                // files that were looked at
    std::set<std::string, std::less<>> shared_; // what they export of `shares`
    std::set<std::string, std::less<>> named_;  // libraries that the driver has looked at
};

} // namespace obase::audit
