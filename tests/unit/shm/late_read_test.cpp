// A rank that is held up while the kernel copies for it, until the calls of all others have failed and their users have
// their buffers back: it must not report success.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/native/process_memory.hpp"
#include "support/catch.hpp"
#include "support/native_calls.hpp"
#include "support/soon.hpp"
#include "unit/shm/shm_ranks.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

// What this thread does before its next reads.
thread_local std::function<void()> before_read;

}  // namespace

// In the place of libc's, for this program.
extern "C" ssize_t process_vm_readv(pid_t pid, const iovec* to, unsigned long to_count, const iovec* from,
                                    unsigned long from_count, unsigned long flags) noexcept {
  if (before_read) before_read();
  return ::syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
}

namespace {

using Data = std::int32_t;

void overwrite(const Request& request) {
  if (request.in.count > 0) std::memset(const_cast<void*>(request.in.data), 0x77, request.in.bytes());
  if (request.out.count > 0) std::memset(request.out.data, 0x77, request.out.bytes());
}

void check_late_read(const NativeCall& call, int size) {
  std::atomic<int> overwritten = 0;
  const auto endings = run_ranks(size, [&](int rank, ShmChannel& channel) {
    // Two calls in which the ranks find out that they can read, and one that does.
    int reads = 0;
    before_read = [&] { ++reads; };
    for (std::uint64_t number = 0; number < 3; ++number) make_call<Data>(channel, call, rank, size, number);
    const bool is_reader = rank == size - 1;
    expect(!is_reader || reads > size, "goes through the kernel");

    const NativePart<Data> part(call, rank, size, 3);
    if (!is_reader) {
      before_read = {};
      const Ending ending = ending_of([&] { run_native(channel, part.request(), 100ms); });
      overwrite(part.request());
      ++overwritten;
      return expect(ending.code == ErrorCode::timeout || ending.code == ErrorCode::aborted, "fails: " + ending.text);
    }
    before_read = [&] {
      const Deadline deadline = Deadline::after(kDeadline);
      while (overwritten < size - 1 && !deadline.expired()) std::this_thread::yield();
    };
    const Ending ending = ending_of([&] { run_native(channel, part.request()); });
    before_read = {};
    // It may come when they have: then it is told at once.
    expect(soon([&] { return overwritten == size - 1; }), "all others have failed");
    if (!ending.code) part.check();
    expect(ending.code == ErrorCode::aborted, "told that the group has ended: " + ending.text);
  });
  INFO(show(call) << ", " << size << " ranks\n" << show(endings));
  CHECK(all_well(endings));
}

}  // namespace

TEST_CASE("native: who has read memory after its owner's call had failed does not report success", "[shm]") {
  const std::size_t half = 16'384, several = 600'000;  // less than the kernel copies at once, and more
  for (const std::size_t count : {half, several}) {
    check_late_read({.collective = Collective::allgather, .count = count}, 2);
    check_late_read({.collective = Collective::scatter, .count = count}, 2);
    check_late_read({.collective = Collective::alltoall, .count = count}, 2);
    check_late_read({.collective = Collective::gather, .count = count, .root = 1}, 2);
    check_late_read({.collective = Collective::reduce, .count = count, .root = 1}, 2);
    check_late_read({.collective = Collective::allreduce, .count = count}, 2);
  }
  check_late_read({.collective = Collective::broadcast, .count = half}, 2);
  check_late_read({.collective = Collective::allgatherv, .count = half, .counts = {half, half / 2}}, 2);
  check_late_read({.collective = Collective::scatter, .count = half}, 3);
  check_late_read({.collective = Collective::alltoall, .count = half}, 3);
  check_late_read({.collective = Collective::gather, .count = half, .root = 2}, 3);
}

TEST_CASE("one copy: what was read after the sender's call had failed does not count", "[shm]") {
  constexpr std::size_t kReads = 4;
  for (std::size_t late = 0; late < kReads; ++late) {  // in the reads before that one, the message is as it was
    std::atomic<bool> reader_stands{false}, is_overwritten{false};
    const auto endings = run_ranks(2, [&](int rank, ShmChannel& channel) {
      std::vector<std::uint8_t> data(kReads * shm_backend::kReadAtOnce, rank == 0 ? 1 : 0);
      const TensorView view{data.data(), data.size(), DType::uint8};
      if (rank == 0) {
        channel.post_send(1, 1, view);
        expect(soon([&] { return reader_stands.load(); }), "the message is read");
        channel.abort(Error(ErrorCode::aborted, "the call has failed"));
        std::memset(data.data(), 2, data.size());
        is_overwritten = true;
        return;
      }
      std::size_t reads = 0;
      before_read = [&] {  // the first read asks whether there is a way
        if (reads++ != late + 1) return;
        reader_stands = true;
        soon([&] { return is_overwritten.load(); });
      };
      WaitContext wait = wait_for(kDeadline);
      const Ending ending = ending_of([&] { channel.wait(channel.post_recv(0, 1, view), wait); });
      before_read = {};
      expect(is_overwritten, "the sender's call fails");
      expect(ending.code == ErrorCode::aborted, "told that the group has ended: " + ending.text);
      expect(reads > late + 1, "the message is read in parts");
    });
    INFO("late in read " << late << "\n" << show(endings));
    CHECK(all_well(endings));
  }
}
