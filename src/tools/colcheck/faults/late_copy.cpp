// The drill: a rank is held up while it copies out of the others' memory, until their calls have timed out and their
// buffers have been overwritten. It gets an error, never success.
#include "colcheck/faults/rank_drills.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "colcheck/engine/call.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/judge.hpp"
#include "colcheck/properties/list.hpp"
#include "common/unique_fd.hpp"
#include "core/clock/clock.hpp"
#include "core/clock/lock.hpp"

namespace col::colcheck {
namespace {

// ---- A rank's part

constexpr const char* kCannotHold = "this system lets no system call be held";
// A rank that finds out whether it can copy reads a few bytes.
constexpr std::size_t kLeastBytes = 4096;

#ifdef __aarch64__
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#endif

// From here on, this thread's copies ask at the descriptor that this returns.
tools::UniqueFd ask_before_copies() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return {};
  return tools::UniqueFd(
      static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program)));
}

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
    listener_ = ask_before_copies();
    if (!listener_) return false;
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
      // Of the same process, so its arguments can be read.
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

// ---- The property

constexpr int kCopyCalls = 4;  // in the first ones the ranks find out that they can copy
constexpr std::size_t kCopyElements = 20'000;
constexpr Duration kCopyTimeout = std::chrono::seconds(2);

void add_late_copies(const Selection& selection, std::vector<Case>& all) {
  std::vector<Primitive> calls = {Primitive::alltoall, Primitive::scatter};
  if (selection.effort == Effort::full) calls.insert(calls.end(), {Primitive::broadcast, Primitive::allgather});
  const std::vector<int> sizes = drill_ranks(selection);
  const std::string shm(to_string(Backend::shm));
  if (sizes.empty() || std::find(selection.backends.begin(), selection.backends.end(), shm) == selection.backends.end())
    return;
  std::uint64_t number = 0;
  for (const Primitive call : calls) {
    const bool for_two = call == Primitive::broadcast || call == Primitive::allgather;
    Case& c = all.emplace_back();
    c.property = "late_copy";
    c.backend = shm;
    c.seed = mix(selection.seed, ++number);
    c.ranks = for_two ? 2 : sizes.front();
    c.primitive = call;
    c.algorithm = "shared";
    c.dtype = DType::int32;
    c.count = kCopyElements;
  }
}

Finding run_late_copy(Rank& /*rank*/, const Case& c) {
  const int reader = c.ranks - 1;  // no root
  Job job(spec_of({.c = c, .calls = kCopyCalls, .odd = reader, .oddity = Drill::Oddity::copies_late},
                  {.timeout = kCopyTimeout, .environment = {"COL_CMA=on"}}));
  bool held = job.await_point(reader, "copying");
  for (int rank = 0; rank < reader; ++rank) held = held && job.await_point(rank, "overwritten");
  job.go_on(reader);
  job.await_report(reader);
  for (int rank = 0; rank < reader; ++rank) job.go_on(rank);
  const JobEnd end = job.finish();
  const auto& report = end.of(reader).report;
  if (report && report->message == kCannotHold) return Finding::skip("system calls cannot be held here");
  const bool has_error =
      report && !report->good() && report->code != "wrong_data" && report->doing == fmt::format("call {}", kCopyCalls);
  return Finding::of(first_of({held || !has_error ? "" : "it was not held: " + describe(end, reader),
                               has_error ? "" : describe(end, reader) + "; expected an error in its last call",
                               problem_with_traces(end)}));
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
  if (copies && !gate.close()) return kCannotHold;
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

const Property kFaultLateCopy{"late_copy",
                              "a rank that reads its peers' memory after their calls have failed reports no success",
                              Property::Kind::fault, &add_late_copies, &run_late_copy};

}  // namespace col::colcheck
