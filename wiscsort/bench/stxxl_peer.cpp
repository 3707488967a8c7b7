// SPDX-License-Identifier: MIT
//
// STXXL's sort as a peer of `wiscsort bench`: records of 100 bytes with keys of 10, from file to file.
// A program of its own, so that nothing else needs STXXL: wiscsort-stxxl IN OUT MEMORY SCRATCH.
#include <stxxl/io>
#include <stxxl/mng>
#include <stxxl/stream>
#include <stxxl/vector>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

namespace {

struct record {
    char bytes[100];
};

struct by_key {
    bool operator()(const record& a, const record& b) const {
        return std::memcmp(a.bytes, b.bytes, 10) < 0;
    }
    static record min_value() { return filled(0); }
    static record max_value() { return filled(-1); }
    static record filled(int with) {
        record r;
        std::memset(r.bytes, with, sizeof r.bytes);
        return r;
    }
};

// A multiple of the record and of a page, so that the file has no gaps.
constexpr std::size_t block = 20480 * sizeof(record);
using records = stxxl::VECTOR_GENERATOR<record, 4, 4, block>::result;

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fputs("usage: wiscsort-stxxl IN OUT MEMORY SCRATCH\n", stderr);
        return 2;
    }
    const std::uint64_t memory = std::strtoull(argv[3], nullptr, 10);
    // STXXL writes its logs into the working directory unless these say where.
    setenv("STXXLLOGFILE", "/dev/null", 0);
    setenv("STXXLERRLOGFILE", "/dev/null", 0);
    // Where its temporary data goes. add_disk() of the configuration that this program sees would not do: the
    // shared library has one of its own.
    const std::string configuration = std::string(argv[4]) + ".config";
    std::ofstream(configuration) << "disk=" << argv[4] << ",0,syscall unlink autogrow\n";
    setenv("STXXLCFG", configuration.c_str(), 1);
    int status = 0;
    try {
        stxxl::syscall_file in(argv[1], stxxl::file::RDONLY);
        stxxl::syscall_file out(argv[2],
                                stxxl::file::CREAT | stxxl::file::RDWR | stxxl::file::TRUNC);
        const std::uint64_t size = in.size();
        {
            records input(&in);
            records output(&out, size / sizeof(record));
            using source = stxxl::stream::streamify_traits<records::const_iterator>::stream_type;
            source from = stxxl::stream::streamify(input.cbegin(), input.cend());
            stxxl::stream::sort<source, by_key, block> sorted(from, by_key(), memory);
            stxxl::stream::materialize(sorted, output.begin());
            output.flush();
        }
        out.set_size(size);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "wiscsort-stxxl: %s\n", problem.what());
        status = 1;
    }
    std::remove(configuration.c_str());
    return status;
}
