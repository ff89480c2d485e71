// Parses the values of colrun's options: times, lists, addresses. All functions are pure. Those that return an optional
// return nothing for invalid text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/job/job_spec.hpp"
#include "launch/nodes/endpoint.hpp"

namespace col::colrun {

inline constexpr int kMaxRank = launch::kMaxRanks * launch::kMaxNodes - 1;  // the largest rank that an option may name

// "90" (seconds), "90s", "1.5s", "500ms", "5m", "1h"; up to 30 days.
std::optional<launch::Milliseconds> parse_time(std::string_view text);

// As parse_endpoint(), but the address may be left out, ":9400" or "9400": then it is 127.0.0.1. "*:9400": all
// addresses.
std::optional<launch::Endpoint> parse_local_endpoint(std::string_view text);

// "256M", "1G", "65536": more than 0.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// "0-1;2-3": one list of processors for each rank.
std::optional<std::vector<std::vector<int>>> parse_processor_lists(std::string_view text);

// Splits `text` into words as a shell does: spaces separate words, quotes and backslashes protect. Nothing else is
// special. Returns nothing if there is no word.
std::optional<std::vector<std::string>> parse_words(std::string_view text);

// "host:29400", "[fe80::1]:29400", or without a port. A port of 0 is accepted. Stricter than launch::parse_endpoint():
// the name must not look like an option.
std::optional<launch::Endpoint> parse_endpoint(std::string_view text);

// "host", "user@host:4", "[fe80::1]:4".
std::optional<launch::HostSpec> parse_host(std::string_view text);

// "a:4,ada@b". Throws UsageError with the option's name.
std::vector<launch::HostSpec> parse_host_list(const std::string& option, const std::string& text);
bool is_known(const std::vector<launch::HostSpec>& hosts, const std::string& name);

// "kill:3@2s", "stop:1@1s+5s", "slow:1x4". "@TIME" may be left out for an immediate injection.
std::optional<launch::Injection> parse_injection(std::string_view text);

// Whether it can be the name of a variable: not empty, without '=' and spaces.
bool is_variable_name(std::string_view name) noexcept;

}  // namespace col::colrun
