// Several collectives that are started together. <col/group.hpp> includes this file.
//
// Between the begin and the end of a scope, a group collects its collectives instead of starting them:
//
//   col::Coalescing scope = group.coalesce();
//   for (auto& gradient : gradients) (void)group.iallreduce(gradient, gradient);
//   scope.end().wait();
//
// In a group of GPUs, all calls that NCCL does by itself become one launch. That saves time where many vectors are
// small. All other calls follow it, one by one: reductions by col's own kernels, and calls over the host. In groups
// that move host memory, the calls are started one after another, so a program need not know which kind of group it
// has. The results are the same as without a scope.
//
// Rules
// -----
// Collected calls. A scope collects the i-forms of collectives, and Group::start(). Each returns its Work, which can be
// waited for once the scope has ended; before, wait() (also with a stream), test() and then() throw invalid_argument.
// Their arguments are checked at once: a call that throws is not collected, and the scope goes on. All calls of a scope
// name the same Options::stream, or none. While the scope is open, other calls on the group throw invalid_argument:
// calls that block, messages (use batch() for those), and calls that make memory or groups. Works from before the scope
// can be waited for. A group of one rank collects nothing: it makes each call at once, and its Work has ended.
//
// Captures. A scope lies inside of a capture of its stream (CUDA graphs) or outside of it: if a capture begins or ends
// within the scope, end() throws invalid_argument, and makes none of the calls.
//
// Independence. The calls have no order among them. A buffer that one of them writes must not overlap a buffer of
// another one: end() throws invalid_argument, and then makes none of them.
//
// Ranks. All ranks make the same calls in the same scopes. A rank that ends a scope earlier than another one, or makes
// the calls without one, is a mismatch, like a rank that makes other calls.
//
// The end. end() starts the calls and returns one Work for all of them, which ends when all have ended. It fails with
// the first error, and the error names the call. If the scope is destroyed without end(), the calls are started, and an
// error shows in the next call of the group. If an exception destroys it, or after cancel(), no call is made: their
// Works fail with aborted, and the group stays usable. The other ranks must then do the same; otherwise the next calls
// do not match.
//
// Several groups. A scope is about one group, and calls on others are started as always. Two groups may each have a
// scope at a time: each starts its calls when its own scope ends, so all ranks end the scopes in the same order. One
// group has one scope at a time: scopes do not nest.
#pragma once

#include <memory>

#include <col/export.hpp>
#include <col/work.hpp>

namespace col {

class Group;

// Used by one thread at a time, as the group is.
class COL_EXPORT Coalescing {
 public:
  ~Coalescing();
  Coalescing(const Coalescing&) = delete;
  Coalescing& operator=(const Coalescing&) = delete;

  // Starts the calls. May block as the start of a collective may, for the timeout of the first call at most. Errors as
  // those of the i-forms, and invalid_argument: the buffers overlap, a capture began or ended in the scope, or the
  // scope has ended before. An error of a call that was in flight before shows here too.
  Work end();
  // Makes none of the calls. Does nothing after the end. Requires: no other thread is in a call of the group; otherwise
  // the next call on the group breaks the group.
  void cancel() noexcept;

 private:
  friend class Group;
  struct Scope;
  explicit Coalescing(std::unique_ptr<Scope> scope);
  std::unique_ptr<Scope> scope_;  // null after the end
};

}  // namespace col
