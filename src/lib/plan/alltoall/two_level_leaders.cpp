// All-to-all over several nodes, short blocks: one message between two nodes, from leader to leader.
//
// The ranks of a node give their leader what they have for other nodes. It puts together what goes to one node, the
// leaders exchange, and each hands out what came. Blocks for ranks of the same node go straight. Serves alltoallv too:
// there leaders carry the short blocks alone, and the long ones go straight (two_level/carried.hpp). In place,
// everything is sent from a copy.
//
//   2 nodes of 2 ranks, "source>receiver" of the blocks that are sent:
//     round   rank 0                      rank 1          rank 2                      rank 3
//       0                                 1>2,1>3 -> 0                                3>0,3>1 -> 2
//       1     0>2,1>2,0>3,1>3 -> 2                        2>0,3>0,2>1,3>1 -> 0
//       2     2>1,3>1 -> 1; 0>1 -> 1      1>0 -> 0        0>3,1>3 -> 3; 2>3 -> 3      3>2 -> 2
//
// Steps: 3. Bytes on the wire: each block between nodes once, in N-1 messages of a node for N nodes; two_level has as
// many of each rank. Wins: short blocks, where messages between nodes cost most. Limits: several nodes; what a node
// says to others passes one rank. In alltoallv, the ranks of a node first tell their leader their counts
// (two_level/neighbours.cpp). Source: J. L. Träff, A. Rougier: MPI collectives and datatypes for hierarchical
// all-to-all communication, EuroMPI 2014. Tested by: tests/unit/plan/algorithms_test.cpp, with every other builder;
// tests/unit/plan/two_level_test.cpp.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "plan/two_level/carried.hpp"
#include "plan/two_level/leaders.hpp"

namespace col::plan::alltoall {
namespace {

// The part of any rank. Where a leader has what it carries: members' parcels as they come, one box for each other node
// as it goes, one as it comes, and members' parcels as they go.
class Exchange {
 public:
  explicit Exchange(const PlanRequest& request)
      : request_(request),
        leaders_(request),
        carried_(request),
        in_(Blocks::of_input(request)),
        out_(Blocks::of_output(request)) {
    if (request.in_place) saved_ = scratch_.take(Buffer::scratch, end_of(in_));
    each_far([&](int, int rank) {
      if (carried_.is(source(rank).count)) outgoing_.add(source(rank));
      if (carried_.is(output(rank).count)) incoming_.add(output(rank));
    });
    if (leaders_.leads()) {
      lay_out();
      return;
    }
    const auto region_for = [this](const Parcel& parcel) {
      const auto in_one = parcel.in_one();
      return in_one ? *in_one : scratch_.take(Buffer::scratch, parcel.total());
    };
    sent_ = region_for(outgoing_);
    received_ = region_for(incoming_);
  }

  const Scratch& scratch() const noexcept { return scratch_; }

  void operator()(std::size_t index, Round& round) const {
    switch (index) {
      case 0:
        return prepare(round);
      case 1:
        return collect(round);
      case 2:
        return exchange(round);
      default:
        return hand_out(round);
    }
  }

 private:
  int nodes() const noexcept { return leaders_.nodes().count(); }
  std::size_t locals() const noexcept { return static_cast<std::size_t>(leaders_.local_size()); }
  const std::vector<int>& neighbours() const noexcept { return leaders_.nodes().ranks(leaders_.node()); }
  static std::size_t end_of(const Blocks& blocks) noexcept {
    std::size_t end = 0;
    for (std::size_t i = 0; i < blocks.parts(); ++i) end = std::max(end, blocks.offset(i) + blocks.count(i));
    return end;
  }
  Slice source(int rank) const {
    const Slice block = in_.slice(Buffer::input, rank);
    return request_.in_place ? saved_.part(block.offset, block.count) : block;
  }
  Slice output(int rank) const { return out_.slice(Buffer::output, rank); }
  // visit(node, rank), for the ranks of other nodes.
  template <class Visit>
  void each_far(Visit visit) const {
    for (int node = 0; node < nodes(); ++node) {
      if (node == leaders_.node()) continue;
      for (const int rank : leaders_.nodes().ranks(node)) visit(node, rank);
    }
  }
  // So much do leaders carry from a neighbour, by its local number, to a rank, and from there to that neighbour.
  std::size_t sends(std::size_t local, int rank) const { return carried_.of(count_of(local, rank, 0)); }
  std::size_t gets(std::size_t local, int rank) const { return carried_.of(count_of(local, rank, 1)); }
  std::size_t count_of(std::size_t local, int rank, std::size_t side) const {
    if (request_.neighbour_counts.empty()) return request_.count;
    const auto size = static_cast<std::size_t>(request_.size);
    return request_.neighbour_counts[(2 * local + side) * size + static_cast<std::size_t>(rank)];
  }

  // A leader takes its memory. A parcel, of a neighbour, is in the order of the other nodes' ranks; a box, of a node,
  // in that of its receivers, and for each of these in that of its senders.
  void lay_out() {
    const auto all = static_cast<std::size_t>(nodes());
    std::vector<std::size_t> collected(locals(), 0), boxes(all, 0), arrived(all, 0), handed(locals(), 0);
    each_far([&](int node, int rank) {
      const auto n = static_cast<std::size_t>(node);
      for (std::size_t local = 0; local < locals(); ++local) {
        const std::size_t sent = sends(local, rank), got = gets(local, rank);
        if (neighbours()[local] != request_.rank) collected[local] += sent;
        boxes[n] += sent;
        arrived[n] += got;
        handed[local] += got;
      }
    });
    collected_ = take(collected);
    boxes_ = take(boxes);
    arrived_ = take(arrived);
    if (nodes() != 2) {
      handed_ = take(handed);
      return;
    }
    std::size_t position = 0;  // from one other node, parcels come as they go
    for (const std::size_t count : handed) {
      handed_.push_back(arrived_[static_cast<std::size_t>(1 - leaders_.node())].part(position, count));
      position += count;
    }
  }
  std::vector<Slice> take(const std::vector<std::size_t>& counts) {
    std::vector<Slice> regions;
    for (const std::size_t count : counts) regions.push_back(scratch_.take(Buffer::scratch, count));
    return regions;
  }

  void prepare(Round& round) const {
    if (request_.in_place) round.copy(saved_, {Buffer::input, 0, saved_.count});
    if (!leaders_.leads() && !outgoing_.in_one()) outgoing_.pack(sent_, round);
  }

  void collect(Round& round) const {
    if (!leaders_.leads()) return round.send(leaders_.leader(), sent_);
    for (std::size_t local = 0; local < locals(); ++local) {
      if (neighbours()[local] != request_.rank) round.recv(neighbours()[local], collected_[local]);
    }
    std::vector<std::size_t> taken(locals(), 0);  // of each parcel
    each_box([&](Slice box, int rank) {
      std::size_t position = 0;
      for (std::size_t local = 0; local < locals(); ++local) {
        const std::size_t count = sends(local, rank);
        const Slice block = neighbours()[local] == request_.rank ? source(rank).part(0, count)
                                                                 : collected_[local].part(taken[local], count);
        round.copy(box.part(position, count), block);
        position += count;
        taken[local] += count;
      }
    });
  }
  // visit(the part of its node's box that is for `rank`, rank)
  template <class Visit>
  void each_box(Visit visit) const {
    std::vector<std::size_t> filled(boxes_.size(), 0);
    each_far([&](int node, int rank) {
      std::size_t count = 0;
      for (std::size_t local = 0; local < locals(); ++local) count += sends(local, rank);
      std::size_t& begin = filled[static_cast<std::size_t>(node)];
      visit(boxes_[static_cast<std::size_t>(node)].part(begin, count), rank);
      begin += count;
    });
  }

  void exchange(Round& round) const {
    if (!leaders_.leads()) return;
    for (int by = 1; by < nodes(); ++by) {
      const int to = shifted(leaders_.node(), by, nodes()), from = shifted(leaders_.node(), -by, nodes());
      round.send(leaders_.of_node(to), boxes_[static_cast<std::size_t>(to)]);
      round.recv(leaders_.of_node(from), arrived_[static_cast<std::size_t>(from)]);
    }
    if (nodes() == 2) return;
    std::vector<std::size_t> taken(arrived_.size(), 0);  // of each box
    for (std::size_t local = 0; local < locals(); ++local) {
      std::size_t position = 0;
      for (int node = 0; node < nodes(); ++node) {
        if (node == leaders_.node()) continue;
        const auto n = static_cast<std::size_t>(node);
        std::size_t count = 0;
        for (const int rank : leaders_.nodes().ranks(node)) count += gets(local, rank);
        round.copy(handed_[local].part(position, count), arrived_[n].part(taken[n], count));
        position += count;
        taken[n] += count;
      }
    }
  }

  // And everything that goes straight.
  void hand_out(Round& round) const {
    if (leaders_.leads()) {
      for (std::size_t local = 0; local < locals(); ++local) {
        if (neighbours()[local] == request_.rank)
          incoming_.unpack(handed_[local], round);
        else
          round.send(neighbours()[local], handed_[local]);
      }
    } else {
      round.recv(leaders_.leader(), received_);
      if (!incoming_.in_one()) incoming_.unpack(received_, round);
    }
    for (int by = 1; by < request_.size; ++by) {
      const int to = shifted(request_.rank, by, request_.size), from = shifted(request_.rank, -by, request_.size);
      if (goes_straight(to, source(to).count)) round.send(to, source(to));
      if (goes_straight(from, output(from).count)) round.recv(from, output(from));
    }
    round.copy(output(request_.rank), source(request_.rank));
  }
  bool goes_straight(int rank, std::size_t count) const {
    return leaders_.nodes().node_of(rank) == leaders_.node() || !carried_.is(count);
  }

  PlanRequest request_;
  Leaders leaders_;
  Carried carried_;
  Blocks in_, out_;
  Scratch scratch_;
  Slice saved_;                                              // in place: the input
  Parcel outgoing_, incoming_;                               // of this rank: what leaders carry of its blocks
  Slice sent_, received_;                                    // where they are, on a rank that does not lead
  std::vector<Slice> collected_, boxes_, arrived_, handed_;  // on a leader: by local rank, node, node, local rank
};

Plan build_exchange(const PlanRequest& request) {
  const auto exchange = std::make_shared<const Exchange>(request);
  return make_plan(4, exchange->scratch(), [exchange](std::size_t index, Round& round) { (*exchange)(index, round); });
}

}  // namespace

extern constinit const Algorithm two_level_leaders = {
    .collective = Collective::alltoall,
    .name = "two_level_leaders",
    .summary = "one rank of each node exchanges for all of them; short blocks, several nodes",
    .refuse = [](const PlanRequest& request) { return refuse_one_node(request, "pairwise"); },
    .build = build_exchange,
};

}  // namespace col::plan::alltoall
