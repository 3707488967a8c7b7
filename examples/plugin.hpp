// SPDX-License-Identifier: MIT
//
// The interface between the host and the plugin of this example.
#pragma once

extern "C" {
// Makes objects, reads them, retires some. Nonzero: an object was not as it should be.
typedef int plugin_work_function(void);
// Nonzero: no code of the plugin runs by itself any more, and it may be unloaded.
typedef int plugin_stop_function(void);
}
