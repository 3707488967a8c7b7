// SPDX-License-Identifier: MIT
//
// The whole sort against a reference, for each strategy and kind of I/O; every system call failing
// once; what is left when it fails.
#include "wiscsort/device/batch.hpp"
#include "wiscsort/device/calls.hpp"
#include "wiscsort/device/emulated.hpp"
#include "wiscsort/test_files_test.hpp"
#include "wiscsort/units.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>

namespace wiscsort {

namespace {

using model::io_choice;
using model::plan_choice;
using testing::sorted_by_reference;
using testing::temporary_directory;

constexpr plan_choice plans[] = {plan_choice::onepass, plan_choice::mergepass, plan_choice::ems};
constexpr io_choice ios[] = {io_choice::mmap, io_choice::read, io_choice::direct};

#ifdef WISCSORT_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

struct shape {
    const char* name;
    std::string format;
    key_spec::options keys;
    std::vector<std::string> files;
    bool unique = false;
};

std::string describe(const shape& s, plan_choice plan, io_choice io) {
    return fmt::format("{} {} {}", s.name, model::name_of(plan), model::name_of(io));
}

// Every plan with every kind of I/O; with a sanitizer one kind for each plan, the next shape with the next ones.
void sorts_like_the_reference(const shape& s, std::uint64_t memory = 4 * MiB) {
    static std::size_t shapes = 0;
    ++shapes;
    const record_format format = record_format::parse(s.format);
    const std::string expected = sorted_by_reference(s.files, format, s.keys, s.unique);
    temporary_directory folder;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < s.files.size(); ++i)
        names.push_back(folder.write("in" + std::to_string(i), s.files[i]));
    for (std::size_t p = 0; p < std::size(plans); ++p)
        for (std::size_t i = 0; i < std::size(ios); ++i) {
            if (sanitized && i != (p + shapes) % std::size(ios)) continue;
            const plan_choice plan = plans[p];
            const io_choice io = ios[i];
            SCOPED_TRACE(describe(s, plan, io));
            sort_options options;
            options.format = format;
            options.keys = s.keys;
            options.unique = s.unique;
            options.memory = plan == plan_choice::onepass ? std::max(memory, 64 * MiB) : memory;
            options.threads = 3;
            options.plan = plan;
            options.io = io;
            options.sync = false;
            const sort_report report = wiscsort::sort(names, folder.path("out"), options);
            const std::string got = folder.read("out");
            ASSERT_EQ(got.size(), expected.size());
            ASSERT_TRUE(got == expected);
            EXPECT_EQ(report.bytes_out, expected.size());
        }
}

std::string random_fixed(std::size_t count, std::size_t size, unsigned alphabet, unsigned seed) {
    std::mt19937_64 random(seed);
    std::string bytes(count * size, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % alphabet);
    return bytes;
}

std::string random_lines(std::size_t count, std::size_t longest, unsigned alphabet, unsigned seed,
                         std::string_view common = "") {
    std::mt19937_64 random(seed);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
        text += common;
        for (std::size_t n = random() % (longest + 1); n > 0; --n) {
            const char c = static_cast<char>(random() % alphabet);
            text += c == '\n' ? 'x' : c;
        }
        text += '\n';
    }
    return text;
}

key_spec::options ranges(std::vector<std::string> all, bool reverse = false) {
    key_spec::options keys;
    keys.ranges = std::move(all);
    keys.reverse = reverse;
    return keys;
}

} // namespace

TEST(Sort, FixedRecordsWithKeysOfTenBytes) {
    sorts_like_the_reference(
        {"uniform", "fixed:100", ranges({"0:10"}), {random_fixed(60000, 100, 256, 1)}});
}

TEST(Sort, EqualPrefixesAreDecidedByTheWholeKey) {
    sorts_like_the_reference(
        {"long keys", "fixed:40", ranges({"3:30"}), {random_fixed(20000, 40, 2, 2)}}, 2 * MiB);
    sorts_like_the_reference(
        {"long keys down", "fixed:40", ranges({"3:30"}, true), {random_fixed(20000, 40, 2, 3)}},
        2 * MiB);
}

TEST(Sort, EqualKeysKeepTheirOrder) {
    sorts_like_the_reference(
        {"few keys", "fixed:24", ranges({"0:1"}), {random_fixed(50000, 24, 3, 4)}}, 2 * MiB);
    sorts_like_the_reference(
        {"few keys down", "fixed:24", ranges({"0:1"}, true), {random_fixed(50000, 24, 3, 5)}},
        2 * MiB);
    sorts_like_the_reference(
        {"all equal", "fixed:20", ranges({"0:20"}), {std::string(20000, 'a')}});
}

// So large that runs are merged by several ranges of keys.
TEST(Sort, EqualKeysKeepTheirOrderInParallelMerges) {
    sorts_like_the_reference(
        {"few keys", "fixed:100", ranges({"0:1"}), {random_fixed(60000, 100, 3, 23)}}, 2 * MiB);
}

TEST(Sort, SeveralRangesMakeOneKey) {
    sorts_like_the_reference(
        {"two ranges", "fixed:16", ranges({"12:4", "0:2"}), {random_fixed(30000, 16, 4, 6)}},
        2 * MiB);
    sorts_like_the_reference(
        {"two ranges of lines", "lines", ranges({"2:3", "0:2"}), {random_lines(20000, 8, 4, 7)}},
        2 * MiB);
}

TEST(Sort, UniqueKeepsTheFirst) {
    sorts_like_the_reference(
        {"unique", "fixed:8", ranges({"0:2"}), {random_fixed(40000, 8, 40, 8)}, true}, 2 * MiB);
    sorts_like_the_reference({"unique lines", "lines", {}, {random_lines(40000, 3, 12, 9)}, true},
                             2 * MiB);
}

TEST(Sort, Lines) {
    sorts_like_the_reference({"short", "lines", {}, {random_lines(30000, 20, 256, 10)}}, 2 * MiB);
    sorts_like_the_reference({"nul and cr", "lines", {}, {random_lines(20000, 14, 15, 11)}},
                             2 * MiB);
    sorts_like_the_reference(
        {"shared prefix", "lines", {}, {random_lines(20000, 30, 3, 12, "http://www.example/")}},
        2 * MiB);
    sorts_like_the_reference({"no last newline", "lines", {}, {"b\na", "d\n", "c"}});
    sorts_like_the_reference({"empty lines", "lines", {}, {"\n\n\nb\n\na\n"}});
    key_spec::options down;
    down.reverse = true;
    sorts_like_the_reference({"down", "lines", down, {random_lines(20000, 12, 3, 13)}}, 2 * MiB);
}

TEST(Sort, FilesOfVerySmallAndNoRecords) {
    sorts_like_the_reference({"bytes", "fixed:1", {}, {random_fixed(100000, 1, 256, 14)}});
    sorts_like_the_reference({"nothing", "fixed:100", {}, {"", ""}});
    sorts_like_the_reference({"one", "fixed:5", {}, {"hello"}});
    sorts_like_the_reference({"empty", "lines", {}, {""}});
    std::vector<std::string> many;
    for (unsigned i = 0; i < 40; ++i) many.push_back(random_lines(i % 7, 9, 200, 100 + i));
    sorts_like_the_reference({"many files", "lines", {}, many});
}

TEST(Sort, PrefixedRecords) {
    std::mt19937_64 random(15);
    std::string bytes;
    for (int i = 0; i < 20000; ++i) {
        const std::uint32_t size = static_cast<std::uint32_t>(random() % 40);
        char length[4];
        std::memcpy(length, &size, 4);
        bytes.append(length, 4);
        for (std::uint32_t j = 0; j < size; ++j) bytes += static_cast<char>(random() % 3);
    }
    sorts_like_the_reference({"prefixed", "prefixed:u32le", {}, {bytes, bytes}}, 3 * MiB);
    sorts_like_the_reference({"prefixed, clipped", "prefixed:u32le", ranges({"5:20"}), {bytes}},
                             3 * MiB);
}

TEST(Sort, RecordsLargerThanABuffer) {
    std::string text = random_lines(300, 100, 256, 16);
    text += std::string(3 * MiB, 'm') + "\n" + std::string(2 * MiB, 'm') + "\nlast\n";
    sorts_like_the_reference({"long lines", "lines", {}, {text}}, 128 * MiB);
    sorts_like_the_reference(
        {"1 MiB records", "fixed:1048576", ranges({"0:4"}), {random_fixed(9, 1 << 20, 256, 17)}},
        16 * MiB);
    // OnePass and MergePass need no room for a whole record.
    temporary_directory folder;
    sort_options options;
    options.memory = MiB;
    options.plan = plan_choice::mergepass;
    wiscsort::sort({folder.write("in", text)}, folder.path("out"), options);
    EXPECT_EQ(folder.read("out"), sorted_by_reference({text}, options.format, {}, false));
}

// The sample of keys says that all begin alike, and is wrong.
TEST(Sort, AKeyWithoutTheCommonPrefix) {
    std::string text = random_lines(50000, 12, 3, 18, "https://host/path/");
    text.insert(text.find('\n', text.size() / 3) + 1, "https:\nzzz\n\n");
    sorts_like_the_reference({"three lines", "lines", {}, {text}}, 2 * MiB);
}

TEST(Sort, MergesInPassesWhereMemoryIsShort) {
    temporary_directory folder;
    constexpr std::size_t part = sanitized ? 2 : 1; // of the records, and of the memory
    const std::string bytes = random_fixed(320000 / part, 100, 256, 19);
    sort_options options;
    options.format = record_format::parse("fixed:100");
    options.keys = ranges({"0:10"});
    options.plan = plan_choice::ems;
    options.memory = 4 * MiB / part;
    options.threads = 2;
    options.sync = false;
    const std::string in = folder.write("in", bytes);
    const sort_report report = wiscsort::sort({in}, folder.path("out"), options);
    EXPECT_GT(report.runs, 8U);
    EXPECT_EQ(folder.read("out"),
              sorted_by_reference({bytes}, options.format, options.keys, false));
    options.format = record_format::parse("lines");
    options.keys = {};
    const std::string text = random_lines(150000 / part, 200, 250, 20);
    wiscsort::sort({folder.write("in", text)}, folder.path("out"), options);
    EXPECT_EQ(folder.read("out"), sorted_by_reference({text}, options.format, {}, false));
}

// The arrays that lines are measured with take what such lines need, and leave the rest to runs.
TEST(Sort, RunsOfLinesAreFewWhereMemoryIsShort) {
    temporary_directory folder;
    const std::string text = random_lines(200000, 100, 250, 27);
    sort_options options;
    options.plan = plan_choice::mergepass;
    options.memory = 4 * MiB;
    options.threads = 2;
    const sort_report report =
        wiscsort::sort({folder.write("in", text)}, folder.path("out"), options);
    EXPECT_GT(report.runs, 1U);
    EXPECT_LE(report.runs, 8U);
    EXPECT_TRUE(folder.read("out") == sorted_by_reference({text}, options.format, {}, false));
}

// Where records have to be copied, their size has a bound.
TEST(Sort, ARecordThatCannotBeCopiedIsNamed) {
    temporary_directory folder;
    const std::string in = folder.write("in", "b\n" + std::string(3 * MiB, 'x') + "\na\n");
    for (const bool read : {true, false}) {
        sort_options options;
        options.memory = 4 * MiB;
        options.threads = 2;
        options.plan = plan_choice::onepass;
        if (read)
            options.io = io_choice::read;
        else
            options.keys.numeric = true;
        try {
            wiscsort::sort({in}, folder.path("out"), options);
            ADD_FAILURE();
        } catch (const usage_error& problem) {
            EXPECT_NE(std::string(problem.what()).find(in + ": offset 2, which has to be copied"),
                      std::string::npos)
                << problem.what();
        }
        EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
    }
}

TEST(Sort, TheOutputMayBeAnInput) {
    for (const plan_choice plan : plans) {
        temporary_directory folder;
        sort_options options;
        options.plan = plan;
        options.memory = 8 * MiB;
        const std::string text = random_lines(30000, 20, 200, 21);
        const std::string name = folder.write("file", text);
        wiscsort::sort({name}, name, options);
        EXPECT_EQ(folder.read("file"), sorted_by_reference({text}, options.format, {}, false));
        EXPECT_EQ(folder.names(), std::vector<std::string>{"file"});
    }
}

TEST(Sort, ALeftoverOfAKilledRunIsRemoved) {
    temporary_directory folder;
    folder.write(".out.wiscsort-new", "finished, but never renamed");
    wiscsort::sort({folder.write("in", "b\na\n")}, folder.path("out"), {});
    EXPECT_EQ(folder.read("out"), "a\nb\n");
    EXPECT_EQ(folder.names(), (std::vector<std::string>{"in", "out"}));
}

namespace {

// The n-th call fails, or each one is short.
std::atomic<long> calls_left{0};
std::atomic<int> injected_error{0};
std::atomic<bool> injected{false};
// Calls whose failure has another way round, so that the sort goes on.
std::atomic<bool> every_call_short{false};

device::fault fail_once(const char*) {
    if (every_call_short.load()) return {0, true};
    if (--calls_left == 0) {
        injected = true;
        return {injected_error.load(), false};
    }
    return {};
}

struct hook_installed {
    hook_installed() { device::set_fault_hook(fail_once); }
    ~hook_installed() {
        device::set_fault_hook(nullptr);
        every_call_short = false;
    }
};

device::fault fail_rename(const char* call) {
    return {std::strcmp(call, "renameat") == 0 ? EIO : 0, false};
}

// As some network file systems.
device::fault no_unnamed_files(const char* call) {
    return {std::strcmp(call, "open unnamed") == 0 ? EOPNOTSUPP : 0, false};
}
device::fault no_unnamed_files_nor_room(const char* call) {
    return {std::strcmp(call, "pwrite") == 0 ? ENOSPC : no_unnamed_files(call).error, false};
}

sort_options small_sort(plan_choice plan, io_choice io) {
    sort_options options;
    options.format = record_format::parse("fixed:20");
    options.keys = ranges({"0:10"});
    options.plan = plan;
    options.io = io;
    // So little that there are runs.
    options.memory = plan == plan_choice::ems ? 2 * MiB : MiB;
    options.threads = 2;
    return options;
}

// Which calls of a sort fail, one in each run: all of them if they are no more than `most`. Otherwise a quarter of `most`
// at the beginning and a quarter at the end, where files are opened and published; the rest is drawn from between them.
std::vector<long> calls_to_fail(long calls, long most, unsigned seed) {
    std::vector<long> chosen;
    const long edge = most / 4;
    std::mt19937_64 random(seed);
    for (long n = 1; n <= std::min(calls, most); ++n) {
        if (calls <= most || n <= edge)
            chosen.push_back(n);
        else if (n <= 2 * edge)
            chosen.push_back(calls - (n - edge - 1));
        else
            chosen.push_back(
                edge + 1 +
                static_cast<long>(random() % static_cast<unsigned long>(calls - 2 * edge)));
    }
    return chosen;
}

// Whichever call fails with whichever error: the output is the old one and nothing else is left, or the
// sort found a way round and the output is right.
void every_call_may_fail(plan_choice plan, io_choice io) {
    const std::string bytes = random_fixed(100000, 20, 256, 22);
    const char* const tier = std::getenv("OBASE_TEST_TIER");
    const bool thorough = tier != nullptr && std::string_view(tier) != "ci";
    sort_options options = small_sort(plan, io);
    options.sync = io == io_choice::direct;
    const std::string expected = sorted_by_reference({bytes}, options.format, options.keys, false);
    temporary_directory folder;
    const std::string in = folder.write("in", bytes);
    const auto run = [&](std::string* said) {
        const hook_installed hook;
        try {
            wiscsort::sort({in}, folder.path("out"), options);
            return true;
        } catch (const error& problem) {
            *said = problem.what();
            return false;
        }
    };
    std::string said;
    calls_left = LONG_MAX;
    ASSERT_TRUE(run(&said)) << said;
    const long calls = LONG_MAX - calls_left;
    for (const int number : {EIO, ENOSPC, EINTR}) {
        // One sort takes up to .1 s, and has a hundred thousand calls where records are read one by one.
        const long few = sanitized ? 4 : 16;
        const long most = thorough ? 1200 : number == EIO || io == io_choice::mmap ? few : 4;
        const std::vector<long> chosen = calls_to_fail(calls, most, 25);
        long failed = 0;
        for (const long n : chosen) {
            SCOPED_TRACE(fmt::format("{} {} call {} of {} error {}", model::name_of(plan),
                                     model::name_of(io), n, calls, number));
            folder.write("out", "old");
            injected = false;
            injected_error = number;
            calls_left = n;
            const bool done = run(&said);
            const std::string left = folder.read("out");
            // Only the sync of the directory comes behind the rename.
            ASSERT_TRUE(left == expected || (!done && left == "old"));
            ASSERT_EQ(folder.names(), (std::vector<std::string>{"in", "out"}));
            if (number == EINTR) {
                ASSERT_TRUE(done) << said;
            }
            // Threads meet each other differently each time, and a sort has a call more or less.
            failed += injected;
        }
        EXPECT_GE(failed * 2, static_cast<long>(chosen.size()));
    }
    every_call_short = true;
    EXPECT_TRUE(run(&said)) << said;
    EXPECT_TRUE(folder.read("out") == expected);
}

} // namespace

TEST(Sort, EveryCallMayFail) {
    for (const plan_choice plan : {plan_choice::mergepass, plan_choice::ems})
        for (const io_choice io : ios) every_call_may_fail(plan, io);
}

namespace {

std::atomic<int> data_synced{0}, directories_synced{0};

device::fault count_syncs(const char* call) {
    if (std::strcmp(call, "fdatasync") == 0) ++data_synced;
    if (std::strcmp(call, "fsync") == 0) ++directories_synced;
    return {};
}

} // namespace

TEST(Sort, SyncsTheOutputAndItsDirectoryIfAsked) {
    temporary_directory folder;
    const std::string in = folder.write("in", "b\na\n");
    for (const bool sync : {false, true}) {
        data_synced = directories_synced = 0;
        sort_options options;
        options.sync = sync;
        device::set_fault_hook(count_syncs);
        wiscsort::sort({in}, folder.path("out"), options);
        device::set_fault_hook(nullptr);
        EXPECT_EQ(data_synced, sync ? 1 : 0);
        EXPECT_EQ(directories_synced, sync ? 1 : 0);
    }
    EXPECT_TRUE(sort_options{}.sync);
}

TEST(Sort, AFailedRenameLeavesNothing) {
    temporary_directory folder;
    const std::string in = folder.write("in", "b\na\n");
    device::set_fault_hook(fail_rename);
    EXPECT_THROW(wiscsort::sort({in}, folder.path("out"), {}), error);
    device::set_fault_hook(nullptr);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
}

namespace {

std::atomic<int> rings_asked{0};

device::fault count_rings(const char* call) {
    if (std::strcmp(call, "io_uring_setup") == 0) ++rings_asked;
    return {};
}

} // namespace

// A ring takes system calls and memory of the kernel to make.
TEST(Sort, AnInputThatTheCacheHoldsAsksForNoRing) {
    temporary_directory folder;
    const std::string bytes = random_fixed(1000, 100, 256, 24);
    const std::string in = folder.write("in", bytes);
    sort_options options;
    options.format = record_format::parse("fixed:100");
    options.memory = 4 * MiB;
    device::set_fault_hook(count_rings);
    wiscsort::sort({in}, folder.path("out"), options);
    EXPECT_EQ(rings_asked, 0);
    // As much memory as that leaves nothing for the cache.
    options.memory = UINT64_MAX;
    const model::planned large = explain({in}, folder.path("out"), options);
    EXPECT_TRUE(large.beyond_cache);
    const int asked = rings_asked;
    (void)device::read_batch();
    const bool built_with_rings = rings_asked > asked;
    device::set_fault_hook(nullptr);
    if (!built_with_rings) GTEST_SKIP() << "built without liburing";
    EXPECT_GT(asked, 0);
}

namespace {

// Before one read somebody makes a single line of the input, of the same size.
std::string written_file;
std::size_t written_size;
device::fault write_before_a_read(const char* call) {
    if (std::strcmp(call, "pread") == 0 && --calls_left == 0) {
        std::fstream file(written_file, std::ios::in | std::ios::out | std::ios::binary);
        file << std::string(written_size - 1, 'x') << '\n';
    }
    return {};
}

} // namespace

TEST(Sort, AnInputMayBeWrittenAtAnyMoment) {
    const temporary_directory folder;
    std::string text;
    for (int i = 0; i < 40; ++i) text.append(16000, static_cast<char>('a' + i * 7 % 26)) += '\n';
    written_file = folder.path("in");
    written_size = text.size();
    constexpr long step = sanitized ? 92 : 23;
    int found_in_a_record = 0;
    for (const plan_choice plan : plans) {
        sort_options options;
        options.plan = plan;
        options.io = io_choice::read;
        options.memory = 24 * MiB;
        options.threads = 1;
        long before = LONG_MAX;
        for (long n = LONG_MAX; n == LONG_MAX || n <= before; n = n == LONG_MAX ? 1 : n + step) {
            SCOPED_TRACE(fmt::format("{} read {}", model::name_of(plan), n));
            folder.write("in", text);
            // A clock that ticks seldom does not hide it.
            std::filesystem::last_write_time(written_file,
                                             std::filesystem::file_time_type::clock::now() -
                                                 std::chrono::hours(1));
            calls_left = n;
            device::set_fault_hook(write_before_a_read);
            std::string said;
            try {
                wiscsort::sort({written_file}, folder.path("out"), options);
            } catch (const error& problem) {
                said = problem.what();
            }
            device::set_fault_hook(nullptr);
            if (n == LONG_MAX) {
                EXPECT_EQ(said, "");
                before = LONG_MAX - calls_left;
                std::filesystem::remove(folder.path("out"));
                continue;
            }
            EXPECT_NE(said, "");
            EXPECT_EQ(folder.names(), std::vector<std::string>{"in"});
            if (said.find("the record was changed while it was sorted") != std::string::npos)
                ++found_in_a_record;
        }
    }
    EXPECT_GT(found_in_a_record, 0);
}

TEST(Sort, WorksWhereFilesHaveNames) {
    const std::string bytes = random_fixed(100000, 20, 256, 26);
    for (const plan_choice plan : {plan_choice::mergepass, plan_choice::ems}) {
        temporary_directory folder;
        const std::string in = folder.write("in", bytes);
        const sort_options options = small_sort(plan, io_choice::mmap);
        folder.write("out", "old");
        folder.write(".out.wiscsort-new", "unfinished, of a run that was killed");
        device::set_fault_hook(no_unnamed_files_nor_room);
        EXPECT_THROW(wiscsort::sort({in}, folder.path("out"), options), error);
        EXPECT_EQ(folder.names(), (std::vector<std::string>{"in", "out"}));
        EXPECT_EQ(folder.read("out"), "old");
        device::set_fault_hook(no_unnamed_files);
        wiscsort::sort({in}, folder.path("out"), options);
        device::set_fault_hook(nullptr);
        EXPECT_TRUE(folder.read("out") ==
                    sorted_by_reference({bytes}, options.format, options.keys, false));
        EXPECT_EQ(folder.names(), (std::vector<std::string>{"in", "out"}));
    }
}

TEST(Sort, MessagesNameFileOffsetAndWhatWasExpected) {
    temporary_directory folder;
    const auto message = [&](const std::string& bytes, const std::string& format,
                             auto change) -> std::string {
        sort_options options;
        options.format = record_format::parse(format);
        options.memory = 4 * MiB;
        change(options);
        try {
            wiscsort::sort({folder.write("in", bytes)}, folder.path("out"), options);
        } catch (const wiscsort::error& problem) {
            EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
            return problem.what();
        }
        return "no failure";
    };
    const auto as_is = [](sort_options&) {};
    EXPECT_EQ(message(std::string(250, 'x'), "fixed:100", as_is),
              folder.path("in") +
                  ": offset 200: the last record is torn: expected 100 bytes, found 50");
    EXPECT_EQ(message(std::string("\1\0\0\0a\7\0\0\0bc", 11), "prefixed:u32le", as_is),
              folder.path("in") +
                  ": offset 5: the record's length says 7 bytes, but only 2 follow");
    EXPECT_EQ(message(std::string("\1\0\0\0a\7\0", 7), "prefixed:u32le", as_is),
              folder.path("in") +
                  ": offset 5: the last record is torn: expected a length of 4 bytes, found 2");
    EXPECT_EQ(message("0123456789", "fixed:10", [](sort_options& o) { o.keys.ranges = {"5:6"}; }),
              "--key: '5:6' lies outside of a record of 10 bytes");
    EXPECT_EQ(message(random_fixed(100000, 100, 256, 1), "fixed:100",
                      [](sort_options& o) {
                          o.plan = plan_choice::onepass;
                          o.memory = MiB;
                      }),
              "--memory 1.00 MiB: onepass needs at least 1.78 MiB of memory");
    EXPECT_THROW(wiscsort::sort({folder.path("missing")}, folder.path("out"), {}), error);
    EXPECT_THROW(wiscsort::sort({folder.path("")}, folder.path("out"), {}), error);
    EXPECT_THROW(wiscsort::sort({folder.write("in", "a\n")}, folder.path("no/such/out"), {}),
                 error);
}

} // namespace wiscsort
