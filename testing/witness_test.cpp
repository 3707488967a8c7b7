// SPDX-License-Identifier: MIT
//
// A witness that does not look accepts everything: each fault must be counted, and nothing else.
#include "testing/witness.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace obase::testing {
namespace {

// A right map of one key, and reads of it.
struct witnessed {
    witness w{2, 16, 64};
    std::optional<std::string> held;

    std::string write(std::size_t key = 0) {
        const auto t = w.begin_write(key);
        if (t.erase)
            held.reset();
        else
            held = t.value;
        w.end_write(t);
        return t.value;
    }
    void read(const std::optional<std::string>& found, std::size_t key = 0) {
        w.end_read(w.begin_read(key), found.has_value(), found.value_or(""));
    }
};

TEST(Witness, AcceptsWhatIsRight) {
    witnessed s;
    s.read(std::nullopt); // never written
    for (int i = 0; i < 40; ++i) {
        s.write();
        s.read(s.held);
        EXPECT_EQ(s.w.present(0), s.held.has_value());
    }
    EXPECT_FALSE(s.w.present(1));
    EXPECT_EQ(s.w.reads(), 41u);
    EXPECT_EQ(s.w.stale() + s.w.corrupt(), 0u);
}

TEST(Witness, AcceptsBothVersionsDuringAWrite) {
    witnessed s;
    const std::string first = s.write();
    const auto second = s.w.begin_write(0);
    s.read(first);
    s.read(second.value);
    EXPECT_EQ(s.w.stale() + s.w.corrupt(), 0u);
    // A read that began before the write returned may still have the first.
    const auto early = s.w.begin_read(0);
    s.w.end_write(second);
    s.w.end_read(early, true, first);
    EXPECT_EQ(s.w.stale(), 0u);
}

TEST(Witness, FindsOldVersions) {
    witnessed s;
    const std::string first = s.write();
    s.write();
    s.read(first);
    EXPECT_EQ(s.w.stale(), 1u);
    EXPECT_EQ(s.w.corrupt(), 0u);
}

TEST(Witness, FindsVersionsFromTheFuture) {
    witnessed s, ahead;
    s.write();
    ahead.write();
    s.read(ahead.write());
    EXPECT_EQ(s.w.stale(), 1u);
}

TEST(Witness, FindsMissingKeys) {
    witnessed s;
    s.write();
    s.read(std::nullopt);
    EXPECT_EQ(s.w.stale(), 1u);
}

TEST(Witness, FindsWhatShouldHaveBeenErased) {
    witnessed s;
    std::string last;
    for (int i = 0; i < 7; ++i) {
        const std::string value = s.write();
        if (!value.empty()) last = value;
    }
    ASSERT_FALSE(s.held.has_value()); // the seventh is a deletion
    s.read(std::nullopt);
    EXPECT_EQ(s.w.stale(), 0u);
    s.read(last);
    EXPECT_EQ(s.w.stale(), 1u);
}

TEST(Witness, FindsEveryChangedByte) {
    witnessed s;
    const std::string value = s.write();
    for (std::size_t i = 0; i < value.size(); ++i) {
        std::string torn = value;
        torn[i] = static_cast<char>(torn[i] ^ 1);
        s.read(torn);
    }
    EXPECT_EQ(s.w.corrupt(), value.size());
    s.read(value);
    EXPECT_EQ(s.w.corrupt(), value.size());
}

TEST(Witness, FindsOtherLengthsAndOtherKeys) {
    witnessed s;
    const std::string value = s.write(), other = s.write(1);
    s.read(value.substr(0, value.size() - 1));
    s.read(value + "x");
    s.read(std::string(3, 'x'));
    s.read(std::string());
    EXPECT_EQ(s.w.corrupt(), 4u);
    s.read(other);
    EXPECT_EQ(s.w.corrupt(), 5u);
    s.read(other, 1);
    EXPECT_EQ(s.w.corrupt(), 5u);
}

} // namespace
} // namespace obase::testing
