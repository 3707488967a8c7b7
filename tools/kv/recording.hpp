// SPDX-License-Identifier: MIT
//
// Recording a load's operations, and playing them again. The header of a recording
// (tools/workload/recorded_operations.hpp) is JSON with what the records are made from, so that a
// recording can be played without the parameters of its run:
//
//     {"workload":"hot:...","records":,"clients":,"key_size":,"value_size":,"seed":,"rate":}
//
// Files that the workload names (cachelib, twitter, trace) must still be there.
#pragma once

#include "tools/kv/load.hpp"
#include "tools/kv/settings.hpp"

#include "tools/workload/recorded_operations.hpp"

#include <memory>
#include <string>

namespace obase::tools {

// The load, whose sources write down what they are asked for.
void record(session_load& load, std::shared_ptr<workload::operation_recorder> file);
std::string recording_header(const kv_settings& settings);

// The settings with those of the recording, and the load whose sources play it. Clients are as many
// as were recorded. Throws std::runtime_error, with the place in it, for a file that is malformed or
// says what why_not() would refuse.
struct replayed {
    kv_settings settings;
    kv_load load;
};
replayed load_of_recording(const kv_settings& settings);

} // namespace obase::tools
