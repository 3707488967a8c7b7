// SPDX-License-Identifier: MIT
//
// What the host and the plugin of this example agree on.
#pragma once

extern "C" {
// Makes objects, reads them, retires some. Nonzero: an object was not as it should be.
typedef int plugin_work_function(void);
// After it no code of the plugin runs by itself any more; then it may be unloaded.
typedef void plugin_stop_function(void);
}
