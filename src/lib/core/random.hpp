// Random bytes that nobody can guess, as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace col::core {

// Two digits a byte, in lower case.
std::string hex(std::string_view bytes);

// `digits` random hexadecimal digits, an even number of at most 512. Throws io when the system gives no random bytes.
std::string random_hex(std::size_t digits);

}  // namespace col::core
