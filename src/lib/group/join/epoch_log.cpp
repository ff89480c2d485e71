#include "group/join/epoch_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>

#include "core/blocked_signal.hpp"
#include "core/epoch_line.hpp"
#include "core/log.hpp"
#include "core/unique_fd.hpp"
#include "json/json_fields.hpp"

namespace col::group {
namespace {

double seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

bool is_lowest_survivor_here(const EpochRecord& record, std::span<const PeerInfo> now, int own) {
  const auto& self = now[static_cast<std::size_t>(own)];
  for (int rank = 0; rank < own; ++rank) {
    const auto& other = now[static_cast<std::size_t>(rank)];
    const bool is_here = other.boot_id == self.boot_id && other.pid_namespace == self.pid_namespace;
    if (is_here && record.members[static_cast<std::size_t>(rank)].before >= 0) return false;
  }
  return true;
}

}  // namespace

void tell_epoch(const std::string& path, const EpochRecord& record, const Stages& stages,
                std::span<const PeerInfo> before, std::span<const PeerInfo> now, int own) noexcept {
  if (path.empty() || !is_lowest_survivor_here(record, now, own)) return;
  try {
    core::EpochLine line{.epoch = record.epoch,
                         .roll_call = seconds(stages.roll_call),
                         .connect = seconds(stages.connect),
                         .open = seconds(stages.open)};
    for (const PeerInfo& peer : now) line.ranks.push_back(peer.global_rank);
    for (const int rank : record.newcomers()) line.newcomers.push_back(line.ranks[static_cast<std::size_t>(rank)]);
    for (const LostSeat& seat : record.lost)
      (seat.is_excluded ? line.left_out : line.lost)
          .push_back(before[static_cast<std::size_t>(seat.number)].global_rank);
    const std::string text = core::json_line(line) + "\n";
    const core::BlockedSignal too_long(SIGXFSZ);
    const core::UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    // One write: a line is there as a whole, or not at all.
    if (!file || ::write(file.get(), text.data(), text.size()) < 0)
      core::log::debug("cannot write {}: {}", path, std::strerror(errno));
  } catch (const std::exception& e) {
    core::log::debug("cannot write {}: {}", path, e.what());
  }
}

}  // namespace col::group
