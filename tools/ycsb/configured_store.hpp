// SPDX-License-Identifier: MIT
//
// A store as the settings want it: the runtime is configured, then the store is opened and filled.
#pragma once

#include "tools/ycsb/record_set.hpp"
#include "tools/ycsb/settings.hpp"
#include "tools/ycsb/value_ledger.hpp"

#include "crestdb/store.hpp"

#include <obase/options.hpp>

#include <memory>

namespace obase::tools {

// The environment's options with those of the settings, at rest (mode off). Throws
// std::runtime_error for an environment that is not understood.
options options_of(const ycsb_settings& settings);

// In what mode the collector is to work while there is traffic.
run_mode working_mode_of(const ycsb_settings& settings);

// Precondition: the process has not used obase before. Throws std::runtime_error when the runtime
// refuses the options.
std::unique_ptr<crestdb::store> open_configured(const ycsb_settings& settings,
                                                const options& configured,
                                                std::size_t expected_keys);

// Puts every record into the store, and into the ledger. Throws interruption if interrupted.
void fill(crestdb::store& store, record_set& records, value_ledger& ledger, unsigned threads);

} // namespace obase::tools
