// SPDX-License-Identifier: MIT
//
// loop_sequence: a fixed sequence of record ids, drawn beforehand and replayed for ever, so that
// exactly `live_share` of the records are ever asked for and the others are cold for certain. What
// a collector can reach at best is then known: this is the load of the target table.
//
// Ids are drawn from scrambled_zipfian until ceil(live_share * records) different ones have come
// up; the period is the number of draws. About half of those are spread over all records, so for
// each record it takes .17 draws for a share of .1, .63 for .31, 1.3 for .5, 5 for .9, and more
// without bound as the share nears 1 (of a million records; of ten million a fifth more). After
// `draws_per_record` draws for each record (default 8: reached for shares above about .95) the
// drawing ends, the missing ids are chosen at random from the rest, and the whole sequence is
// shuffled so that they are nowhere bunched. added() says how many those were; the sequence is then
// slightly less skewed than its distribution.
//
//     const workload::loop_sequence loop(1'000'000, .31, seed);
//     for (std::size_t at = loop.start(thread, threads);; at = loop.after(at)) use(loop.ids()[at]);
//
// A loop is the worst case of LRU, so it says nothing of hit rates. Threads should read at similar
// speeds: all of them walk the whole sequence, from starts that divide it evenly, so the live
// records are covered once while each thread walks its part.
//
// Threads: not changed after construction; share it. Cost: construction 50 to 100 ns per draw, 4
// bytes per draw and at most 4 per record; a step is a sequential read.
#pragma once

#include "tools/workload/distribution.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace workload {

class loop_sequence {
  public:
    // Throws std::invalid_argument for records outside [1, 2^32) or a share outside (0, 1].
    loop_sequence(std::uint64_t records, double live_share, std::uint64_t seed,
                  unsigned draws_per_record = 8);

    const std::vector<std::uint32_t>& ids() const noexcept { return ids_; }
    std::size_t period() const noexcept { return ids_.size(); }
    // The records that are asked for, ascending, each once.
    const std::vector<std::uint32_t>& live() const noexcept { return live_; }
    // Ids in the sequence that were not drawn.
    std::size_t added() const noexcept { return added_; }

    // Where thread number `thread` of `threads` begins.
    std::size_t start(unsigned thread, unsigned threads) const noexcept {
        return static_cast<std::size_t>(static_cast<wide_uint>(ids_.size()) * thread / threads) %
               ids_.size();
    }
    std::size_t after(std::size_t at) const noexcept { return at + 1 == ids_.size() ? 0 : at + 1; }

  private:
    std::vector<std::uint32_t> ids_;
    std::vector<std::uint32_t> live_;
    std::size_t added_ = 0;
};

} // namespace workload
