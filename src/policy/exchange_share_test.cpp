// SPDX-License-Identifier: MIT
#include "policy/exchange_share.hpp"

#include <gtest/gtest.h>

using obase::policy::exchange_share;

namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(exchange_share, is_most_while_less_and_less_finds_no_room) {
    exchange_share share;
    EXPECT_EQ(share.now(), exchange_share::most);
    double refused = 100 * mib;
    for (int window = 0; window < 40; ++window, refused *= .93) {
        share.note(static_cast<std::uint64_t>(refused));
        EXPECT_EQ(share.now(), exchange_share::most) << window;
    }
}

TEST(exchange_share, falls_when_nothing_is_gained) {
    exchange_share share;
    double last = 1;
    for (int window = 0; window < 30; ++window) {
        share.note(window % 2 == 0 ? 100 * mib : 110 * mib);
        if (window <= static_cast<int>(exchange_share::patience)) {
            EXPECT_EQ(share.now(), exchange_share::most) << window;
        }
        EXPECT_LE(share.now(), last);
        last = share.now();
    }
    EXPECT_EQ(last, exchange_share::least);
    // Nor does it end without anything to exchange.
    exchange_share idle;
    for (int window = 0; window < 30; ++window) idle.note(0);
    EXPECT_EQ(idle.now(), exchange_share::least);
    idle.note(1);
    EXPECT_EQ(idle.now(), exchange_share::most) << "now there is";
}

TEST(exchange_share, is_most_again_when_the_hot_set_changes) {
    exchange_share share;
    for (int window = 0; window < 30; ++window) share.note(10 * mib);
    share.note(12 * mib);
    EXPECT_EQ(share.now(), exchange_share::least) << "a wave";
    int windows = 0;
    while (share.now() != exchange_share::most && windows < 10) {
        share.note(40 * mib);
        ++windows;
    }
    EXPECT_LE(windows, 2);
    // And from there it falls by what is best then.
    for (int window = 0; window < 30; ++window) share.note(40 * mib);
    EXPECT_EQ(share.now(), exchange_share::least);
    for (int window = 0; window < 6; ++window) share.note(5 * mib);
    EXPECT_EQ(share.now(), exchange_share::most) << "of another load less finds no room";
}

} // namespace
