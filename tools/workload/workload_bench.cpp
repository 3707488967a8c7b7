// SPDX-License-Identifier: MIT
//
// What the load itself costs, in nanoseconds of CPU time per call: it is part of every throughput
// that is measured with it. Prints one line for each.
#include "tools/workload/distribution.hpp"
#include "tools/workload/key_format.hpp"
#include "tools/workload/value_content.hpp"
#include "tools/workload/ycsb_mix.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

namespace {

std::uint64_t sink = 0; // what is computed is used

template <class Call>
void measure(const char* what, std::uint64_t times, Call&& call) {
    for (std::uint64_t i = 0; i < times / 10; ++i) sink += call(i);
    const std::clock_t begin = std::clock();
    for (std::uint64_t i = 0; i < times; ++i) sink += call(i);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::printf("%-28s %7.1f ns\n", what, 1e9 * seconds / static_cast<double>(times));
}

} // namespace

int main(int argc, char** argv) {
    using namespace workload;
    const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
    const std::uint64_t times = smoke ? 10'000 : 5'000'000;
    const std::uint64_t records = smoke ? 10'000 : 1'000'000;

    std::array<char, 30> key{};
    const std::string_view key_text(key.data(), key.size());
    measure("key, 30 bytes", times, [&](std::uint64_t id) {
        write_key(key, id);
        return static_cast<std::uint64_t>(key_text[29]);
    });
    std::array<char, 16> short_key{};
    measure("key, 16 bytes", times, [&](std::uint64_t id) {
        write_key(short_key, id);
        return static_cast<std::uint64_t>(short_key[15]);
    });
    for (const std::size_t size : {100U, 1024U}) {
        std::string value(size, '\0');
        const std::string bytes = ", " + std::to_string(size) + " bytes";
        measure(("fill value" + bytes).c_str(), times, [&](std::uint64_t id) {
            fill_value(value, id, 1);
            return static_cast<std::uint64_t>(value[0]);
        });
        fill_value(value, 1, 5);
        measure(("check value" + bytes).c_str(), times, [&](std::uint64_t) {
            value[size - 1] = '\0'; // the same, but the compiler cannot know
            return check_value(value, 1).value();
        });
    }

    random_stream random(1);
    const uniform_ids uniform(records);
    measure("uniform", times, [&](std::uint64_t) { return uniform.next(random); });
    const hotspot_ids hotspot(records);
    measure("hotspot", times, [&](std::uint64_t) { return hotspot.next(random); });
    const zipfian_ids zipfian(records);
    measure("zipfian, not scrambled", times, [&](std::uint64_t) { return zipfian.next(random); });
    const scrambled_zipfian scrambled(records);
    measure("zipfian", times, [&](std::uint64_t) { return scrambled.next(random); });
    latest_ids latest(records);
    measure("latest, growing by 5 %", times,
            [&](std::uint64_t i) { return latest.next(random, records + i / 20); });

    for (const distribution ids : {distribution::loop, distribution::uniform, distribution::hotspot,
                                   distribution::zipfian, distribution::latest}) {
        for (const char letter : {'B', 'D'}) {
            request_plan plan(
                {.records = records, .operations = ycsb(letter)->operations, .ids = ids});
            request_stream stream = plan.stream(0);
            const std::string what =
                "request, " + std::string(1, letter) + ", " + std::string(name_of(ids));
            measure(what.c_str(), times, [&](std::uint64_t) {
                const request r = stream.next();
                if (r.what == operation::insert) stream.completed(r.id);
                return r.id + static_cast<std::uint64_t>(r.what);
            });
        }
    }
    std::printf("(%llu)\n", static_cast<unsigned long long>(sink));
}
