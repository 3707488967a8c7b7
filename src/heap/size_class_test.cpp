// SPDX-License-Identifier: MIT
#include "heap/size_class.hpp"

#include <gtest/gtest.h>

namespace obase::heap {
namespace {

// Every size gets the smallest block that holds it, from a monotone table without gaps.
TEST(size_class, smallest_block_that_fits) {
    for (std::size_t size = granule; size <= max_small_size; size += granule) {
        const unsigned index = size_class(size);
        ASSERT_EQ(index, size_class_computed(size));
        ASSERT_LT(index, size_classes);
        ASSERT_GE(class_block_size(index), size);
        if (index > 0) {
            ASSERT_LT(class_block_size(index - 1), size);
        }
        if (size <= max_exact_class) {
            ASSERT_EQ(class_block_size(index), size);
        }
        // The loss fits the byte that records it, and is at most a sixteenth, of larger ones half of that.
        ASSERT_LE((class_block_size(index) - size) / granule, 255U);
        ASSERT_LE(class_block_size(index) - size, size / (size > fine_from ? 32 : 16));
        ASSERT_EQ(detail::block_table[index], class_block_size(index));
    }
}

// Rounding a size to an alignment makes its block a multiple of the alignment, so blocks are
// aligned.
TEST(size_class, blocks_of_aligned_sizes_are_aligned) {
    for (std::uint8_t log = 3; log <= 12; ++log) {
        for (std::size_t asked = 0; asked <= max_small_size; ++asked) {
            const std::size_t size = object_size(asked, {log, false});
            ASSERT_GE(size, asked);
            if (size > max_small_size) continue;
            ASSERT_EQ(class_block_size(size_class(size)) % (std::size_t{1} << log), 0U)
                << asked << " at 2^" << unsigned{log};
        }
    }
}

TEST(size_class, attribute_sets_are_numbered_one_to_one) {
    for (unsigned i = 0; i < attribute_sets; ++i) {
        EXPECT_EQ(attribute_index(attributes_at(i)), i);
    }
    EXPECT_EQ(attribute_index({12, true}), attribute_sets - 1);
}

} // namespace
} // namespace obase::heap
