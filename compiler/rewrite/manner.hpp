// SPDX-License-Identifier: MIT
//
// The options of the command line for how the result is written.
#pragma once

namespace obase::rewrite {

// Of the words in slots, and so of the functions of obase/marked.h that are called.
enum class protocol { arming, atc };

struct manner {
    protocol on = protocol::arming;
    // With #line directives, and each line of the source in one line of the result.
    bool lines = true;
};

} // namespace obase::rewrite
