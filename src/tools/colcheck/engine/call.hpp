// One rank's side of a case: makes the buffers, calls, waits, and checks every byte afterwards.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <col/group.hpp>

#include "colcheck/engine/case.hpp"
#include "colcheck/engine/memory.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/engine/reference.hpp"

namespace col::colcheck {

// A case's collective on these views; of the counts it takes those that the collective has. Requires: no messages.
col::Call call_of(const Case& c, ConstTensorView in, TensorView out, std::span<const std::size_t> in_counts,
                  std::span<const std::size_t> out_counts);

// What a rank passes to a call.
struct Views {
  ConstTensorView in;
  TensorView out;
  std::span<const std::size_t> in_counts = {}, out_counts = {};  // v-forms
};

// How many elements input and output have on a rank that has both, if all blocks have c.count.
struct Sides {
  std::size_t in = 0, out = 0;
};
Sides sides_of(const Case& c, int size);

// The options of the case for `rank`.
col::Options options_of(const Case& c, int rank);

// Makes a blocking call of any primitive, on memory that the caller provides, and waits until the rank's part is done.
// Data from recv_any is in rank order afterwards. Throws col::Error; std::runtime_error if recv_any did not get one
// message from each rank.
void call_plainly(Group& group, const Case& c, const Views& views, const col::Options& options);

class Call {
 public:
  Call(Group group, Case c);
  // With what the rank brings and gets; otherwise, that is as the reference has it.
  Call(Group group, Case c, Part part);
  // With buffers of so many bytes at least, so that they have room for what take() brings.
  Call(Group group, Case c, std::size_t room);
  ~Call();  // gives operations that have not ended a moment to end; the memory still belongs to it
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // From now on, it is about this case, whose data is put into the same memory. Requires: there is room, the call has
  // ended, and the case has the same type, root, placement and devices.
  void take(const Case& c);
  // From now on, start() starts the call that is prepared now. Requires: an asynchronous collective.
  void prepare();
  // Blocking calls have ended when it returns. May be called again once the call has ended. Throws col::Error.
  void start();
  // Waits in one of several ways. Does nothing for blocking calls. Throws col::Error.
  void wait();
  // The operations that start() has left in flight, for use before wait(). Empty for blocking calls.
  std::span<Work> works() { return works_; }
  // Instead of wait(): drops the Works, so that the operations end by themselves. The memory must not be read or freed
  // before the group has been destroyed. Requires: no receive from any rank.
  void drop() { works_.clear(); }
  // Overwrites the output, for another start(). Requires: it has ended, and is not in place.
  void clear_output();
  // Overwrites all of the memory, as a caller may whose call has failed.
  void spoil();
  // What is wrong with the memory after that; empty if nothing is.
  std::string problem() const;

 private:
  void lay_out();
  void lay_out_in_place();
  std::size_t elements(const Bytes& bytes) const { return bytes.size() / size_of(case_.dtype); }
  void assign(Memory& memory, Bytes content, Side side);
  // Gives what a rank passes where its call does not look: this memory, nothing, a null pointer, or another type.
  TensorView ignored(const Memory& memory, std::uint64_t salt) const;
  // A yes or no that depends on the seed. Equal on all ranks unless `salt` differs.
  bool maybe(std::uint64_t salt) const { return mix(case_.seed, 900, salt) % 2 == 0; }
  void keep(Work work) { works_.push_back(std::move(work)); }
  Views views() const { return {in_, out_, part_.in_counts, part_.out_counts}; }
  void start_messages(const col::Options& options);
  void wait_for(Work& work, std::uint64_t way);

  Group group_;
  Case case_;
  Part part_;
  const std::size_t room_ = 0;
  Memory first_, second_;  // input and output; in place, the first is both
  ConstTensorView in_;
  TensorView out_;
  std::vector<Work> works_;
  std::optional<PreparedCall> prepared_;
};

// Runs a whole case on one rank. Returns what is wrong with it; empty if nothing is. Throws col::Error.
std::string run_case(Group& group, const Case& c);

}  // namespace col::colcheck
