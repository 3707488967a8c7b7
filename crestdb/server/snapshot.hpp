// SPDX-License-Identifier: MIT
//
// Snapshots: all keys in one file, checked when it is read.
//
//   "CRESTDB\1", then blocks: u32 bytes, u32 entries, u64 checksum (XXH3) of the bytes; the bytes.
//   A block of no bytes ends the file; its checksum field is the number of all entries.
//   An entry: kind, database, whether it ends (1 B each); when (8 B); the key; and what it has:
//     a string: its text
//     a hash: number of fields, field and value each; of a large hash some at a time, in several entries
//     a sorted set: number of members, member and score (8 B) each; likewise
//   Texts and numbers are preceded by, or are, LEB128. Byte order: little-endian.
//
// write() makes a file beside the one it is to replace, syncs it, and renames it: at every moment the
// name means a whole snapshot, the old one or the new one. read() checks the whole file before the
// first key is made.
#pragma once

#include <cstdint>
#include <string>

namespace crestdb::server {

class keyspace;

namespace snapshot {

struct written {
    std::string error; // "": it is there
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
};
// All parts held, or in the child of a fork.
written write(keyspace& keys, const std::string& path);

struct was_read {
    std::string error; // "": all of it; else with the path and the place
    bool missing = false;
    std::uint64_t keys = 0, ended = 0;
};
// Adds the keys of a file to an empty keyspace; those whose time is over are left out. Before any thread
// serves clients.
was_read read(keyspace& keys, const std::string& path);

// Removes what a process that was killed left of its snapshot.
void remove_unfinished(const std::string& path);

} // namespace snapshot

} // namespace crestdb::server
