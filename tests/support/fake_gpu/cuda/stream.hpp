// Streams: pieces of work done in order, by one thread per stream.
//
// The null stream of a context waits for what its blocking streams were given before, and they wait for what the null
// stream was given before. Streams created with CU_STREAM_NON_BLOCKING take no part in that. The order is fixed when
// work is given, so a hang in one stream hangs exactly those that the driver's rules chain to it.
#pragma once

#include <condition_variable>
#include <deque>
#include <set>

#include "support/fake_gpu/cuda/machine.hpp"

namespace fake_gpu {

// May run more than once, when a graph holds it.
using Work = std::function<void()>;

// Thrown by work that fails as a kernel does: the context is broken from then on.
struct WorkFault {
  CUresult code;
};

class Stream;

// A point in a stream that work can wait for.
struct Ticket {
  std::shared_ptr<Stream> stream;
  uint64_t number = 0;

  bool done() const;
};

inline constexpr char kCopyToDevice[] = "a copy to a device";

constexpr int kGreatestPriority = -5;  // that a stream can have; the least is 0

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(std::shared_ptr<Context> owner, unsigned creation_flags, int stream_priority, bool null_stream);

  std::shared_ptr<Context> context() const { return context_; }
  bool is_null() const { return is_null_; }
  bool blocking() const { return (flags_ & CU_STREAM_NON_BLOCKING) == 0; }
  int priority() const { return priority_; }
  bool idle() const { return finished_ == issued_; }
  const char* running() const { return running_; }

  // All of these: the machine is locked.
  Ticket last() { return {shared_from_this(), issued_}; }
  Ticket push(Work work, const char* label, std::vector<Ticket> after);
  // The thread ends after the work given so far; until then the context waits for the stream and orders with it.
  void close();

  std::shared_ptr<Capture> capture;
  std::set<size_t> frontier;  // nodes of the capture that the stream's next work depends on

 private:
  friend struct Ticket;
  struct Item {
    Work work;
    const char* label;
    std::vector<Ticket> after;
  };

  void serve();
  void run(Lock& lock, Item item);

  std::shared_ptr<Context> context_;
  unsigned flags_;
  int priority_;
  bool is_null_;
  bool serving_ = false;
  bool closing_ = false;
  uint64_t issued_ = 0;
  uint64_t finished_ = 0;
  const char* running_ = nullptr;
  std::deque<Item> queue_;
  std::condition_variable
      given_;  // work, or its end: hundreds of threads that have nothing to do sleep through the rest
};

// The stream of a handle, the current context's null stream for handle 0; null when there is none.
std::shared_ptr<Stream> find_stream(Machine& machine, CUstream handle, const std::shared_ptr<Context>& current);

// Gives work to the stream, or to the graph the stream is being captured into. `ticket` may be null.
CUresult enqueue(Machine& machine, Stream& stream, Work work, const char* label, Ticket* ticket = nullptr,
                 std::vector<Ticket> after = {});

// Waits until all work of the context's streams that has been given so far is done.
void drain(Machine& machine, Lock& lock, Context& context, const char* what);

// True on a thread that runs a function given to cuLaunchHostFunc: it must not call the driver.
bool& inside_host_function();

}  // namespace fake_gpu
