#include "colbench/p2p/message_request.hpp"

#include <fmt/format.h>

#include "colbench/output.hpp"

namespace col::colbench {

std::optional<MessageRequest> parse_message_request(const MessageCommand& command,
                                                    const std::vector<std::string>& arguments) {
  CommandLine line(fmt::format("colbench {}", command.name), command.usage, command.footer);
  std::string sizes = command.sizes;
  MessageRequest asked{.backend = "auto"};
  line.add_option("What", "--size,--sizes", sizes, "LIST",
                  fmt::format("bytes of the messages; default: {}", command.sizes));
  line.add_option("What", "--backend", asked.backend, "NAME", "auto, shm, gloo, nccl; default: auto");
  line.add_method();
  line.add_outputs();
  if (!line.parse(arguments, 0)) return std::nullopt;
  asked.method = line.request().method;
  asked.output = line.request().output;
  if (!asked.output.plot.empty())
    throw UsageError(fmt::format("{} has no curves to plot; {}", command.name, command.shows));
  if (asked.method.ranks < 2) throw UsageError(fmt::format("{}; give -n 2 or more", command.needed));
  if (!line.given("--max-time")) asked.method.max_time = command.max_time;
  asked.sizes = parse_sizes(sizes);
  check_outputs(asked.output);
  return asked;
}

}  // namespace col::colbench
