// The table of hangs that `coljob why` explains, beside those of each primitive: what only messages, several groups and
// calls in flight can do wrong.
#include "colcheck/faults/hangs.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <map>
#include <random>
#include <string>

#include "colcheck/engine/memory.hpp"
#include "colcheck/engine/mix.hpp"
#include "colcheck/faults/rows.hpp"
#include "common/gpu.hpp"

namespace col::colcheck {
namespace {

using Cause = launch::Why::Cause;
using Op = Deed::Op;

Hang row(std::string_view name, Cause cause, std::vector<int> culprits, std::string_view words, std::vector<Deed> deeds,
         std::vector<Team> groups = {}) {
  return {name, cause, std::move(culprits), words, std::move(deeds), std::move(groups)};
}

std::vector<Hang> table_of_hangs() {
  return {
      // ---- Tags
      row("wrong_tag", Cause::wrong_tag, {0},
          "with tag 5 from rank 0 .*: rank 0 .* (has sent|waits to send) one with tag 6, which nobody receives",
          {{0, Op::send, 1, 6}, {1, Op::recv, 0, 5}}),
      row("circle_of_sends", Cause::circle, {}, "in a circle.*: rank 0 for rank 1 in send .*; rank 1 for rank 2 .*",
          {{kEach, Op::send_large, kEach}}),
      row("wrong_tag_after_right_ones", Cause::wrong_tag, {0},
          "with tag 5 .* (has sent|waits to send) one with tag 7, which",
          {{0, Op::send, 1, 5}, {1, Op::recv, 0, 5}, {0, Op::send, 1, 7}, {1, Op::recv, 0, 5}}),
      row("wrong_tag_large", Cause::wrong_tag, {0}, "with tag 5 from rank 0 .*: rank 0 .* waits to send one with tag 6",
          {{0, Op::send_large, 1, 6}, {1, Op::recv_large, 0, 5}}),
      row("wrong_tag_of_irecv", Cause::wrong_tag, {0},
          "with tag 1 from rank 0 .* (has sent|waits to send) one with tag 2",
          {{0, Op::send, 2, 2}, {2, Op::irecv, 0, 1}}),
      // ---- Messages that nobody sends or receives
      row("never_sent", Cause::own_code, {0},
          "from rank 0 of group 'default': rank 0 .* has not sent it: it is in its own code", {{1, Op::recv, 0, 5}}),
      row("never_received", Cause::own_code, {1}, "to rank 1 of group 'default': rank 1 .* does not receive it",
          {{0, Op::send_large, 1}}),
      row("circle_of_receives", Cause::circle, {},
          "rank 0 for rank 2 in recv .*; rank 2 for rank 1 .*; rank 1 for rank 0", {{kEach, Op::recv, kEach}}),
      row("two_send_to_each_other", Cause::circle, {0, 1}, "ranks 0-1 wait for one another",
          {{0, Op::send_large, 1}, {1, Op::send_large, 0}}),
      row("anybody", Cause::own_code, {0, 2}, "in recv_any .*: ranks 0, 2 have sent none", {{1, Op::recv_any, 0, 3}}),
      row("sendrecv", Cause::own_code, {0}, "in sendrecv .*: rank 0 .* does not take part", {{1, Op::sendrecv, 0}}),
      row("chain_of_receives", Cause::own_code, {2},
          "in recv .* from rank 2 .*: rank 2 .* has not sent it.*; rank 0 waits for rank 1",
          {{0, Op::recv, 1}, {1, Op::recv, 2}}),
      // Whom rank 2 waits for depends on the barrier's algorithm: if for rank 0, the one that has waited for longer has
      // the word.
      row("message_then_barrier", Cause::own_code, {0},
          "(in recv .* from rank 0 .*: rank 0 .* has not sent it.*; rank 2 waits for|"
          "in barrier .*: rank 0 .* has not called it.*; rank 1 waits for rank 0 in recv)",
          {{1, Op::recv, 0}, {2, Op::barrier}}),
      // ---- Several groups
      row("split", Cause::own_code, {2}, "has not called it: it is in its own code", {{0, Op::split}, {1, Op::split}}),
      row("dup", Cause::own_code, {0}, "has not called it: it is in its own code", {{1, Op::dup}, {2, Op::dup}}),
      row("crossed", Cause::circle, {0, 1},
          "rank 0 for rank 1 in barrier #1 of group 'rows'; rank 1 for rank 0 in barrier #1 of group 'columns'",
          {{.rank = 0, .group = "rows"},
           {.rank = 0, .group = "columns"},
           {.rank = 1, .group = "columns"},
           {.rank = 1, .group = "rows"}},
          {{"rows", {0, 1}}, {"columns", {0, 1}}}),
      row("across_groups", Cause::own_code, {2},
          "rank 1 has waited .* in barrier .*: rank 2 .* has not called it.*; rank 0 waits for rank 1 in barrier",
          {{.rank = 1, .group = "back"}, {.rank = 0, .group = "front"}, {.rank = 1, .group = "front"}},
          {{"front", {0, 1}}, {"back", {1, 2}}}),
      row("in_a_subgroup", Cause::own_code, {1}, "of group 'pair'.*: rank 1 .* has not called it",
          {{.rank = 0, .group = "pair"}}, {{"pair", {0, 1}}}),
      row("subgroup_renumbers", Cause::wrong_tag, {2},
          "with tag 1 from rank 2 of group 'tail': rank 2 .* (has sent|waits to send) one with tag 4",
          {{2, Op::send, 0, 4, "tail"}, {1, Op::recv, 1, 1, "tail"}}, {{"tail", {1, 2}}}),
      // ---- Calls in flight
      row("unwaited_allreduce", Cause::not_waited, {2}, "has started it and does not wait for it",
          {{kEach, Op::start_allreduce}}),
      row("unwaited_allgather", Cause::not_waited, {2}, "has started it and does not wait for it",
          {{kEach, Op::start_allgather}}),
      row("unwaited_alltoall", Cause::not_waited, {2}, "has started it and does not wait for it",
          {{kEach, Op::start_alltoall}}),
      // ---- And the rest
      row("barrier", Cause::own_code, {2}, "has not called it: it is in its own code", {{0}, {1}}),
      row("two_away", Cause::own_code, {1, 2}, "ranks 1-2 have not called it: they are in their own code", {{0}}),
      row("stopped_before", Cause::stopped, {2}, "rank 2 .* stands still: a signal .SIGSTOP", {{2, Op::stop}, {kEach}}),
      row("stopped_in_calls", Cause::stopped, {2}, "rank 2 .* stands still",
          {{2, Op::stop_later}, {kEach, Op::calls, 1'000'000'000}}),
      row("after_many_calls", Cause::own_code, {1}, "rank 1 .* has not called it: .*last: allreduce #2000\\)",
          {{kEach, Op::calls, 2000}, {0}, {2}}),
  };
}

constexpr std::size_t kUsualHangs = 12;
// No channel takes so much on trust.
constexpr std::size_t kFew = 8, kUntaken = std::size_t{1} << 22;

// Its memory and what is in flight live as long as the process.
class Doer {
 public:
  Doer(Group& world, Device::Type device) : world_(world), device_(device) {}

  void make(const Team& team) { groups_[team.name] = world_.subgroup(team.ranks, std::string(team.name)); }

  void carry_out(const Deed& deed) {
    Group& group = deed.group.empty() ? world_ : groups_.at(deed.group);
    const int n = group.size(), me = group.rank();
    const Options with_tag{.tag = deed.tag};
    const int to = deed.peer == kEach ? (me + 1) % n : deed.peer,
              from = deed.peer == kEach ? (me + n - 1) % n : deed.peer;
    switch (deed.op) {
      case Op::send:
        return group.send(buffer(kFew), to, with_tag);
      case Op::send_large:
        return group.send(buffer(kUntaken), to, with_tag);
      case Op::recv:
        return group.recv(buffer(kFew), from, with_tag);
      case Op::recv_large:
        return group.recv(buffer(kUntaken), from, with_tag);
      case Op::irecv:
        return group.irecv(buffer(kFew), from, with_tag).wait();
      case Op::recv_any:
        group.recv_any(buffer(kFew), with_tag);
        return;
      case Op::sendrecv:
        return group.sendrecv(buffer(kFew), to, buffer(kFew), to, with_tag);
      case Op::barrier:
        return group.barrier();
      case Op::split:
        group.split(0);
        return;
      case Op::dup:
        group.dup();
        return;
      case Op::calls:
        return call(group, deed.peer);
      case Op::start_allreduce:
        return leave_to_others(group.iallreduce(buffer(kUntaken), buffer(kUntaken)));
      case Op::start_allgather:
        return leave_to_others(group.iallgather(buffer(kUntaken), buffer(3 * kUntaken)));
      case Op::start_alltoall:
        return leave_to_others(group.ialltoall(buffer(3 * kUntaken), buffer(3 * kUntaken)));
      case Op::stop:
        ::raise(SIGSTOP);
        return;
      case Op::stop_later:
        stops_ = true;
        return;
    }
  }

 private:
  TensorView buffer(std::size_t count) {
    memory_.emplace_back().assign(Bytes(count * sizeof(float)), Placement::margins, sizeof(float), device_);
    return memory_.back().view(0, count, DType::float32);
  }
  void call(Group& group, int times) {
    const TensorView in = buffer(kFew), out = buffer(kFew);
    for (int number = 0; number < times; ++number) {
      if (stops_ && number == 1000) ::kill(::getpid(), SIGSTOP);  // any thread may take it: it may strike anywhere
      group.allreduce(in, out);
    }
  }
  void leave_to_others(Work work) {
    if (world_.rank() != 2) work.wait();
    works_.push_back(std::move(work));
  }

  Group& world_;
  const Device::Type device_;
  bool stops_ = false;
  std::deque<Memory> memory_;
  std::map<std::string_view, Group> groups_;
  std::vector<Work> works_;
};

struct Planned {
  Primitive primitive = Primitive::barrier;
  std::uint64_t variant = 0;
  bool asynchronous = false;

  const Hang* row() const { return variant < kFirstHang ? nullptr : &hangs()[variant - kFirstHang]; }
  // A GPU does what it has started whether its rank waits for it or not; in a tangle, such ranks wait in no call of
  // col's; and thousands of calls take stand-ins too long.
  bool hangs_over(const std::string& backend) const {
    if (!tools::moves_device_memory(backend)) return true;
    return row() != nullptr ? row()->cause != Cause::not_waited && row()->deeds.front().op != Op::calls : variant != 3;
  }
};

}  // namespace

std::span<const Hang> hangs() {
  static const std::vector<Hang> all = table_of_hangs();
  return all;
}

void do_part(const Hang& hang, Group& world, Device::Type device) {
  auto* const doer = new Doer(world, device);  // never deleted: what it has in flight is not waited for
  for (const Team& team : hang.groups) doer->make(team);
  for (const Deed& deed : hang.deeds) {
    if (deed.rank == kEach || deed.rank == world.rank()) doer->carry_out(deed);
  }
}

// Each primitive with a rank that stays away, blocking and not; and each row. A few of them are drawn, or all in a full
// run.
void add_hangs(Draw& draw) {
  std::vector<Planned> planned;
  for (int number = 0; number < kPrimitiveCount; ++number) {
    planned.push_back({Primitive(number)});
    if (has_i_form(Primitive(number))) planned.push_back({Primitive(number), 0, true});
  }
  for (const std::uint64_t variant : {1, 1, 2, 3, 3, 3, 3}) planned.push_back({.variant = variant});
  for (std::size_t i = 0; i < hangs().size(); ++i) planned.push_back({.variant = kFirstHang + i});

  const std::vector<int> sizes = drill_ranks(draw.selection(), Choice::Sizes::least_three);
  std::vector<std::string> backends = drill_backends(draw.selection());
  std::erase_if(backends, is_over_hosts);  // each host has a page of its own
  if (backends.empty() || sizes.empty()) return;
  std::mt19937_64 random(mix(draw.selection().seed, 71));
  std::ranges::shuffle(planned, random);
  if (draw.quick()) planned.resize(std::max(kUsualHangs, backends.size()));
  for (std::size_t i = 0; i < planned.size(); ++i) {
    for (std::size_t backend = 0; backend < backends.size(); ++backend) {
      if (draw.quick() && i % backends.size() != backend) continue;
      if (!planned[i].hangs_over(backends[backend])) continue;
      const int ranks = planned[i].row() != nullptr ? 3 : in_turn(sizes, draw.number());
      Case& c = draw.add(backends[backend], planned[i].primitive, planned[i].variant, ranks);
      c.asynchronous = planned[i].asynchronous;
      if (c.primitive == Primitive::barrier) continue;
      c.dtype = DType::float32;
      c.count = 24;
    }
  }
}

}  // namespace col::colcheck
