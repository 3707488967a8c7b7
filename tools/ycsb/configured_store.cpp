// SPDX-License-Identifier: MIT
#include "tools/ycsb/configured_store.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/ycsb/load.hpp"

#include <obase/runtime.hpp>

#include <unistd.h>

#include <stdexcept>
#include <string>

namespace obase::tools {

options options_of(const ycsb_settings& settings) {
    options made;
    if (const auto errors = made.apply_environment(environ); !errors.empty())
        throw std::runtime_error(errors.front());
    made.time_scale = settings.time_scale;
    made.cold_backing = settings.cold;
    made.hint_cold = settings.hints != "off";
    made.hint_pageout = settings.hints == "pageout";
    made.hint_hugepage = settings.huge_pages;
    made.mode = run_mode::off;
    made.window_seconds = settings.window_s;
    return made;
}

run_mode working_mode_of(const ycsb_settings& settings) {
    if (settings.mode == "off") return run_mode::off;
    if (settings.mode == "observe") return run_mode::observe;
    if (settings.mode == "move") return run_mode::move;
    if (settings.mode == "hint") return run_mode::hint;
    return settings.hints != "off" || settings.huge_pages ? run_mode::hint : run_mode::move;
}

std::unique_ptr<crestdb::store> open_configured(const ycsb_settings& settings,
                                                const options& configured,
                                                std::size_t expected_keys) {
    if (const std::string why = crestdb::store::runtime_of(settings.protocol).configure(configured);
        !why.empty())
        throw std::runtime_error(why);
    return crestdb::store::open({settings.index, settings.protocol, expected_keys});
}

void fill(crestdb::store& store, record_set& records, value_ledger& ledger, unsigned threads) {
    fill_store(store, records, threads);
    records.forget_source();
    for (std::uint64_t record = 0; record < records.count(); ++record)
        ledger.end_write(record, first_version | value_ledger::present);
    if (interrupted()) throw interruption("interrupted while loading");
}

} // namespace obase::tools
