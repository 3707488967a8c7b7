// SPDX-License-Identifier: MIT
//
// obase: objects that move under running threads, so that hot ones share pages and cold ones share
// pages. All of the public C++ interface but place/group.hpp; obase.h is the C one.
//
//     #include <obase/obase.hpp>
//
//     struct entry {
//         obase::guide<obase::bytes> value;
//     };
//
//     std::size_t length(entry& e) {
//         obase::scope s;                      // addresses are good until the scope ends
//         return e.value ? e.value->size() : 0;
//     }
//
// Where build time matters, include the single headers.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/arming.hpp>
#include <obase/array.hpp>
#include <obase/atc.hpp>
#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/options.hpp>
#include <obase/owner.hpp>
#include <obase/pin.hpp>
#include <obase/plain.hpp>
#include <obase/relocatable.hpp>
#include <obase/retire.hpp>
#include <obase/runtime.hpp>
#include <obase/scope.hpp>
#include <obase/statistics.hpp>
#include <obase/string.hpp>
#include <obase/version.hpp>
