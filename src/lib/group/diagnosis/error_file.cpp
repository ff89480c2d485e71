#include "group/diagnosis/error_file.hpp"

#include <exception>
#include <filesystem>
#include <fstream>

#include "core/blocked_signal.hpp"
#include "core/log.hpp"
#include "group/diagnosis/failure.hpp"

namespace col::group {

void write_error_file(const std::string& path, const Error& error) noexcept {
  if (path.empty()) return;
  try {
    const core::BlockedSignal too_long(SIGXFSZ);
    const std::string temporary = path + ".tmp";
    std::ofstream(temporary) << encode_error(error) << '\n';
    std::filesystem::rename(temporary, path);
  } catch (const std::exception& e) {
    core::log::debug("cannot write {}: {}", path, e.what());
  }
}

}  // namespace col::group
