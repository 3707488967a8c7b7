// SPDX-License-Identifier: MIT
//
// What the host and the plugin of this example agree on.
#pragma once

extern "C" {
// Makes objects, reads them, retires some. Nonzero: an object was not as it should be.
typedef int plugin_work_function(void);
// Nonzero: no code of the plugin runs by itself any more, and it may be unloaded.
typedef int plugin_stop_function(void);
}
