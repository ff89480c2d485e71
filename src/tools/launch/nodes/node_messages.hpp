// What messages between nodes are made of. What comes over the network is never trusted to have the right form: a field
// that is missing, or of another type, counts as empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <col/error.hpp>

#include "launch/job_result.hpp"

namespace col::launch {

inline constexpr int kNodeProtocol = 1;

std::string text_in(const nlohmann::json& message, const char* name);
int number_in(const nlohmann::json& message, const char* name, int fallback = 0);
bool flag_in(const nlohmann::json& message, const char* name);

EndCause end_cause_from_string(std::string_view name) noexcept;  // launcher_failed when there is none of that name
std::optional<ErrorCode> error_code_from_string(std::string_view name) noexcept;

// An address as it stands in a URL: IPv6 in brackets.
std::string url_host(const std::string& address);

}  // namespace col::launch
