// SPDX-License-Identifier: MIT
#include <obase/errors.hpp>

#include <new>
#include <stdexcept>

namespace obase::errors {

void out_of_memory() { throw std::bad_alloc(); }
void too_long(const char* what) { throw std::length_error(what); }

} // namespace obase::errors
