#include "store/file_error.hpp"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include <col/error.hpp>

#include "store/base/text.hpp"

namespace col::store {
namespace {

struct Verdict {
  ErrorCode code;
  std::string_view advice;
};

Verdict verdict(int error) noexcept {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return {ErrorCode::resource, "free space there, or set COL_STORE to a directory on a file system with space"};
    case EFBIG:
      return {ErrorCode::resource, "raise the file size limit (ulimit -f)"};
    case EMFILE:
      return {ErrorCode::resource, "raise the limit of open files (ulimit -n)"};
    case ENFILE:
      return {ErrorCode::resource, "close files on this host, or raise fs.file-max"};
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::resource, "free memory on this host"};
    case ENOENT:
    case ESTALE:
      return {ErrorCode::io,
              "it cannot be created there or was removed while in use; set COL_STORE to a directory that lives as long "
              "as the job"};
    case ENOLCK:
    case ENOSYS:
    case EOPNOTSUPP:
      return {ErrorCode::io, "set COL_STORE to a directory on a file system with file locks"};
    default:
      return {ErrorCode::io, "set COL_STORE to a directory that this user can write on every host of the job"};
  }
}

}  // namespace

void throw_file_error(int error, std::string_view action, std::string_view directory) {
  const auto [code, advice] = verdict(error);
  throw Error(code, fmt::format("cannot {} in store directory '{}': {}; {}", action, printable(directory),
                                std::generic_category().message(error), advice));
}

}  // namespace col::store
