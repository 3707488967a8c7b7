// SPDX-License-Identifier: MIT
#include "wiscsort/report_json.hpp"

#include <nlohmann/json.hpp>

namespace wiscsort {

nlohmann::json to_json(const sort_report& r) {
    nlohmann::json plans = nlohmann::json::array();
    for (const model::prediction& p : r.plan.predictions) {
        nlohmann::json one{
            {"strategy", model::name_of(p.plan)}, {"possible", p.possible}, {"note", p.note}};
        if (p.possible) one["seconds"] = p.seconds;
        plans.push_back(one);
    }
    return {{"strategy", model::name_of(r.plan.plan)},
            {"io", model::name_of(r.plan.io)},
            {"records_in", r.records_in},
            {"records_out", r.records_out},
            {"bytes_in", r.bytes_in},
            {"bytes_out", r.bytes_out},
            {"memory_bytes", r.memory},
            {"threads", r.threads},
            {"runs", r.runs},
            {"seconds", r.seconds},
            {"sync_seconds", r.sync_seconds},
            {"phases", r.phases},
            {"peak_buffer_bytes", r.peak_buffers},
            {"requested_read_bytes", r.traffic.requested_read},
            {"requested_write_bytes", r.traffic.requested_write},
            {"profile", r.plan.device},
            {"predictions", plans}};
}

} // namespace wiscsort
