// SPDX-License-Identifier: MIT
//
// Memory control groups, v1 and v2: what is charged to one, its limit, and what the kernel killed in
// it.
//
//     control_group group = control_group::below_own("obase-bench-123");
//     group.join();                     // this process; its children are in it as well
//     group.set_limit(bytes);           // "", or why not
//     group.bytes(); group.kills();
//     group.remove();                   // once no process is in it
//
// Making one needs root, or a delegated group. Threads: any, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace obase::tools {

class control_group {
  public:
    // No group.
    control_group() = default;
    // One that is there: a directory with the files of either version.
    explicit control_group(const std::string& path);
    // Makes one below that of the calling process; no group if that is not possible. `before` gets each
    // path that it is about to make.
    static control_group below_own(const std::string& name,
                                   const std::function<void(const std::string&)>& before = {});

    bool made() const noexcept { return !path_.empty(); }
    const std::string& path() const noexcept { return path_; }

    // Moves the calling process into it. False if the kernel refused.
    bool join() const;
    // Moves the calling process into the group above.
    void leave() const;
    // True if it is gone. Nothing may be in it.
    bool remove();

    // Anonymous memory and page cache charged to the group, in bytes, each page once. Of the swap cache
    // what is not mapped as well: pages on their way out, or read ahead.
    std::uint64_t bytes() const;
    std::uint64_t unmapped_swap_cache_bytes() const;
    // What the limit is compared with: the kernel's own memory for the group is in it.
    std::uint64_t charge() const;

    // "" when it is in force. v1 refuses a limit that reclaim does not reach; v2 kills.
    std::string set_limit(std::uint64_t bytes) const;
    std::string remove_limit() const;
    // Nothing if there is none.
    std::optional<std::uint64_t> limit() const;
    // What is in the group is not swapped out: it is for programs that put their cold data into a file. What is
    // over the limit and no page of a file is killed for. "", or why not.
    std::string forbid_swap() const;
    // Has the kernel reclaim that much of the group, by a limit that is set and then put back as it
    // was. What it cannot reclaim stays. v1 only: v2 would kill.
    void reclaim(std::uint64_t bytes) const;
    // Processes of the group that the kernel killed for its limit.
    std::uint64_t kills() const;

    // What bytes() is made of, for reports.
    std::string method() const;

  private:
    std::uint64_t stat(const char* name) const;
    std::string limit_file() const;

    std::string path_;
    bool v2_ = false;
};

} // namespace obase::tools
