// SPDX-License-Identifier: MIT
//
// Copies of this library in one process, and the life of the module that holds this one.
//
// A program and its plugins may each have linked the static library. Two such copies know nothing
// of each other's slots, scopes and objects, so only the first that starts may move objects. Each
// copy says by a note in its module (a section `.note.obase`, found with dl_iterate_phdr) where its
// state is; nothing else connects them.
#pragma once

namespace obase::os {

// True if no other copy in this process has started before. The first call decides; later ones return
// the same. Any thread. Copies in other namespaces of the loader (dlmopen) are not seen.
bool is_first_copy() noexcept;

// Keeps the module with this library from being unloaded: threads and handlers of this process
// run in it from now on. Any thread.
void keep_loaded() noexcept;

} // namespace obase::os
