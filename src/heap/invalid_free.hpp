// SPDX-License-Identifier: MIT
//
// free_result: what became of a free that is checked; and the end of a program where an invalid free ends it.
//
// What is known of an address, and when: docs/embedding.md, "Invalid frees".
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace obase::heap {

enum class free_result : std::uint8_t {
    done,
    no_object,    // in the heaps, and no object begins there
    freed_before, // an object began there, and was freed
    foreign       // not in the heaps, and not one that malloc gave in their stead
};

constexpr const char* words_for(free_result result) noexcept {
    switch (result) {
    case free_result::done:
        break;
    case free_result::no_object:
        return "no object begins there";
    case free_result::freed_before:
        return "the object there was freed before";
    case free_result::foreign:
        return "it is not from obase";
    }
    return "";
}

// Needs no memory.
[[noreturn]] inline void stop_at_invalid_free(const void* address, free_result result) noexcept {
    std::fprintf(stderr, "obase: invalid free of %p: %s\n", address, words_for(result));
    std::abort();
}

} // namespace obase::heap
