// SPDX-License-Identifier: MIT
#include "heap/near_functions.hpp"

namespace obase::heap {

template class near_heap<os::native_platform>;

} // namespace obase::heap
