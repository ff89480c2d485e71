// Plans: collective algorithms as data.
//
// A plan says what one rank does in one collective: rounds of send, receive, reduce, copy and convert steps over slices
// of typed buffers. It knows nothing of transports or memory. The same plan is executed over any backend, verified,
// simulated under a cost model, drawn, and written as JSON; a user's own plan goes through the same five.
//
// Everything here is pure: no I/O, no waiting, no shared state; any thread may call any of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// ---- What a plan is asked for ---------------------------------------------------------------------------------------

// What an algorithm can be told. Zero means its default.
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
// "blocks" are `size` blocks of `count` elements one after the other, or, in the v-forms, block r of counts[r] elements
// at displacements[r]. A rank knows of a v-form what MPI tells it: allgatherv and reduce_scatterv, every count; gatherv
// and scatterv, its own `count`, and all of them on the root; alltoallv, what it sends and what it receives.
struct PlanRequest {
  Collective collective = Collective::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::size_t count = 0;
  // v-forms only, `size` entries each; whoever makes the request keeps the arrays for as long as its plan is used.
  std::span<const std::size_t> in_counts = {}, in_displacements = {};
  std::span<const std::size_t> out_counts = {}, out_displacements = {};
  // Partial results have a type of their own, wider than the user's (16-bit floats summed in float32): they may only be
  // kept in, and sent from, Buffer::wide.
  bool widens = false;
  // The input is of that wider type already (16-bit floats that were multiplied before a premul_sum).
  bool wide_input = false;
  // Input and output share memory: all of it (allreduce, reduce on the root, scan, exscan, alltoall(v)), or the shorter
  // one is this rank's block of the longer one (allgather(v), gather(v), reduce_scatter(v), scatter(v)).
  bool in_place = false;
  PlanParameters parameters = {};
  std::span<const int> node_of_rank = {};  // empty: all on one node
};

// ---- What a plan is -------------------------------------------------------------------------------------------------

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
    send,     // left goes to `peer`
    recv,     // to is filled by `peer`
    reduce,   // to = left op right, element by element; `to` may be exactly `left` or `right`
    copy,     // to = left; from the user's type to the wide one it widens, never the other way
    convert,  // to = the finished value of the partial result in left: divided by the group's size for avg, rounded to
              // the user's type. Every reduced element passes it exactly once. `to` may be exactly `left`.
  };
  Kind kind = Kind::copy;
  int peer = -1;
  Slice to = {}, left = {}, right = {};
  bool operator==(const Step&) const = default;
};
COL_EXPORT std::string_view to_string(Step::Kind kind) noexcept;
COL_EXPORT std::string_view to_string(Buffer buffer) noexcept;

// What one rank does between two points of its plan.
//
// Its sends and receives start together. Then its local steps run in the order listed, each one on what the messages of
// this round have brought: a step that reads or writes a slice still being received, or writes one still being sent,
// waits for that message, and any other runs meanwhile (so a round can reduce one segment while the next one travels).
// The round ends when all of it is done.
// Messages from one rank to another pair in the order in which the two list them.
class COL_EXPORT Round {
 public:
  // All but signal() and await() drop what would move no element; copy() also a copy onto itself.
  void send(int peer, Slice from) {
    if (!from.empty()) steps_.push_back({.kind = Step::Kind::send, .peer = peer, .left = from});
  }
  void recv(int peer, Slice to) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::recv, .peer = peer, .to = to});
  }
  // A message without elements: tells `peer` that this rank has come here.
  void signal(int peer) { steps_.push_back({.kind = Step::Kind::send, .peer = peer}); }
  void await(int peer) { steps_.push_back({.kind = Step::Kind::recv, .peer = peer}); }
  // Requires, for the next three: slices of equal count.
  void reduce(Slice to, Slice left, Slice right) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::reduce, .to = to, .left = left, .right = right});
  }
  void copy(Slice to, Slice from) {
    if (!to.empty() && to != from) steps_.push_back({.kind = Step::Kind::copy, .to = to, .left = from});
  }
  void convert(Slice to, Slice from) {
    if (!to.empty()) steps_.push_back({.kind = Step::Kind::convert, .to = to, .left = from});
  }
  void add(const Step& step) { steps_.push_back(step); }  // as it is, for readers of files and for tests

  void clear() noexcept { steps_.clear(); }
  std::span<const Step> steps() const noexcept { return steps_; }

 private:
  std::vector<Step> steps_;
};

// One rank's part. Cheap to copy. Rounds are made when they are asked for, in any order, any number of times.
struct Plan {
  std::size_t rounds = 0;
  std::size_t scratch = 0;                                             // elements of Buffer::scratch that it uses
  std::size_t wide = 0;                                                // elements of Buffer::wide
  std::function<void(std::size_t index, Round& round)> generate = {};  // adds to an empty round

  // Requires: index < rounds.
  void round(std::size_t index, Round& out) const {
    out.clear();
    generate(index, out);
  }
};

// ---- The algorithms -------------------------------------------------------------------------------------------------

// In which order an algorithm combines the ranks' contributions to one element.
enum class FoldOrder : std::uint8_t {
  any,         // some order, always the same one: needs a commutative operator
  contiguous,  // neighbours only, left before right: any associative operator
  rank_order,  // ((x0 op x1) op x2) op …: what `deterministic` asks for
};
COL_EXPORT std::string_view to_string(FoldOrder order) noexcept;

struct Algorithm {
  Collective collective;
  std::string_view name;        // "ring"
  std::string_view summary;     // one line: the idea, and when it wins
  FoldOrder order;              // rank_order for what does not reduce
  std::string_view parameters;  // those it takes, comma-separated: "radix", "segment"; empty: none
  // Why it cannot serve `request`, by name, and what to use instead; nothing when it can. The answer is the same on all
  // ranks of a collective: it depends on no member that differs between them.
  std::optional<std::string> (*refuse)(const PlanRequest& request);
  // Requires: !refuse(request). A pure function.
  Plan (*build)(const PlanRequest& request);
};

// All that are built in, by collective.
COL_EXPORT std::span<const Algorithm> algorithms() noexcept;
// Null when there is none of that name.
COL_EXPORT const Algorithm* find_algorithm(Collective collective, std::string_view name) noexcept;

// ---- All ranks together ---------------------------------------------------------------------------------------------

// One collective as all ranks see it: what verify(), simulate() and the drawings look at. Immutable once made; requests
// point into it.
class COL_EXPORT PlanProblem {
 public:
  struct Spec {
    Collective collective = Collective::barrier;
    int size = 1;
    int root = 0;
    std::size_t count = 0;  // not in the v-forms
    // v-forms: one per rank; alltoallv: size x size, row r is what rank r sends to each.
    std::vector<std::size_t> counts = {};
    bool widens = false, wide_input = false, in_place = false;
    PlanParameters parameters = {};
    std::vector<int> node_of_rank = {};
  };
  // Throws invalid_argument for a size below one, a root outside, arrays of the wrong length.
  explicit PlanProblem(Spec spec);
  const Spec& spec() const noexcept { return spec_; }
  int size() const noexcept { return spec_.size; }
  // Requires: 0 <= rank < size().
  PlanRequest request(int rank) const;
  // Elements of a rank's input and output buffers, as the table above says.
  std::size_t input_count(int rank) const;
  std::size_t output_count(int rank) const;

 private:
  Spec spec_;
  std::vector<std::size_t> displacements_;                         // of spec_.counts, per row
  std::vector<std::size_t> column_counts_, column_displacements_;  // alltoallv: what each rank receives
};

using PlanOfRank = std::function<Plan(int rank)>;
// The plans of a built-in algorithm for every rank of `problem`, which must outlive the result.
COL_EXPORT PlanOfRank plans_of(const Algorithm& algorithm, const PlanProblem& problem);

// ---- Verifier -------------------------------------------------------------------------------------------------------

struct Verdict {
  bool good = true;
  // When it is not: one sentence that names round, rank, slice, and what was expected.
  std::string problem = {};
  int rank = -1;
  std::size_t round = 0;
  FoldOrder order = FoldOrder::rank_order;  // the strongest that holds for every reduced element
  std::size_t rounds = 0;                   // of the longest rank
  std::size_t messages = 0;                 // of all ranks
  std::size_t elements_sent = 0;            // of all ranks
  std::size_t most_elements_sent = 0;       // of the busiest rank
};

// Executes the plans of all ranks together, symbolically. Good when: every output element holds what the collective
// promises (each contribution exactly once, converted once; equal expressions on all ranks that share a result); sends
// and receives pair in order and length; nothing blocks even when every send waits for its receive; no message or local
// step touches a slice in flight against the rules of Round; no unset element is read; nothing outside a buffer, no
// input and no output that is not this rank's to write is written; partial results are kept wide where the problem says
// so. Takes O(steps) time and O(elements) memory; no more than one round per rank exists at a time.
COL_EXPORT Verdict verify(const PlanProblem& problem, const PlanOfRank& plans);

// ---- Cost model and simulator ---------------------------------------------------------------------------------------

// Where the ranks of a job are, and what moving and reducing a byte costs. Seconds and bytes.
struct CostModel {
  struct Link {
    double alpha = 0;  // seconds per message
    double beta = 0;   // seconds per byte
  };
  Link intra = {1e-6, 1e-10};  // between ranks of one node
  Link inter = {2e-5, 1e-9};   // between nodes
  double gamma = 2e-10;        // seconds to reduce one byte (of the result, in the user's type)
  double copy = 0;             // seconds to copy or convert one byte
  // Shared by the ranks of a node; zero: not a limit.
  int cores = 0;                // local steps, and the CPU share of messages, wait for a core
  double cpu_per_message = 0;   // core seconds a message takes at each end, within alpha
  double memory_bandwidth = 0;  // bytes per second for all copies, reductions and intra-node messages of a node
  bool nic_shared = false;      // one port to the network per node, rather than per rank
};

struct Simulation {
  double seconds = 0;                     // when the last rank ends
  std::vector<double> rank_seconds = {};  // when each rank ends
  std::size_t messages = 0;
  std::size_t bytes_inter = 0, bytes_intra = 0;
};

// Discrete-event: every rank has one port out and one port in, each busy for alpha + bytes * beta per message, both at
// once; a message starts when both ends have posted it and both ports are free. `element_size` is the user's; the wide
// buffer's elements take `wide_size`. Throws invalid_argument when the plans do not pair (verify() says why).
COL_EXPORT Simulation simulate(const PlanProblem& problem, const PlanOfRank& plans, const CostModel& model,
                               std::size_t element_size = 4, std::size_t wide_size = 4);

// The closed formula for an algorithm, where there is one: `bytes` is the whole vector (allreduce, reduce, broadcast,
// scan) or all blocks together (the others), all ranks on one node; a segment counts
// elements of four bytes. Nothing where there is none.
COL_EXPORT std::optional<double> closed_form_seconds(const Algorithm& algorithm, int size, std::size_t bytes,
                                                     const CostModel& model, const PlanParameters& parameters = {});
// No algorithm with one port per rank and full duplex can be faster than this.
COL_EXPORT double lower_bound_seconds(Collective collective, int size, std::size_t bytes, const CostModel& model);

// ---- Drawing --------------------------------------------------------------------------------------------------------

// For a terminal: a table with a column per rank where 100 columns suffice, otherwise a list of the messages. For small
// plans: throws invalid_argument above 64 ranks or 256 rounds.
COL_EXPORT std::string draw_text(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title);
// Rounds from left to right, ranks as lanes, arrows coloured by what they carry. The same limits.
COL_EXPORT std::string draw_svg(const PlanProblem& problem, const PlanOfRank& plans, std::string_view title);

// ---- JSON -----------------------------------------------------------------------------------------------------------

// The plans of all ranks as a JSON document (docs/plans.md has the schema), in elements of this very problem.
COL_EXPORT std::string plan_to_json(const PlanProblem& problem, const PlanOfRank& plans, std::string_view name);

// A plan from a file: written by a user, or by plan_to_json(). Immutable; cheap to copy.
class COL_EXPORT PlanFile {
 public:
  // Throws invalid_argument naming line or member and what should be there: malformed JSON, unknown version or member,
  // numbers out of range. Memory and time are bounded by the text's length.
  static PlanFile parse(std::string_view text);
  // Reads a file; throws io when it cannot be read.
  static PlanFile load(const std::string& path);

  const std::string& name() const noexcept;
  Collective collective() const noexcept;
  int ranks() const noexcept;
  // Into how many chunks it cuts `count`; 0 for a plan in elements. A plan in chunks that verify() finds good at a
  // count equal to this number is good at every count.
  std::size_t chunks() const noexcept;
  // Hash of the content: equal on ranks that read equal files.
  std::uint64_t hash() const noexcept;
  // Why it cannot serve `request` (another collective, another number of ranks or root, …); nothing when it can.
  std::optional<std::string> refuse(const PlanRequest& request) const;
  // Requires: !refuse(request). The plan keeps what it needs of this file.
  Plan build(const PlanRequest& request) const;

 private:
  struct Content;
  explicit PlanFile(std::shared_ptr<const Content> content);
  std::shared_ptr<const Content> content_;  // shared with the plans that were built from it
};

}  // namespace col
