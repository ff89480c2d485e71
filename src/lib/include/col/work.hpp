// Operations that have been started, and how to wait for them. <col/group.hpp> includes this file.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/types.hpp>

namespace col {

class Group;

// The handle of an operation that an i-form (iallreduce, isend, ...) has started. Copies stand for the same operation.
//
// If all copies are dropped, the operation goes on and still uses its buffers. Keep the buffers until barrier() of the
// group returns (for collectives) or until the group is destroyed (for collectives and messages). An error of a dropped
// operation shows in the next call of the group.
//
// Progress. Operations move on inside every call, wait and test of this process, on any group. If another thread is in
// a call of a group, that thread moves the operations of this group. With COL_PROGRESS=thread, operations also move on
// while the process does other work. So a user's reduction function may run inside a wait for something else. It must
// not use the group that runs it.
class [[nodiscard]] [[gnu::visibility("default")]] Work {  // gcc 12 takes COL_EXPORT beside no other attribute
 public:
  Work() = default;  // the handle of an operation that has ended

  // Blocks until the operation has ended, for its timeout at most, counted from now. Throws the operation's error, at
  // every call.
  void wait();
  // The same for `budget` at most. Returns false if the operation has not ended by then; it goes on.
  bool wait_for(Duration budget);
  // After wait_for() has returned false: returns the timeout error that wait() would throw, with the ranks that are
  // missing; its text says that `waited` has passed. The operation goes on, and the group stays usable. Throws as
  // wait_for().
  Error overdue(Duration waited);
  // Returns whether the operation has ended. Waits for no other rank. Throws the operation's error. If the operation
  // takes long, test() now and then asks the job's store about the other ranks. Where the store does not answer, such a
  // call takes one second, at most once in five seconds.
  bool test();
  // For an operation on the memory of GPUs in a group of GPUs (backend nccl): lets all work that `stream` gets from now
  // on wait for the operation, and returns while the operation may still run. The host does not wait, with one
  // exception: messages are first handed to NCCL, which connects to the peer at the first message. The null stream is
  // the device's legacy default stream. The stream must be of the group's GPU. Work in the stream may then use the
  // buffers; for the host, has_ended() and the rules about buffers above hold as before.
  //
  // A stream has no timeout: it waits until the operation ends, or until the group breaks; the buffers then hold
  // unspecified values. Only a call of the host finds out that a rank is lost. If the host makes none, call then() with
  // a function: it watches the timeout.
  //
  // In a CUDA graph: if the operation was captured, another stream can wait for it, and then joins the capture. If it
  // was not captured, a stream that is being captured cannot wait for it: wait before the capture.
  //
  // Throws the operation's error, if it has failed by now; unavailable if only the host sees the end (another backend,
  // a buffer in host memory, a message to oneself, with a tag, or from any rank): call wait(); invalid_argument if this
  // is the handle of a function given to then(), or if the stream cannot wait for it. Neither unavailable nor
  // invalid_argument breaks the group. Thread safety as wait().
  void wait(Stream stream);
  // Runs `function` when the operation has ended, with its error, or with nothing after success. The library's progress
  // thread runs it, one function after another; this call starts that thread, which then also moves the operation on.
  // If the operation has not ended after its timeout, counted from now, it fails with `timeout`, as in wait(). Returns
  // the handle of the function: it has ended when the function has returned, and its error is what the function has
  // thrown (a col::Error, or `internal` with the words of another exception). Several functions of one operation run in
  // any order.
  //
  // The function may start operations, if no other thread uses their group at that time (or ContextSpec::serialize is
  // set). It must not wait: calls that block throw invalid_argument there. While it runs, that thread moves no
  // operation on. It is destroyed in that thread too. then() throws invalid_argument (no function) and resource (no
  // thread).
  Work then(std::function<void(const std::optional<Error>& error)> function);

  // The rest may be called at any time, by any thread, also while a call of the group is running. None of it blocks,
  // moves the operation on, or throws.

  bool has_ended() const noexcept;
  // The operation's error; nothing after success, and nothing before the end.
  std::optional<Error> error() const;
  // After the end of a receive: the rank that sent the message. Otherwise -1.
  int source() const;

 private:
  friend class Group;
  friend COL_EXPORT std::optional<std::size_t> wait_any(std::span<Work> works, Duration budget);
  struct Handle;
  explicit Work(std::shared_ptr<Handle> handle);
  std::shared_ptr<Handle> handle_;  // shared by the copies; null when there is nothing to wait for
};

// Waits for all works, for each as Work::wait() does, and then throws the first error in the order of the list. With a
// `budget` above zero, it returns false if some have not ended after that time; these go on. The works may belong to
// several groups. An interrupt, or another thread that uses a group, ends the wait at once.
COL_EXPORT bool wait_all(std::span<Work> works, Duration budget = {});
// Waits until one of the works has ended, and returns its index in the list, or throws its error. If several have
// ended, it takes the first of the list. Blocks for the shortest of their timeouts at most, counted from now, and then
// throws the timeout of that work. With a `budget` above zero, it returns nothing after that time, and all go on. An
// interrupt (ContextSpec::interrupt) ends the wait, and breaks nothing. Throws invalid_argument for an empty list.
COL_EXPORT std::optional<std::size_t> wait_any(std::span<Work> works, Duration budget = {});

}  // namespace col
