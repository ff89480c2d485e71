// Times and speeds in the notation of command lines and tables. All functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace col::colbench {

// "5us", "1.5ms", "20ns", "2s", "0": seconds. Nothing for other text.
std::optional<double> parse_time(std::string_view text);
// "25GB/s", "200Gbit/s", "12.5GiB/s", "100Gbps": bytes per second. Nothing for other text, and for speeds that are not
// above 0. Powers of 1000, with an i of 1024.
std::optional<double> parse_speed(std::string_view text);

// The same for the value of an option; throw UsageError.
double time_option(const std::string& name, const std::string& text);
double speed_option(const std::string& name, const std::string& text);

// "25 GB/s", "1.25 GB/s", "340 MB/s".
std::string speed_text(double bytes_per_second);
// A roughly known size, in three digits: "12.2K", "3.05M".
std::string rough_size_text(std::size_t bytes);

}  // namespace col::colbench
