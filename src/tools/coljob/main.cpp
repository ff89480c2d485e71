// coljob: looks into running jobs. It reads their control pages, and writes nothing there.
#include <cstdio>
#include <exception>
#include <string>
#include <variant>

#include "coljob/commands.hpp"
#include "coljob/jobs.hpp"
#include "coljob/options.hpp"
#include "common/command_line.hpp"
#include "common/exit_codes.hpp"
#include "common/write_file.hpp"

namespace {

int run(int argc, char** argv) {
  const auto request = col::coljob::parse_options({argv + 1, argv + argc});
  if (const auto* options = std::get_if<col::coljob::Options>(&request)) return col::coljob::run(*options);
  col::tools::print(std::get<std::string>(request));
  return col::tools::exit_code::kSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  namespace exit_code = col::tools::exit_code;
  try {
    return argc > 0 ? run(argc, argv) : exit_code::kUsage;
  } catch (const col::tools::UsageError& error) {
    std::fprintf(stderr, "%s\n", col::tools::usage_line("coljob", error.what()).c_str());
    return exit_code::kUsage;
  } catch (const col::coljob::NoJob& error) {
    std::fprintf(stderr, "coljob: %s\n", error.what());
    return exit_code::kNoJob;
  } catch (const col::tools::OutputClosed& error) {
    std::fprintf(stderr, "coljob: %s\n", error.what());
    return error.exit_code(exit_code::kUsage);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coljob: %s\n", error.what());
    return exit_code::kUsage;
  }
}
