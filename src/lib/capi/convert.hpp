// The structs of <col/col.h> as what C++ has for them. Each throws invalid_argument for values without a meaning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <col/col.h>
#include <col/group.hpp>

namespace col::capi {

// NULL is "".
std::string_view text_of(const char* text);
Duration duration_of(std::int64_t nanoseconds, std::string_view role);
Collective collective_of(std::int32_t number);
TensorView tensor_of(const col_tensor& tensor, std::string_view role);
std::vector<Message> messages_of(const col_message* messages, std::size_t count);

// What these return refers to memory of the caller. NULL for options: the defaults.
Call call_of(const col_call* call);
Options options_of(const col_options* options);

}  // namespace col::capi
