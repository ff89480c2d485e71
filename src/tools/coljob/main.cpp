// coljob: looks into running jobs. It reads their control pages, and writes nothing there.
#include <string>
#include <variant>

#include "coljob/options.hpp"
#include "common/guarded.hpp"
#include "common/write_file.hpp"
#include "launch/processes/events.hpp"

int main(int argc, char** argv) {
  namespace exit_code = col::tools::exit_code;
  if (argc < 1) return exit_code::kUsage;
  return col::tools::guarded({.tool = "coljob"}, [&] {
    const auto request = col::coljob::parse_options({argv + 1, argv + argc});
    // Before closed descriptors are replaced: a text that nobody gets is an error.
    if (const auto* text = std::get_if<std::string>(&request)) {
      col::tools::print(*text);
      return exit_code::kSuccess;
    }
    col::launch::ensure_standard_descriptors();
    return col::coljob::run(std::get<col::coljob::Options>(request));
  });
}
