// SPDX-License-Identifier: MIT
//
// A guide of one protocol in an object of the other, where the compiler cannot see it (obase/mixing.hpp):
// its own object stays and everything keeps its value. Once it was registered, and when the outer
// object had moved, the inner protocol's collector rewrote whatever lay in the old place.
#include "testing/child_process.hpp"

#include <obase/atc.hpp>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using obase::collect_result;
using obase::testing::require;
using obase::testing::run_in_child;

struct leaf {
    std::uint64_t id;
};
// No aggregate: its members are not to be seen from outside.
template <class Inner>
struct node {
    explicit node(std::uint64_t i) : in(obase::make_managed<leaf, Inner>(leaf{i})), id(i) {}
    obase::guide<leaf, Inner> in;
    std::uint64_t id;
};
struct number {
    std::uint64_t value;
    std::uint64_t other;
};

} // namespace

template <class Inner>
struct obase::is_relocatable<node<Inner>> : std::true_type {};

namespace {

template <class Protocol>
obase::runtime& configured() {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = 1e6;
    settings.defer_promotion = false;
    auto& runtime = obase::runtime::of<Protocol>();
    require(runtime.configure(settings).empty(), "configure");
    return runtime;
}

void collect(obase::runtime& runtime) {
    require(runtime.collect_now() == collect_result::done, "a window");
}

template <class Outer, class Inner>
void nested_in_the_other_protocol() {
    const auto child = run_in_child([] {
        auto& outer = configured<Outer>();
        auto& inner = configured<Inner>();
        constexpr std::uint64_t count = 3000;
        const auto some = obase::make_managed<leaf, Inner>(leaf{1});
        const auto address = reinterpret_cast<std::uint64_t>(some.get());
        std::vector<obase::guide<node<Inner>, Outer>> nodes;
        nodes.reserve(count);
        for (std::uint64_t i = 0; i < count; ++i)
            nodes.emplace_back(obase::make_managed<node<Inner>, Outer>(i));
        for (int window = 0; window < 3; ++window) {
            const obase::basic_scope<Outer> outside;
            const obase::basic_scope<Inner> inside;
            for (std::uint64_t i = 0; i < count; ++i) require(nodes[i]->in->id == i, "a leaf");
        }
        for (int window = 0; window < 3; ++window) {
            {
                const obase::basic_scope<Outer> outside;
                for (auto& n : nodes) (void)n.get();
            }
            collect(outer);
        }
        require(outer.statistics().moved("new", "hot") >= count / 2, "the outer objects moved");
        // The inner protocol's words in memory that the outer objects have left.
        std::vector<obase::owner<number, Outer>> numbers;
        for (std::uint64_t i = 0; i < 4 * count; ++i)
            numbers.push_back(obase::make_managed<number, Outer>(number{address, address}));
        for (int window = 0; window < 3; ++window) collect(inner);
        for (const auto& n : numbers)
            require(n->value == address && n->other == address, "a number is as it was");
        const obase::basic_scope<Outer> outside;
        const obase::basic_scope<Inner> inside;
        for (std::uint64_t i = 0; i < count; ++i) require(nodes[i]->in->id == i, "a leaf");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    ASSERT_EQ(child.messages().size(), 1u) << child.err;
    EXPECT_NE(child.err.find("an object of the other protocol"), std::string::npos) << child.err;
}

TEST(mixed_protocols, a_guide_of_arming_in_an_object_of_atc) {
    nested_in_the_other_protocol<obase::atc, obase::arming>();
}
TEST(mixed_protocols, a_guide_of_atc_in_an_object_of_arming) {
    nested_in_the_other_protocol<obase::arming, obase::atc>();
}

} // namespace
