// SPDX-License-Identifier: MIT
//
// keeper: a process that undoes what the calling one did to the machine, when that one ends: after the
// destructor, an exception, a signal or SIGKILL.
//
//     keeper undo;
//     if (undo.started() && undo.promise(keeper::what::group, path)) mkdir(path)
//
// The promise comes before the deed, so that nothing is ever done that nobody would undo; undoing what
// was not done is harmless. Undone is in the reverse order. When the destructor returns all is done.
//
// Threads: none may have been started when one is made; it forks.
#pragma once

#include <sys/types.h>

#include <string>

namespace obase::tools {

class keeper {
  public:
    enum class what : char {
        zram = 'z',      // a zram device that serves as swap: its number
        swap_file = 's', // a file that serves as swap: its path
        group = 'g', // a control group: its path. The processes in it are waited for, not ended.
    };

    // `held`: a descriptor that stays open until all is undone, of a lock; -1 for none.
    explicit keeper(int held = -1);
    ~keeper();
    keeper(const keeper&) = delete;
    keeper& operator=(const keeper&) = delete;

    bool started() const noexcept { return process_ > 0; }
    // False if the keeper could not be told; errno says why. Names hold no end of line.
    bool promise(what kind, const std::string& name) const;

  private:
    int pipe_ = -1; // its other end is the keeper's, which undoes when it is closed
    pid_t process_ = -1;
};

} // namespace obase::tools
