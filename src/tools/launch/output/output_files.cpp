#include "launch/output/output_files.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "launch/job/launch_error.hpp"

namespace col::launch {
namespace {

using tools::exit_code::kLauncher;

const char* advice(int error) {
  switch (error) {
    case ENXIO:
      return "nobody reads this named pipe; start its reader first";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n) or use fewer ranks";
    case EISDIR:
      return "name a file in it";
    default:
      return "name another place for the output";
  }
}

void make_directories_of(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string directory = path.substr(0, slash);
    if (::mkdir(directory.c_str(), 0777) == 0 || errno == EEXIST) continue;  // a file of that name: open() will say it
    const int error = errno;
    struct stat info {};
    if (::stat(directory.c_str(), &info) == 0) continue;  // a read-only file system says EROFS for what is there, too
    throw LaunchError(kLauncher, fmt::format("cannot create the directory '{}' for the output file '{}': {}; {}",
                                             directory, path, strerror(error), advice(error)));
  }
}

}  // namespace

OutputFiles::File OutputFiles::open(const std::string& path, bool is_restart) {
  make_directories_of(path);
  const bool is_first = opened_.insert(path).second;
  const int begin_anew = is_first && !is_restart ? O_TRUNC : 0;
  // O_NONBLOCK: a named pipe without a reader is to be an error, not a halt.
  File file{tools::UniqueFd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | begin_anew, 0666))};
  struct stat info {};
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0) {
    const int error = errno;
    throw LaunchError(kLauncher,
                      fmt::format("cannot open the output file '{}': {}; {}", path, strerror(error), advice(error)));
  }
  file.size = info.st_size;
  return file;
}

}  // namespace col::launch
