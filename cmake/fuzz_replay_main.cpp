// SPDX-License-Identifier: MIT
//
// main() for a fuzz target without libFuzzer, so that every compiler's test run keeps the targets
// alive: replays each file of a corpus directory, then a fixed number of mutations of them. A
// finding is what it is under libFuzzer: an abort, a signal or a sanitizer report; the input that
// was running is then in PROGRAM.last_input.bin.
//
// It has no coverage feedback; to look for bugs, use the preset `fuzz`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using input = std::vector<std::uint8_t>;

// Holds the input that is running, since a crash leaves no other trace of it. One file, kept open:
// some file systems flush a file that is truncated and closed, which costs more than the test.
class kept_input {
  public:
    explicit kept_input(std::string path)
        : path_(std::move(path)), file_(::open(path_.c_str(), O_CREAT | O_RDWR, 0644)) {}
    ~kept_input() {
        ::close(file_);
        ::unlink(path_.c_str());
    }
    kept_input(const kept_input&) = delete;
    kept_input& operator=(const kept_input&) = delete;

    bool write(const input& bytes) {
        return ::ftruncate(file_, static_cast<off_t>(bytes.size())) == 0 &&
               ::pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    }

  private:
    std::string path_;
    int file_;
};

void run(const input& bytes, kept_input& keep) {
    if (!keep.write(bytes)) std::perror("cannot keep the running input");
    // An exact-sized copy, so that the address sanitizer sees a read one past the end.
    const input exact(bytes);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::size_t below(std::mt19937_64& random, std::size_t bound) { return random() % bound; }

// A few local edits, and sometimes the tail of another input.
input mutated(const std::vector<input>& corpus, std::mt19937_64& random) {
    input bytes = corpus[below(random, corpus.size())];
    for (std::size_t edits = 1 + below(random, 4); edits > 0; --edits) {
        const std::size_t at = bytes.empty() ? 0 : below(random, bytes.size());
        const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        switch (bytes.empty() ? 0 : below(random, 5)) {
        case 0:
            bytes.insert(position, static_cast<std::uint8_t>(random()));
            break;
        case 1:
            bytes.erase(position);
            break;
        case 2:
            *position = static_cast<std::uint8_t>(random());
            break;
        case 3:
            *position = static_cast<std::uint8_t>(*position ^ (1U << below(random, 8)));
            break;
        default: {
            const input& other = corpus[below(random, corpus.size())];
            const std::size_t from = below(random, other.size() + 1);
            bytes.resize(at);
            bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(from),
                         other.end());
        }
        }
    }
    return bytes;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2 || argc > 3) {
        std::fprintf(stderr, "usage: %s CORPUS-DIRECTORY [MUTATIONS]\n", argv[0]);
        return 2;
    }
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
        if (entry.is_regular_file()) paths.push_back(entry.path());
    // The order of a directory is the file system's; the run must not depend on it.
    std::sort(paths.begin(), paths.end());
    if (paths.empty()) {
        std::fprintf(stderr, "%s: no inputs in %s\n", argv[0], argv[1]);
        return 1;
    }

    kept_input keep{std::string(argv[0]) + ".last_input.bin"};
    std::vector<input> corpus;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        if (!file) {
            std::fprintf(stderr, "%s: cannot read %s\n", argv[0], path.c_str());
            return 1;
        }
        corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        run(corpus.back(), keep);
    }
    run({}, keep);

    const unsigned long mutations = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 5000;
    std::mt19937_64 random(1);
    for (unsigned long done = 0; done < mutations; ++done) run(mutated(corpus, random), keep);
    std::printf("%zu inputs, %lu mutations\n", corpus.size(), mutations);
    return 0;
}
