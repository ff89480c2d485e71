#include "backend/shm/calibration/kept_costs.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/env.hpp"
#include "core/hash.hpp"

namespace col::shm_backend {
namespace {

constexpr std::string_view kTitle = "col calibration 3", kEnd = "end";
constexpr std::size_t kMostBytes = 4096;
// Nothing takes a second.
constexpr std::uint64_t kMostPicoseconds = 1'000'000'000'000;

// What stands in the file, in this order.
template <class Visit>
void fields(Costs& costs, Visit visit) {
  static_assert(kSlotSizes.size() == 3);
  auto& [line, yield, look, slot_start, slot_kib, best_kib, kernel_start, kernel_kib, exchange_kib, step_kib] = costs;
  visit("line", line);
  visit("yield", yield);
  visit("look", look);
  visit("slot_start", slot_start);
  visit("slot_kib", slot_kib);
  visit("best_kib", best_kib);
  visit("kernel_start", kernel_start);
  visit("kernel_kib", kernel_kib);
  visit("exchange_kib", exchange_kib);
  visit("step_kib_64", step_kib[0]);
  visit("step_kib_128", step_kib[1]);
  visit("step_kib_256", step_kib[2]);
}

std::string error_text() {
  return std::generic_category().message(errno);
}

// Of the lines "name : value" the first with one of the names that processors are called by.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::array<std::string_view, 3> kNames = {"model name", "CPU part", "cpu model"};
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const bool names_it = std::any_of(kNames.begin(), kNames.end(), [&](auto name) { return line.starts_with(name); });
    if (names_it) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// Takes lines from a text, each whole.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  std::string_view next() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return {};
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  // The number in the line "name number"; nothing if it is another line.
  std::optional<std::uint64_t> number(std::string_view name) {
    std::string_view line = next();
    if (!line.starts_with(name) || line.substr(name.size(), 1) != " ") return std::nullopt;
    line.remove_prefix(name.size() + 1);
    std::uint64_t value = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), value);
    if (read.ec != std::errc() || read.ptr != line.data() + line.size()) return std::nullopt;
    return value;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// A folder or file that nobody but this user can have written.
bool is_own(const struct stat& status) {
  return status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

std::string machine_kind(int size) {
  utsname system{};
  ::uname(&system);
  const int processors = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const int ranks = (size + processors - 1) / processors;
  std::string kind = fmt::format("{}, {} {}, {} {} a processor", processor_model(), system.sysname, system.release,
                                 ranks, ranks == 1 ? "rank" : "ranks");
  std::replace(kind.begin(), kind.end(), '\n', ' ');
  return kind;
}

KeptCosts::KeptCosts(std::string folder, std::string machine, std::int64_t now)
    : folder_(std::move(folder)), machine_(std::move(machine)), now_(now) {
  if (!folder_.empty())
    path_ = fmt::format("{}/calibration-{:016x}", folder_, core::Hash().add(std::string_view(machine_)).value());
}

std::string KeptCosts::usual_folder() {
  // As the XDG specification says, a relative path does not count.
  if (const auto cache = core::env::get("XDG_CACHE_HOME"); cache && cache->starts_with('/')) return *cache + "/col";
  if (const auto home = core::env::get("HOME"); home && home->starts_with('/')) return *home + "/.cache/col";
  return "";
}

std::optional<Costs> KeptCosts::read(std::string& why) const {
  const auto nothing = [&](std::string reason) {
    why = std::move(reason);
    return std::nullopt;
  };
  if (path_.empty()) return nothing("there is no folder to keep it in");
  // O_NONBLOCK: something else than a file must not make this rank wait.
  const core::UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return nothing(error_text());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return nothing("it is no file");
  if (!is_own(status)) return nothing("others can have written it");
  std::array<char, kMostBytes> text{};
  const ssize_t bytes = ::read(file.get(), text.data(), text.size());
  if (bytes < 0) return nothing(error_text());

  Lines lines({text.data(), static_cast<std::size_t>(bytes)});
  if (lines.next() != kTitle) return nothing("it is no calibration of this version");
  if (lines.next() != fmt::format("machine {}", machine_)) return nothing("it is of another machine");
  const auto made = lines.number("made");
  if (!made) return nothing("it is damaged");
  const auto age = now_ - static_cast<std::int64_t>(std::min<std::uint64_t>(*made, INT64_MAX));
  if (age < 0 || age > kMostSeconds) return nothing("it is too old, or from the future");
  Costs costs;
  bool is_whole = true;
  fields(costs, [&](std::string_view name, std::uint64_t& value) {
    const auto number = lines.number(name);
    is_whole = is_whole && number && *number <= kMostPicoseconds;
    value = number.value_or(0);
  });
  if (!is_whole || lines.next() != kEnd || !lines.at_end()) return nothing("it is damaged");
  return costs;
}

std::string KeptCosts::write(const Costs& costs) const {
  if (path_.empty()) return "there is no folder to keep it in";
  std::string text = fmt::format("{}\nmachine {}\nmade {}\n", kTitle, machine_, now_);
  Costs copy = costs;
  fields(copy, [&](std::string_view name, const std::uint64_t& value) { text += fmt::format("{} {}\n", name, value); });
  text += fmt::format("{}\n", kEnd);
  // One process of a user calibrates at a time, and what is left of one that was killed is overwritten.
  const std::string draft = path_ + ".new";
  core::UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file) return error_text();
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size()) && ::rename(draft.c_str(), path_.c_str()) == 0) return "";
  std::string why = written < 0 || written == static_cast<ssize_t>(text.size()) ? error_text() : "no space";
  ::unlink(draft.c_str());
  return why;
}

KeptCosts::Lock KeptCosts::lock() const {
  Lock lock;
  if (folder_.empty()) return lock;
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path(), failed);
  ::mkdir(folder_.c_str(), 0700);
  lock.folder.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.folder) lock.is_taken = ::flock(lock.folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return lock;
}

}  // namespace col::shm_backend
