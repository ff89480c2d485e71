// The arithmetic of common/, by short names.
#pragma once

#include "common/arithmetic.hpp"

namespace col::colcheck {

using tools::bits_of, tools::is_alike, tools::is_nan;
using tools::element_of, tools::value_of_element, tools::with_element;
using tools::is_complex_v, tools::is_float8_v, tools::is_narrow_v, tools::kPrecision;
using tools::Partial;

}  // namespace col::colcheck
