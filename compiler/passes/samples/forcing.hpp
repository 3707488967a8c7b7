// SPDX-License-Identifier: MIT
//
// The only functions of obase that the samples call; they do nothing in a plain program.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// From here on the collector runs one window after another, each so many microseconds after the one before
// as the environment's OBASE_TEST_PAUSE says, if it does.
void begin_forcing(void);
// Waits for two windows: what was used before is moved, whatever the threads' luck. Outside of
// operations.
void wait_for_windows(void);
// No more windows; says on stderr how many objects were moved.
void end_forcing(void);

#ifdef __cplusplus
}
#endif
