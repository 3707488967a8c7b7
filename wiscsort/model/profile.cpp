// SPDX-License-Identifier: MIT
#include "wiscsort/model/profile.hpp"

#include "wiscsort/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

namespace wiscsort::model {

double direction_profile::capacity(double threads, bool other_active) const {
    const double rising = std::min(1.0, threads / threads_at_peak);
    const double falling = std::max(floor, 1 - decline * std::max(0.0, threads - threads_at_peak));
    return bytes_per_second * rising * falling * (other_active ? overlap_share : 1.0);
}

bool pays_to_overlap(const profile& profile) {
    // At once, the shorter transfer takes 1/share of its time, and the longer one loses the rest.
    const double read = 1 / profile.read.bytes_per_second;
    const double write = 1 / profile.write.bytes_per_second;
    const double read_share = profile.read.overlap_share;
    const double write_share = profile.write.overlap_share;
    const double both = std::min(read / read_share, write / write_share);
    const double rest = read / read_share < write / write_share ? write - both * write_share
                                                                : read - both * read_share;
    return both + rest < (read + write) * .98;
}

std::uint64_t profile::least_request(const direction_profile& d) const {
    const double waited = 4 * d.latency_seconds * d.bytes_per_second / d.threads_at_peak;
    const auto least = std::max<std::uint64_t>(16 * granule, static_cast<std::uint64_t>(waited));
    return std::clamp<std::uint64_t>((least + 4095) / 4096 * 4096, 4096, 65536);
}

profile::pool profile::best_pool(const direction_profile& direction, unsigned most,
                                 double own_seconds) {
    pool best{1, 0};
    for (unsigned n = 1; n <= most; ++n) {
        // m + capacity(m) * own_seconds grows with m where the decline is small; otherwise the largest m
        // that fits is found, which is the worst for the device.
        double low = 0, high = n;
        for (int step = 0; step < 40 && own_seconds > 0; ++step) {
            const double middle = (low + high) / 2;
            (middle + direction.capacity(middle, false) * own_seconds < n ? low : high) = middle;
        }
        const double rate = direction.capacity(high, false);
        // One more has to be worth it.
        if (rate > best.rate * 1.0001) best = {n, rate};
    }
    return best;
}

namespace {

// Reads the fields of one object, each once, and knows which ones nobody asked for.
class fields {
  public:
    fields(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.is_object()) refuse("{}: expected an object", where_);
    }
    double number(const char* name, double least, double most, double otherwise) {
        known_.insert(name);
        if (!json_.contains(name)) return otherwise;
        const nlohmann::json& value = json_[name];
        if (!value.is_number()) refuse("{}: {}: expected a number", where_, name);
        const auto found = value.get<double>();
        if (!(found >= least && found <= most))
            refuse("{}: {}: {} is outside of {} to {}", where_, name, found, least, most);
        return found;
    }
    std::string text(const char* name) {
        known_.insert(name);
        if (!json_.contains(name)) return {};
        if (!json_[name].is_string()) refuse("{}: {}: expected a text", where_, name);
        return json_[name].get<std::string>();
    }
    const nlohmann::json& object(const char* name) {
        known_.insert(name);
        if (!json_.contains(name)) refuse("{}: {} is missing", where_, name);
        return json_[name];
    }
    bool has(const char* name) const { return json_.contains(name); }
    void finish() const {
        for (const auto& item : json_.items())
            if (!known_.contains(item.key()))
                refuse("{}: the field '{}' is unknown", where_, item.key());
    }

  private:
    const nlohmann::json& json_;
    std::string where_;
    std::set<std::string> known_;
};

direction_profile direction_from(const nlohmann::json& json, const std::string& where) {
    fields in(json, where);
    direction_profile d;
    d.bytes_per_second = in.number("bytes_per_second", 1, 1e15, d.bytes_per_second);
    d.threads_at_peak = in.number("threads_at_peak", 1, 4096, d.threads_at_peak);
    d.decline = in.number("decline", 0, 1, d.decline);
    d.floor = in.number("floor", 0.001, 1, std::max(0.001, d.floor));
    d.overlap_share = in.number("overlap_share", 0.001, 1, d.overlap_share);
    d.latency_seconds = in.number("latency_seconds", 0, 10, d.latency_seconds);
    in.finish();
    return d;
}

nlohmann::json direction_to(const direction_profile& d) {
    return {{"bytes_per_second", d.bytes_per_second},
            {"threads_at_peak", d.threads_at_peak},
            {"decline", d.decline},
            {"floor", d.floor},
            {"overlap_share", d.overlap_share},
            {"latency_seconds", d.latency_seconds}};
}

processor_profile processor_from(const nlohmann::json& json, const std::string& where) {
    fields in(json, where);
    processor_profile p;
    for (auto [name, value] : {std::pair{"extract_seconds", &p.extract_seconds},
                               {"sort_seconds", &p.sort_seconds},
                               {"gather_seconds", &p.gather_seconds},
                               {"merge_seconds", &p.merge_seconds},
                               {"merge_entry_seconds", &p.merge_entry_seconds}})
        *value = in.number(name, 0, 1, *value);
    p.copy_bytes_per_second = in.number("copy_bytes_per_second", 1, 1e15, p.copy_bytes_per_second);
    in.finish();
    return p;
}

std::vector<profile> make_shipped() {
    profile pmem;
    pmem.name = "pmem";
    pmem.source =
        "Optane DC 200, logs of another project: sequential reads 15 GB/s and gathers of 128 B "
        "records 11.3 GB/s with 20 threads, writes 3.2 GB/s with 5. Granule 64 B: with 256 B the "
        "gather would move more than the sequential peak. Decline: J. Izraelevitz et al., Basic "
        "Performance Measurements of the Intel Optane DC PMM, 2019: four threads saturate writes, "
        "which fall with more; reads peak at 17 and stay. The report shows that mixed reads and "
        "writes hamper each other; the figures here are assumptions: 3 % of the peak for each "
        "writer too many, and half of the rate for each direction while the other is active, so "
        "that doing both at once gains and loses nothing.";
    pmem.read = {.bytes_per_second = 15e9,
                 .threads_at_peak = 20,
                 .decline = .01,
                 .floor = .8,
                 .overlap_share = .5,
                 .latency_seconds = 0};
    pmem.write = {.bytes_per_second = 3.2e9,
                  .threads_at_peak = 5,
                  .decline = .03,
                  .floor = .5,
                  .overlap_share = .5,
                  .latency_seconds = 0};
    pmem.random_share = 11.3 / 15;
    pmem.granule = 64;
    pmem.requests_per_thread = 10;

    // The paper's BRAID ablations: a device with the letters of its name only.
    profile bd;
    bd.name = "bd";
    bd.source = "The slides' BD-device, like a hard disk: small accesses, but random ones at a "
                "hundredth of the sequential rate (200 MB/s, an assumption of this project), and "
                "every thread beyond the first costs seeks.";
    bd.read = {.bytes_per_second = 200e6,
               .threads_at_peak = 1,
               .decline = .05,
               .floor = .3,
               .overlap_share = .5,
               .latency_seconds = 0};
    bd.write = bd.read;
    bd.random_share = .01;
    bd.granule = 512;

    profile brd;
    brd.name = "brd";
    brd.source = "The slides' BRD-device, CXL-attached DRAM: random reads as fast as sequential "
                 "ones, 64 B, 300 ns, no asymmetry, a plateau instead of a fall. 20 GB/s is one "
                 "CXL 2.0 x8 link, an assumption of this project.";
    brd.read = {.bytes_per_second = 20e9,
                .threads_at_peak = 8,
                .decline = .005,
                .floor = .8,
                .overlap_share = 1,
                .latency_seconds = 300e-9};
    brd.write = brd.read;
    brd.random_share = 1;
    brd.granule = 64;
    brd.requests_per_thread = 10;

    profile bard = brd;
    bard.name = "bard";
    bard.source = "brd with writes 500 ns slower than reads, for each 256 B in flight (slides: "
                  "\"Writes 500 ns slower than reads\"): 256 B per 800 ns and request in flight, "
                  "8 threads with 10 each.";
    bard.write.latency_seconds = 800e-9;
    bard.write.bytes_per_second = 256.0 / 800e-9 * 10 * 8 * .25;

    profile ad;
    ad.name = "ad";
    ad.source =
        "The slides' AD-device, a low-latency SSD (XL-FLASH, Z-SSD): blocks of 4 KiB, reads "
        "faster than writes. 3.2 and 2.0 GB/s, 12 us and 16 us are of the order of these "
        "products; assumptions of this project.";
    ad.read = {.bytes_per_second = 3.2e9,
               .threads_at_peak = 4,
               .decline = .01,
               .floor = .7,
               .overlap_share = .8,
               .latency_seconds = 12e-6};
    ad.write = {.bytes_per_second = 2.0e9,
                .threads_at_peak = 2,
                .decline = .02,
                .floor = .6,
                .overlap_share = .8,
                .latency_seconds = 16e-6};
    ad.random_share = .9;
    ad.granule = 4096;
    ad.requests_per_thread = 8;
    return {pmem, bd, brd, bard, ad};
}

} // namespace

profile from_json(const nlohmann::json& json, const std::string& where) {
    fields in(json, where);
    profile p;
    p.name = in.text("name");
    p.source = in.text("source");
    p.read = direction_from(in.object("read"), where + ": read");
    p.write = direction_from(in.object("write"), where + ": write");
    p.random_share = in.number("random_share", 1e-6, 1, p.random_share);
    p.granule = static_cast<std::uint64_t>(in.number("granule", 1, 1 << 24, 64));
    p.requests_per_thread =
        static_cast<unsigned>(in.number("requests_per_thread", 1, 65536, p.requests_per_thread));
    if (in.has("processor"))
        p.processor = processor_from(in.object("processor"), where + ": processor");
    in.finish();
    return p;
}

nlohmann::json to_json(const profile& p) {
    const processor_profile& c = p.processor;
    return {{"name", p.name},
            {"source", p.source},
            {"read", direction_to(p.read)},
            {"write", direction_to(p.write)},
            {"random_share", p.random_share},
            {"granule", p.granule},
            {"requests_per_thread", p.requests_per_thread},
            {"processor",
             {{"extract_seconds", c.extract_seconds},
              {"sort_seconds", c.sort_seconds},
              {"gather_seconds", c.gather_seconds},
              {"merge_seconds", c.merge_seconds},
              {"merge_entry_seconds", c.merge_entry_seconds},
              {"copy_bytes_per_second", c.copy_bytes_per_second}}}};
}

const std::vector<profile>& shipped_profiles() {
    static const std::vector<profile> all = make_shipped();
    return all;
}

profile find_profile(const std::string& name_or_path) {
    std::string names;
    for (const profile& p : shipped_profiles()) {
        if (p.name == name_or_path) return p;
        names += (names.empty() ? "" : ", ") + p.name;
    }
    std::ifstream file(name_or_path);
    // A directory can be opened, but not read.
    if (!file || std::filesystem::is_directory(name_or_path))
        refuse("--profile: '{}' is neither a file nor one of {}", name_or_path, names);
    nlohmann::json json;
    try {
        json = nlohmann::json::parse(file); // all of it
    } catch (const nlohmann::json::exception& problem) {
        refuse("{}: is no JSON: {}", name_or_path, problem.what());
    }
    profile p = from_json(json, name_or_path);
    if (p.name.empty()) p.name = name_or_path;
    return p;
}

} // namespace wiscsort::model
