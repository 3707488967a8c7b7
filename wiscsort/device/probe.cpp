// SPDX-License-Identifier: MIT
#include "wiscsort/device/probe.hpp"

#include "wiscsort/device/device.hpp"
#include "wiscsort/device/memory.hpp"
#include "wiscsort/device/scratch.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace wiscsort::device {

namespace {

// What some threads do until time is up.
struct load {
    direction dir = direction::read;
    unsigned threads = 1;
    std::uint64_t size = MiB; // of a request
    bool random = false;
};

class prober {
  public:
    prober(const std::string& directory, const probe_settings& settings)
        : settings_(settings), space_({directory}), file_(space_.open(true)) {
        file_.reserve(0, settings.file_bytes);
        memory_block block(MiB, false);
        for (std::size_t i = 0; i < block.size(); ++i)
            block.data()[i] = static_cast<char>(i * 131 >> 3);
        for (std::uint64_t at = 0; at < settings.file_bytes; at += MiB)
            file_.write(at, block.data(), MiB);
    }

    bool direct() const { return file_.direct(); }

    // Bytes per second of each load, all at the same time.
    std::vector<double> measure(const std::vector<load>& loads) {
        unsigned threads = 0;
        for (const load& l : loads) threads += l.threads;
        std::vector<std::atomic<std::uint64_t>> moved(loads.size());
        std::vector<memory_block> buffers;
        for (unsigned i = 0; i < threads; ++i) buffers.emplace_back(MiB, false);
        std::atomic<std::uint64_t> next[2] = {0, 0};
        const double begin = device_.now();
        device_.parallel(threads, [&](unsigned worker) {
            std::size_t which = 0;
            unsigned first = 0;
            while (worker >= first + loads[which].threads) first += loads[which++].threads;
            const load& l = loads[which];
            std::uint64_t state = 0x9E3779B97F4A7C15ULL * (worker + 1);
            const std::uint64_t places = settings_.file_bytes / l.size;
            while (device_.now() - begin < settings_.seconds) {
                state = state * 6364136223846793005ULL + 1442695040888963407ULL;
                const std::uint64_t place =
                    l.random ? (state >> 33) % places : next[l.dir == direction::read]++ % places;
                if (l.dir == direction::read)
                    file_.read(place * l.size, buffers[worker].data(), l.size);
                else
                    file_.write(place * l.size, buffers[worker].data(), l.size);
                moved[which] += l.size;
            }
        });
        const double took = device_.now() - begin;
        std::vector<double> rates;
        for (const auto& bytes : moved) rates.push_back(static_cast<double>(bytes.load()) / took);
        return rates;
    }
    double rate(const load& l) { return measure({l})[0]; }

    // Peak, the threads it takes, and what more of them cost.
    model::direction_profile scaling(direction dir) {
        model::direction_profile d;
        std::vector<std::pair<unsigned, double>> rates;
        for (unsigned n = 1; n <= settings_.most_threads; n *= 2)
            rates.emplace_back(n, rate({dir, n, MiB, false}));
        const auto peak =
            std::max_element(rates.begin(), rates.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        d.bytes_per_second = peak->second;
        // The fewest threads that come within 5 %.
        auto enough = rates.begin();
        while (enough->second < .95 * peak->second) ++enough;
        d.threads_at_peak = enough->first;
        d.floor = rates.back().second / peak->second;
        if (rates.back().first > enough->first)
            d.decline = std::max(0.0, (1 - d.floor) / (rates.back().first - enough->first));
        // Noise is no decline.
        if (d.floor > .95) d.decline = 0;
        d.floor = std::clamp(d.floor, .001, 1.0);
        return d;
    }

  private:
    probe_settings settings_;
    scratch_space space_;
    scratch_file file_;
    real_device device_;
};

// Seconds that `repeat` calls take, each.
template <class Function>
double each(std::uint64_t repeat, Function function) {
    real_device clock;
    const double begin = clock.now();
    for (std::uint64_t i = 0; i < repeat; ++i) function(i);
    return (clock.now() - begin) / static_cast<double>(repeat);
}

model::processor_profile measure_processor() {
    model::processor_profile p;
    memory_block from(64 * MiB), to(16 * MiB);
    std::memset(from.data(), 1, from.size());
    std::memset(to.data(), 1, to.size());
    const double seconds = each(8, [&](std::uint64_t i) {
        std::memcpy(to.data(), from.data() + (i % 4) * 16 * MiB, 16 * MiB);
    });
    p.copy_bytes_per_second = 16.0 * MiB / seconds;
    // Copies of 100 bytes from anywhere, less what their bytes take.
    std::uint64_t state = 1;
    const double gather = each(200000, [&](std::uint64_t i) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        std::memcpy(to.data() + i % 100000 * 100, from.data() + (state >> 33) % (63 * MiB), 100);
    });
    p.gather_seconds = std::max(1e-9, gather - 100 / p.copy_bytes_per_second);
    return p;
}

} // namespace

model::profile probe(const std::string& directory, const probe_settings& settings) {
    prober device(directory, settings);
    model::profile p;
    p.name = "probed";
    p.read = device.scaling(direction::read);
    p.write = device.scaling(direction::write);
    const auto readers = static_cast<unsigned>(p.read.threads_at_peak);
    const auto writers = static_cast<unsigned>(p.write.threads_at_peak);
    // Below the page cache nothing smaller than a page is seen.
    p.granule = page_size;
    // Requests so large that latency hardly counts tell what random places cost.
    const double random = device.rate({direction::read, readers, 64 * KiB, true});
    const double in_order = device.rate({direction::read, readers, 64 * KiB, false});
    p.random_share = std::clamp(random / in_order, 1e-6, 1.0);
    // One thread alone, and one page, show the latency.
    const double alone = device.rate({direction::read, 1, page_size, true});
    p.read.latency_seconds = std::max(
        0.0, page_size / alone - page_size / (p.read.bytes_per_second / p.read.threads_at_peak));
    const std::vector<double> both = device.measure(
        {{direction::read, readers, MiB, false}, {direction::write, writers, MiB, false}});
    p.read.overlap_share = std::clamp(both[0] / p.read.bytes_per_second, .001, 1.0);
    p.write.overlap_share = std::clamp(both[1] / p.write.bytes_per_second, .001, 1.0);
    p.processor = measure_processor();
    p.source = fmt::format(
        "measured in {} with a file of {}, {} s each, up to {} threads{}", directory,
        bytes_text(settings.file_bytes), settings.seconds, settings.most_threads,
        device.direct() ? ""
                        : "; through the page cache, which this file system does not let pass by");
    return p;
}

} // namespace wiscsort::device
