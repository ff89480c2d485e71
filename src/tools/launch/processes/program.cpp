#include "launch/processes/program.hpp"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// 0 when `path` is a file that we may execute, else an errno value.
int check_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

[[noreturn]] void refuse(const std::string& name, const std::string& path, int error) {
  using namespace tools::exit_code;
  if (error == EISDIR) throw LaunchError(kNotExecutable, fmt::format("cannot run '{}': it is a directory", path));
  if (error == EACCES) {
    throw LaunchError(kNotExecutable,
                      fmt::format("cannot run '{}': permission denied; make it executable (chmod +x)", path));
  }
  if (error == ENOENT || error == ENOTDIR) {
    throw LaunchError(kNotFound, fmt::format("cannot find the program '{}'; check the path", name));
  }
  throw LaunchError(kNotExecutable, fmt::format("cannot run '{}': {}", path, strerror(error)));
}

}  // namespace

std::string resolve_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (const int error = check_executable(name); error != 0) refuse(name, name, error);
    return name;
  }
  const char* variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : kDefaultPath;
  std::string unusable;  // the first file of that name that we may not execute
  while (!name.empty()) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    const int error = check_executable(path);
    if (error == 0) return path;
    if (error == EACCES && unusable.empty()) unusable = path;
    if (colon == std::string_view::npos) break;
    folders.remove_prefix(colon + 1);
  }
  if (!unusable.empty()) refuse(name, unusable, EACCES);
  const bool is_here = !name.empty() && check_executable("./" + name) == 0;
  throw LaunchError(tools::exit_code::kNotFound,
                    fmt::format("cannot find the program '{}' in PATH; {}", name,
                                is_here ? fmt::format("did you mean ./{}?", name) : "give its path"));
}

void refuse_program(const std::string& path, int error) {
  std::string why = strerror(error);
  if (error == ENOENT) why = "its interpreter is missing; see its first line";
  if (error == ENOEXEC) why += "; a script needs a first line such as #!/bin/sh";
  throw LaunchError(tools::exit_code::kNotExecutable, fmt::format("cannot run '{}': {}", path, why));
}

}  // namespace col::launch
