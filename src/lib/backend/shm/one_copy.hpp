// Large messages by one copy: the receiver reads the sender's memory through the kernel. Through the ring, sender and
// receiver copy at the same time, each once.
//
//   sender                                   receiver
//     | -- request(slot, bytes, id, Offer) -> |   finds a receive, and chooses this way
//     |                                       |   reads from the sender's memory
//     | <- taken(id) ------------------------ |
//
// The receiver chooses alone: it tries both ways in the program's own messages, as ranks do in collectives
// (native/kernel_trials.hpp).
#pragma once

#include <cstdint>
#include <memory>

#include "backend/shm/native/kernel_trials.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "core/clock/clock.hpp"

namespace col::shm_backend {

// Where a message is, in the payload of its request.
struct Offer {
  std::int64_t pid = 0;
  std::uint64_t proof_at = 0;  // address of a number that no other process has there
  std::uint64_t proof = 0;
  std::uint64_t data = 0;  // 0: the message is not offered
};

// How one rank receives the large messages of one other rank.
class OneCopy {
 public:
  // Shorter ones are not offered: the kernel's start takes as long as a copy of some KiB.
  static constexpr std::uint64_t kLeast = std::uint64_t{32} << 10;
  static bool may_be_faster(const Tuning& tuning, std::uint64_t bytes) noexcept {
    const bool may =
        tuning.copies == KernelCopies::on || (tuning.copies == KernelCopies::automatic && tuning.tries != 0);
    return may && bytes >= kLeast;
  }

  // Returns true if that message, which begins now, is to be read. `message` names it in ended().
  bool begin(const void* message, const Offer& offer, std::uint64_t bytes, const Tuning& tuning);
  void ended(const void* message) noexcept;

  // At most so many bytes that begin at `from` in the sender's process. Returns how many; 0 if the kernel refuses, as
  // it then does always.
  std::size_t read(std::uint64_t from, void* to, std::uint64_t bytes) noexcept;

 private:
  enum class Reach : std::uint8_t { unknown, yes, no };

  Reach reach_ = Reach::unknown;
  std::int64_t pid_ = 0;
  std::unique_ptr<KernelTrials> trials_;
  KernelTrials::Turn turn_{.by_kernel = false};
  const void* timed_ = nullptr;  // the message that is timed now
  core::Clock::time_point began_ = {};
};

}  // namespace col::shm_backend
