/* SPDX-License-Identifier: MIT
 *
 * The loads of `obase bench fragmentation` are compiled twice: for malloc, and, with LOAD_OF_HANDLES, for handles by hand.
 */
#ifndef OBASE_TOOLS_FRAGMENTATION_BY_HAND_H
#define OBASE_TOOLS_FRAGMENTATION_BY_HAND_H

#ifdef LOAD_OF_HANDLES
#include <obase/handles.h>
#define ALLOCATE obase_handles_malloc
#define FREE obase_handles_free
#define AT(home) ((unsigned char*)obase_handles_address(home))
#define ENTER() obase_handles_enter()
#define LEAVE(mark) obase_handles_leave(mark)
#define OFFLINE() obase_handles_offline()
#define ONLINE() obase_handles_online()
#define POLL()                                                                                     \
    do {                                                                                           \
        if (*(volatile unsigned char*)&obase_handles_poll_wanted) obase_handles_poll();            \
    } while (0)
#else
#include <stdlib.h>
#define ALLOCATE malloc
#define FREE free
#define AT(home) ((unsigned char*)(home))
#define ENTER() 0
#define LEAVE(mark) ((void)(mark))
#define OFFLINE() ((void)0)
#define ONLINE() ((void)0)
#define POLL() ((void)0)
#endif

#endif
