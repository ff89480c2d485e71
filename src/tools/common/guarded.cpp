#include "common/guarded.hpp"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include <col/error.hpp>

#include "common/command_line.hpp"
#include "common/write_file.hpp"

namespace col::tools {
namespace {

int code_of(const Error& error, const Guard& guard) {
  if (!guard.has_ranks) return guard.failure;
  switch (error.code()) {
    case ErrorCode::invalid_argument:  // the environment contradicts itself
    case ErrorCode::io:                // a file that it names
      return exit_code::kUsage;
    case ErrorCode::timeout:
      return exit_code::kRankTimeout;
    default:
      return guard.failure;
  }
}

}  // namespace

int guarded(const Guard& guard, const std::function<int()>& work) {
  const auto said = [&](const std::exception& error, int code) {
    std::fputs(fmt::format("{}: {}\n", guard.tool, error.what()).c_str(), stderr);
    return code;
  };
  try {
    return work();
  } catch (const UsageError& error) {
    std::fputs((usage_line(guard.tool, error.what()) + "\n").c_str(), stderr);
    return exit_code::kUsage;
  } catch (const ToolError& error) {
    return said(error, error.exit_code());
  } catch (const OutputClosed& error) {
    return said(error, error.exit_code(guard.unwritten));
  } catch (const WriteError& error) {
    return said(error, guard.unwritten);
  } catch (const Error& error) {
    return said(error, code_of(error, guard));
  } catch (const std::exception& error) {
    return said(error, guard.failure);
  }
}

}  // namespace col::tools
