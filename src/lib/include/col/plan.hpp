// Plans: collective algorithms as data.
//
// A plan says what one rank does in one collective: rounds of send, receive, reduce, copy and convert steps over slices
// of typed buffers. It knows nothing about transports or memory. Every plan can be executed over any backend, verified,
// simulated under a cost model, drawn, and written as JSON. This holds for a user's own plans too.
//
// Everything here is pure (no I/O, no waiting, no shared state), except PlanFile::load(), which reads a file. Any
// thread may call any of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <col/error.hpp>
#include <col/export.hpp>
#include <col/types.hpp>

namespace col {

// ---- The request for a plan -----------------------------------------------------------------------------------------

// The parameters of an algorithm. Zero means the algorithm's default.
struct PlanParameters {
  int radix = 0;            // k of a k-nomial tree
  std::size_t segment = 0;  // elements per segment of a pipelined algorithm
  bool operator==(const PlanParameters&) const = default;
};

// One rank's view of one collective. Counts and displacements are in elements.
//
//                      input                         output
//   allreduce          count                         count
//   reduce             count                         count on the root, nothing elsewhere
//   scan, exscan       count                         count (exscan: rank 0 leaves it as it is)
//   broadcast          nothing                       count, holding the root's data on the root
//   allgather(v)       count                         blocks: block r is rank r's input
//   gather(v)          count                         blocks on the root, nothing elsewhere
//   reduce_scatter(v)  blocks                        count: the reduced block of this rank
//   scatter(v)         blocks on the root            count
//   alltoall(v)        blocks: block r to rank r     blocks: block r from rank r
//   barrier            nothing                       nothing
//
// "blocks" means `size` blocks of `count` elements, one after the other. In the v-forms, block r has counts[r] elements
// at displacements[r]. As in MPI, the v-form says which counts a rank knows: for allgatherv and reduce_scatterv, every
// count; for gatherv and scatterv, its own `count`, and on the root all of them; for alltoallv, what it sends and what
// it receives.
struct PlanRequest {
  Collective collective = Collective::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::size_t count = 0;
  // Only for v-forms; `size` entries each. The maker of the request keeps the arrays as long as its plan is used.
  std::span<const std::size_t> in_counts = {}, in_displacements = {};
  std::span<const std::size_t> out_counts = {}, out_displacements = {};
  // Partial results have a wider type than the user's: narrow floats are summed in float32. Only Buffer::wide may hold
  // them, and they are sent from there.
  bool widens = false;
  // The input already has that wider type: narrow floats that premul_sum has multiplied before.
  bool wide_input = false;
  // Input and output share memory. Either all of it (allreduce, reduce on the root, scan, exscan, alltoall(v)), or the
  // shorter one is this rank's block of the longer one (allgather(v), gather(v), reduce_scatter(v), scatter(v)).
  bool in_place = false;
  PlanParameters parameters = {};
  std::span<const int> node_of_rank = {};  // empty: all on one node
  // Only for an algorithm that has Algorithm::neighbour_counts, in a v-form whose counts not every rank knows: the
  // counts that each rank of this rank's node knows, in rank order. For gatherv and scatterv, its `count`; for
  // alltoallv, its in_counts and then its out_counts. The maker of the request keeps this array, too.
  std::span<const std::size_t> neighbour_counts = {};
  // Order::tree: how many contributions each rank gives, in rank order. The input then has contributions[rank] times
  // what the table says, one after the other, and all of them are combined in the tree's order. The maker of the
  // request keeps the array, too. Empty: each rank gives one, and the order is the algorithm's. Requires: allreduce,
  // reduce or reduce_scatter(v); at least one contribution; in_place only where this rank gives one.
  std::span<const std::size_t> contributions = {};
};

// ---- The parts of a plan --------------------------------------------------------------------------------------------

enum class Buffer : std::uint8_t {
  input,    // the caller's; never written
  output,   // the caller's
  scratch,  // temporary, of the user's element type
  wide,     // temporary, of the type of partial results (the user's, unless the request widens)
};

struct Slice {
  Buffer buffer = Buffer::scratch;
  std::size_t offset = 0;  // elements
  std::size_t count = 0;
  bool operator==(const Slice&) const = default;
  bool empty() const noexcept { return count == 0; }
  // `n` elements from element `first` of this slice. Requires: first + n <= count.
  Slice part(std::size_t first, std::size_t n) const noexcept { return {buffer, offset + first, n}; }
};

struct Step {
  enum class Kind : std::uint8_t {
    send,    // sends left to `peer`
    recv,    // fills `to` with a message from `peer`
    reduce,  // to = left op right, element by element; `to` may be exactly `left` or `right`
    copy,    // to = left; may widen from the user's type to the wide type, never the other way
    // to = the final value of the partial result in left: divided by the group's size for avg, and rounded to the
    // user's type. Every reduced element passes exactly one convert. `to` may be exactly `left`.
    convert,
  };
  Kind kind = Kind::copy;
  int peer = -1;
  Slice to = {}, left = {}, right = {};
  bool operator==(const Step&) const = default;
  bool is_message() const noexcept { return kind == Kind::send || kind == Kind::recv; }
};
COL_EXPORT std::string_view to_string(Step::Kind kind) noexcept;
COL_EXPORT std::string_view to_string(Buffer buffer) noexcept;

// A round: one part of a rank's plan, whose messages start together.
//
// First, all its sends and receives start. Then the local steps run in their order. A step waits for a message of this
// round if it reads or writes a slice that is still being received, or writes a slice that is still being sent. All
// other steps run meanwhile: a round can reduce one segment while the next one travels. The round ends when all of its
// steps have ended.
//
// Messages from one rank to another pair in the order in which the two ranks list them.
class COL_EXPORT Round {
 public:
  // All of these except signal() and await() ignore steps that would move no element. copy() also ignores a copy onto
  // itself.
  void send(int peer, Slice from) {
    if (!from.empty()) steps_.push_back({.kind = Step::Kind::send, .peer = peer, .left = from});
  }
  void recv(int peer, Slice to) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::recv, .peer = peer, .to = to});
  }
  // A message without elements: it tells `peer` that this rank has come to this point.
  void signal(int peer) { steps_.push_back({.kind = Step::Kind::send, .peer = peer}); }
  void await(int peer) { steps_.push_back({.kind = Step::Kind::recv, .peer = peer}); }
  // Requires for the next three: slices of equal count.
  void reduce(Slice to, Slice left, Slice right) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::reduce, .to = to, .left = left, .right = right});
  }
  void copy(Slice to, Slice from) {
    if (!to.empty() && to != from) steps_.push_back({.kind = Step::Kind::copy, .to = to, .left = from});
  }
  void convert(Slice to, Slice from) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::convert, .to = to, .left = from});
  }
  void add(const Step& step) { steps_.push_back(step); }  // adds it unchanged; for readers of files and for tests

  void clear() noexcept { steps_.clear(); }
  std::span<const Step> steps() const noexcept { return steps_; }
  std::span<Step> steps() noexcept { return steps_; }  // for plans that change the rounds of other plans

 private:
  std::vector<Step> steps_;
};

// One rank's part of a collective. Cheap to copy. generate() makes any round on demand, in any order, any number of
// times.
struct Plan {
  std::size_t rounds = 0;
  std::size_t scratch = 0;  // the plan uses this many elements of Buffer::scratch
  std::size_t wide = 0;     // the plan uses this many elements of Buffer::wide
  std::function<void(std::size_t index, Round& round)> generate = {};  // adds the steps of one round to an empty Round
  std::size_t contributions = 0;  // avg divides by this number; 0: by the number of ranks

  // Requires: index < rounds.
  void round(std::size_t index, Round& out) const {
    out.clear();
    generate(index, out);
  }
};

// ---- The algorithms -------------------------------------------------------------------------------------------------

// The order in which an algorithm combines the ranks' contributions to one element.
enum class FoldOrder : std::uint8_t {
  any,         // some fixed order: needs a commutative operator
  contiguous,  // combines neighbours only, left before right: serves any associative operator
  rank_order,  // ((x0 op x1) op x2) op …: the order that `deterministic` asks for
};
COL_EXPORT std::string_view to_string(FoldOrder order) noexcept;

namespace plan {
struct CostTerms;
}  // namespace plan

// Closed formulas for the time of an algorithm: see closed_form_seconds().
struct CostFormula {
  std::string_view text = {};                                 // with the letters that docs/algorithms.md explains
  double (*seconds)(const plan::CostTerms& terms) = nullptr;  // null: there is no formula
  double least = 0.99, most = 1.01;                           // its result, as a share of what simulate() says
};

// At the start of a call, the ranks of a node send their counts to the rank that leads the node, by these functions.
struct NeighbourCounts {
  std::vector<std::size_t> (*sent)(const PlanRequest& request);  // the numbers that this rank sends
  std::size_t (*received)(const PlanRequest& request);           // how many numbers this rank gets
  Plan (*build)(const PlanRequest& request);  // its input is what is sent, its output what is received
  // The algorithm's PlanParameters::segment if the caller names none.
  std::size_t (*segment)(const PlanRequest& request, std::size_t element_size);
};

struct Algorithm {
  Collective collective;
  std::string_view name;                    // "ring"
  std::string_view summary;                 // one line: the idea, and when it wins
  FoldOrder order = FoldOrder::rank_order;  // rank_order if the collective does not reduce
  std::string_view parameters = {};         // the parameters it takes, comma-separated: "radix", "segment"; empty: none
  // Returns why it cannot serve `request`, and what to use instead; nothing if it can. By default it serves every
  // request of its collective. All ranks of a call get the same answer: it depends only on members that are equal on
  // all of them.
  std::optional<std::string> (*refuse)(const PlanRequest& request) = [](const PlanRequest&) {
    return std::optional<std::string>();
  };
  // Requires: !refuse(request). A pure function.
  Plan (*build)(const PlanRequest& request);
  CostFormula cost = {};
  const NeighbourCounts* neighbour_counts = nullptr;  // set: it builds from PlanRequest::neighbour_counts
  bool keeps_tree = false;                            // it builds from PlanRequest::contributions
};

// All built-in algorithms, ordered by collective.
COL_EXPORT std::span<const Algorithm> algorithms() noexcept;
// The built-in algorithm of that name; null if there is none.
COL_EXPORT const Algorithm* find_algorithm(Collective collective, std::string_view name) noexcept;

// ---- All ranks together ---------------------------------------------------------------------------------------------

// One collective as all ranks see it, for verify(), simulate() and the drawings. It never changes. Requests point into
// it, so it must outlive them.
class COL_EXPORT PlanProblem {
 public:
  struct Spec {
    Collective collective = Collective::barrier;
    int size = 1;
    int root = 0;
    std::size_t count = 0;  // unused in the v-forms
    // For v-forms: one count for each rank. For alltoallv: size x size counts, where row r is what rank r sends to each
    // rank.
    std::vector<std::size_t> counts = {};
    bool widens = false, wide_input = false, in_place = false;
    PlanParameters parameters = {};
    std::vector<int> node_of_rank = {};
    std::vector<std::size_t> contributions = {};  // as in PlanRequest; only ranks that give one are then in_place
  };
  // Throws invalid_argument for a size below one, a root outside of the group, an array of the wrong length, or
  // contributions of which there are none, or that are not for a reduction over all ranks.
  explicit PlanProblem(Spec spec);
  const Spec& spec() const noexcept { return spec_; }
  int size() const noexcept { return spec_.size; }
  // Requires: 0 <= rank < size().
  PlanRequest request(int rank) const;
  // Elements of a rank's input and output buffers, by the table at PlanRequest.
  std::size_t input_count(int rank) const;
  std::size_t output_count(int rank) const;

 private:
  void find_columns();
  void find_neighbour_counts();

  Spec spec_;
  std::vector<std::size_t> displacements_;                         // of spec_.counts, per row
  std::vector<std::size_t> column_counts_, column_displacements_;  // alltoallv: what each rank receives
  // PlanRequest::neighbour_counts: of each node, by its lowest rank.
  std::map<int, std::vector<std::size_t>> neighbour_counts_;
  std::vector<int> lowest_;  // of each rank's node
};

using PlanOfRank = std::function<Plan(int rank)>;
// The plans of a built-in algorithm for every rank of `problem`. `problem` must outlive the result.
COL_EXPORT PlanOfRank plans_of(const Algorithm& algorithm, const PlanProblem& problem);

// ---- Verifier -------------------------------------------------------------------------------------------------------

struct Verdict {
  bool good = true;
  // If not good: one sentence that names the round, the rank, the slice, and what was expected.
  std::string problem = {};
  int rank = -1;
  std::size_t round = 0;
  FoldOrder order = FoldOrder::rank_order;  // the strongest order that holds for every reduced element
  std::size_t rounds = 0;                   // the most rounds that a rank has
  std::size_t messages = 0;                 // by all ranks together
  std::size_t elements_sent = 0;            // by all ranks together
  std::size_t most_elements_sent = 0;       // by the busiest rank
};

// Executes the plans of all ranks together, symbolically. The plans are good if all of this holds:
// - Every output element holds what the collective promises: each contribution exactly once, converted once. Ranks that
//   share a result have equal expressions. If the problem lists contributions, they are combined in the tree's order.
// - Sends and receives pair in order and length.
// - Nothing deadlocks, even if every send waits for its receive.
// - No message or local step touches a slice in flight against the rules of Round.
// - No step reads an element that is not set.
// - No step writes outside of a buffer, into an input, or into an output that is not this rank's to write.
// - Partial results stay wide if the problem says so.
//
// Takes O(steps) time and O(elements) memory. At most one round of each rank exists at a time.
COL_EXPORT Verdict verify(const PlanProblem& problem, const PlanOfRank& plans);

// ---- Cost model and simulator ---------------------------------------------------------------------------------------

// The cost of moving and reducing bytes, within a node and between nodes. In seconds and bytes.
struct CostModel {
  struct Link {
    double alpha = 0;  // seconds per message
    double beta = 0;   // seconds per byte
  };
  Link intra = {1e-6, 1e-10};  // between ranks of one node
  Link inter = {2e-5, 1e-9};   // between nodes
  double gamma = 2e-10;        // seconds to reduce one byte (of the result, in the user's type)
  double copy = 0;             // seconds to copy or convert one byte
  // Resources that the ranks of a node share. Zero: no limit.
  int cores = 0;                // local steps, and the CPU part of messages, wait for a free core
  double cpu_per_message = 0;   // core seconds that a message takes at each end, as part of alpha
  double memory_bandwidth = 0;  // bytes per second for all copies, reductions and intra-node messages of a node
  bool nic_shared = false;      // one network port for each node, not for each rank
};

struct Simulation {
  double seconds = 0;                     // when the last rank ends
  std::vector<double> rank_seconds = {};  // when each rank ends
  std::size_t messages = 0;
  std::size_t bytes_inter = 0, bytes_intra = 0;
  // Bytes that each node sends to others and receives from them. Nodes are in the order of their lowest ranks.
  std::vector<std::size_t> node_bytes_out = {}, node_bytes_in = {};
};

// A discrete-event simulation. Every rank has one port out and one port in, which work at the same time. A message
// makes its ports busy for alpha + bytes * beta. It starts when both ends have posted it and both ports are free.
// `element_size` is the size of the user's type, `wide_size` that of the elements of the wide buffer. Throws
// invalid_argument if the plans do not pair (verify() says why). With 1,024 ranks or more, if the ranks of all nodes do
// the same at the same times, only one node is simulated.
COL_EXPORT Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                               std::size_t element_size = 4, std::size_t wide_size = 4);

// The closed formula for the time of an algorithm; nothing if there is none. `bytes` is the whole vector (allreduce,
// reduce, broadcast, scan) or all blocks together (other collectives). All ranks are on one node. A segment counts
// elements of four bytes.
COL_EXPORT std::optional<double> closed_form_seconds(const Algorithm& algorithm, int size, std::size_t bytes,
                                                     const CostModel& model, const PlanParameters& parameters = {});
// The same for a problem. There is no formula for ranks on several nodes: use simulate().
COL_EXPORT std::optional<double> closed_form_seconds(const Algorithm& algorithm, const PlanProblem& problem,
                                                     const CostModel& model, std::size_t element_size = 4);
// A lower bound: no algorithm with one full-duplex port for each rank can be faster.
COL_EXPORT double lower_bound_seconds(Collective collective, int size, std::size_t bytes, const CostModel& model);

// ---- Drawing --------------------------------------------------------------------------------------------------------

// A drawing for a terminal. It is a table with one column for each rank if 100 columns are enough, otherwise a list of
// the messages. For small plans: throws invalid_argument above 64 ranks or 256 rounds.
COL_EXPORT std::string draw_text(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title);
// A drawing with rounds from left to right, ranks as lanes, and arrows coloured by what they carry. It has the same
// limits.
COL_EXPORT std::string draw_svg(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title);

// ---- JSON -----------------------------------------------------------------------------------------------------------

// The plans of all ranks as a JSON document (docs/plans.md has the schema). Offsets and counts are in elements of
// exactly this problem.
COL_EXPORT std::string plan_to_json(const PlanProblem& problem, const PlanOfRank& plans, std::string_view name);

// A plan from a file that a user or plan_to_json() has written. Never changes. Cheap to copy.
class COL_EXPORT PlanFile {
 public:
  // Throws invalid_argument that names the line or member and says what is expected: for malformed JSON, an unknown
  // version or member, or a number out of range. The length of the text bounds memory and time.
  static PlanFile parse(std::string_view text);
  // Reads a file. Throws io if it cannot be read.
  static PlanFile load(const std::string& path);

  const std::string& name() const noexcept;
  Collective collective() const noexcept;
  int ranks() const noexcept;
  // The number of chunks into which it cuts `count`; 0 for a plan in elements. If verify() finds a plan in chunks good
  // for a count equal to this number, the plan is good for every count.
  std::size_t chunks() const noexcept;
  // Hash of the content: equal on ranks that read equal files.
  std::uint64_t hash() const noexcept;
  // Returns why it cannot serve `request` (another collective, number of ranks or root, …); nothing if it can.
  std::optional<std::string> refuse(const PlanRequest& request) const;
  // Requires: !refuse(request). The plan stays valid after this object is destroyed.
  Plan build(const PlanRequest& request) const;

 private:
  struct Content;
  explicit PlanFile(std::shared_ptr<const Content> content);
  std::shared_ptr<const Content> content_;  // shared with the plans that were built from it
};

}  // namespace col
