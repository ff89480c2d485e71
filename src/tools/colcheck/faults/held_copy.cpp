// A rank is held up while it copies out of the others' memory, until their calls have timed out and their buffers have
// been overwritten. It gets an error, never success.
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

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

}  // namespace

std::string call_held(Group& group, const Case& c, bool copies, const std::function<void(const std::string&)>& say) {
  Call call(group, c);
  Gate gate([&] { say("copying"); });
  if (copies && !gate.close()) throw Skipped("this system lets no system call be held");
  try {
    call.start();
  } catch (...) {
    call.spoil();
    if (!copies) say("overwritten");
    throw;
  }
  if (copies && !gate.was_asked()) return "its call did not copy through the kernel";
  return call.problem();
}

}  // namespace col::colcheck
