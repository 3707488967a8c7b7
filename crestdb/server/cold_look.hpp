// SPDX-License-Identifier: MIT
//
// What a command will touch, looked at before it runs.
//
// look_at() goes the way that the command will go, by slots, and stops where the way leads through
// an object that is not resident: which fields there are is known only when the key's record is there. So
// it is called again when what was noted has been read, until nothing is hidden.
//
// KEYS and RANDOMKEY come across more than memory may have room for: another thread finds their keys, some at
// a time (gather_keys(), keyspace::random_key()). RANDOMKEY in EXEC reads what it comes across itself. Not foreseen, and
// read when it is met: keys beside the one asked for whose 32 bits of hash in the same part are the same.
//
// Threads: by any, holding no part; parts are locked one at a time, for some hundreds of slots.
#pragma once

#include "crestdb/server/cold_memory.hpp"
#include "crestdb/server/command.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace crestdb::server {

// False: something is hidden behind what is not resident, or the probe looks at no more.
bool look_at(keyspace& keys, cold_probe& probe, const command& what, unsigned database,
             arguments args);

// In the part and in a scope: the key of the record, not its value.
bool look_at_name(cold_probe& probe, managed_slot& slot);

// In no part: the keys of the database that have not ended, read in before they are looked at: at least `most` of
// them from `cursor` on, which is then where to go on, 0 at the end. False: the device could not read one.
bool gather_keys(keyspace& keys, cold_memory& cold, unsigned database, std::uint64_t& cursor,
                 std::size_t most, const std::function<void(std::string_view)>& visit);

// One step of a command on a sorted set; `from` begins at 0 and is SIZE_MAX behind the last step.
// In sorted_set_commands.cpp, beside the commands.
bool look_at_sorted_set(cold_probe& probe, const command& what, arguments args, sorted_set& set,
                        std::size_t& from);

} // namespace crestdb::server
