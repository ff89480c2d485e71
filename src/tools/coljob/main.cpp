// coljob: looks into running jobs. It reads their control pages, and writes nothing there.
#include <string>
#include <variant>

#include "coljob/commands.hpp"
#include "coljob/options.hpp"
#include "common/guarded.hpp"
#include "common/write_file.hpp"
#include "launch/processes/descriptors.hpp"

int main(int argc, char** argv) {
  namespace exit_code = col::tools::exit_code;
  if (argc < 1) return exit_code::kUsage;
  col::launch::ensure_standard_descriptors();
  return col::tools::guarded({.tool = "coljob"}, [&] {
    const auto request = col::coljob::parse_options({argv + 1, argv + argc});
    if (const auto* options = std::get_if<col::coljob::Options>(&request)) return col::coljob::run(*options);
    col::tools::print(std::get<std::string>(request));
    return exit_code::kSuccess;
  });
}
