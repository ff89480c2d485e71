// JSON as MessagePack: shorter than text, and its texts may hold any bytes. For what programs of one version send each
// other.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace col::core {

std::string packed(const nlohmann::json& value);
std::string packed(const nlohmann::ordered_json& value);

// One value, which is all of `bytes`. Refuses whatever JSON has not (data of other types, numbers that are not finite),
// lists and objects that announce more than `bytes` can hold, that are nested too deep, or that hold too many values;
// all of it before memory is taken for them. Throws an invalid_argument "SOURCE: what is wrong".
nlohmann::json unpacked(std::string_view bytes, std::string_view source);

}  // namespace col::core
