// The command line of the commands that measure messages between many pairs of ranks.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "colbench/options.hpp"

namespace col::colbench {

struct MessageCommand {
  const char* name;   // "pairs"
  const char* usage;  // as CommandLine takes it
  const char* footer;
  const char* sizes;                   // the default
  const char* shows;                   // what it has instead of curves: "--html draws its maps"
  const char* needed;                  // "a pair needs two ranks"
  std::chrono::milliseconds max_time;  // the default
};

struct MessageRequest {
  Method method = {};
  Output output = {};
  std::vector<std::size_t> sizes = {};
  std::string backend = {};
};

// Nothing if a text (--help) was printed instead. Throws UsageError, also if a file could not be written.
std::optional<MessageRequest> parse_message_request(const MessageCommand& command,
                                                    const std::vector<std::string>& arguments);

}  // namespace col::colbench
