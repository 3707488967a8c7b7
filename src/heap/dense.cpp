// SPDX-License-Identifier: MIT
#include "heap/dense_functions.hpp"

namespace obase::heap {

template class dense_heap<os::native_platform>;

} // namespace obase::heap
