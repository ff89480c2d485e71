// A rank is held up while it copies out of the others' memory, until their calls have timed out and their buffers have
// been overwritten. It gets an error, never success.
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/faults/processes.hpp"
#include "colcheck/faults/rows.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"

namespace col::colcheck {
namespace {

// A rank that finds out whether it can copy reads a few bytes.
constexpr std::size_t kLeastBytes = 4096;

// Lets copies happen, the first one when `first` returns.
class Gate {
 public:
  // Begins before the filter, which it would be under.
  explicit Gate(std::function<void()> first) : first_(std::move(first)), thread_([this] { attend(); }) {}
  ~Gate() {
    done_ = true;
    thread_.join();
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // False when the system refuses.
  bool close() {
    const int listener = filter_calls(SYS_process_vm_readv, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    if (listener < 0) return false;
    listener_.reset(listener);
    ready_ = true;
    return true;
  }
  bool was_asked() const { return asked_; }

 private:
  void attend() {
    while (!done_) {
      pollfd event{ready_ ? listener_.get() : -1, POLLIN, 0};
      if (core::poll_for({&event, 1}, std::chrono::milliseconds(5)) <= 0) continue;
      seccomp_notif question{};
      if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) continue;
      // It is the same process, so its arguments can be read.
      const auto* const to = reinterpret_cast<const iovec*>(question.data.args[1]);  // NOLINT
      if (to->iov_len >= kLeastBytes && !asked_.exchange(true)) first_();
      seccomp_notif_resp answer{.id = question.id, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
      ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
  }

  const std::function<void()> first_;
  tools::UniqueFd listener_;
  std::atomic<bool> ready_{false}, asked_{false}, done_{false};
  core::Thread thread_;  // the last member: it uses the others
};

std::int32_t value(int from, std::size_t i) {
  return static_cast<std::int32_t>(i * 31 + static_cast<std::size_t>(from) * 7 + 1);
}

}  // namespace

std::string call_held(Group& group, const Case& c, bool copies, const std::function<void(const std::string&)>& say) {
  const auto ranks = static_cast<std::size_t>(c.ranks), own = static_cast<std::size_t>(group.rank()), count = c.count;
  const bool spreads = c.primitive == Primitive::alltoall || c.primitive == Primitive::scatter;
  const bool gathers = c.primitive == Primitive::alltoall || c.primitive == Primitive::allgather;
  std::vector<std::int32_t> in(spreads ? ranks * count : count), out(gathers ? ranks * count : count);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(group.rank(), i);
  const Options options{.root = c.root, .algorithm = c.algorithm};
  Gate gate([&] { say("copying"); });
  if (copies && !gate.close()) throw Skipped("this system lets no system call be held");
  try {
    group.run(call_of(c, in, c.primitive == Primitive::broadcast ? in : out, {}, {}), options);
  } catch (...) {
    std::fill(in.begin(), in.end(), -1);
    std::fill(out.begin(), out.end(), -1);
    if (!copies) say("overwritten");
    throw;
  }
  if (copies && !gate.was_asked()) return "its call did not copy through the kernel";
  const std::vector<std::int32_t>& got = c.primitive == Primitive::broadcast ? in : out;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int from = gathers ? static_cast<int>(i / count) : c.root;
    const std::size_t at = (spreads ? own * count : 0) + i % count;
    if (got[i] != value(from, at))
      return fmt::format("success, and element {} is {}, not {}", i, got[i], value(from, at));
  }
  return {};
}

}  // namespace col::colcheck
