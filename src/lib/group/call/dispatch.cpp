#include "group/call/dispatch.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/joined.hpp"
#include "core/kernels/reduce.hpp"
#include "group/call/order.hpp"

namespace col::group {
namespace {

// How many decisions are remembered: a training step makes a few dozen different calls at most.
constexpr std::size_t kKept = 64;

bool is_arithmetic(const Op& op) {
  if (op.kind() != Op::Kind::builtin) return op.kind() == Op::Kind::premul_sum;
  return op.reduce_op() != ReduceOp::band && op.reduce_op() != ReduceOp::bor && op.reduce_op() != ReduceOp::bxor;
}

bool is_minmax(const Op& op) {
  return op.kind() == Op::Kind::builtin && (op.reduce_op() == ReduceOp::min || op.reduce_op() == ReduceOp::max);
}

// Up to so many ranks tell one another their shares at once; more do it in steps.
constexpr int kAtOnce = 16;

// A plan that follows an exchange, with the arrays that its request points to.
struct PlanOfCounts {
  std::shared_ptr<const void> owned;  // shared with the exchange
  std::vector<std::size_t> counts;    // by the exchange
  Plan plan;
};

std::shared_ptr<const CountsExchange> exchange_of(const Algorithm& algorithm, const PlanRequest& request,
                                                  std::shared_ptr<const void> owned) {
  auto exchange = std::make_shared<CountsExchange>();
  exchange->sent = algorithm.neighbour_counts->sent(request);
  exchange->received = algorithm.neighbour_counts->received(request);
  exchange->plan_of = [&algorithm, request, owned = std::move(owned)](std::vector<std::size_t> received) {
    auto plan = std::make_shared<PlanOfCounts>();
    plan->owned = owned;
    plan->counts = std::move(received);
    PlanRequest knowing = request;
    knowing.neighbour_counts = plan->counts;
    plan->plan = algorithm.build(knowing);
    return std::shared_ptr<const Plan>(plan, &plan->plan);
  };
  return exchange;
}

// By which the ranks tell one another how many contributions they give, in so many numbers each.
Plan plan_of_shares(const PlanRequest& of_call, std::size_t numbers) {
  const std::string_view algorithm = of_call.size <= kAtOnce ? "direct" : "bruck";
  return find_algorithm(Collective::allgather, algorithm)
      ->build({.collective = Collective::allgather, .rank = of_call.rank, .size = of_call.size, .count = numbers});
}

void copy_counts(std::span<const std::size_t> counts, std::vector<std::size_t>& to,
                 std::vector<std::size_t>& displacements) {
  to.assign(counts.begin(), counts.end());
  displacements.resize(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), displacements.begin(), std::size_t{0});
}

// The count of a PlanRequest: the vector, or one block.
std::size_t plan_count(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  if (row.counts == BlockCounts::pairs) return 0;
  if (row.in == Extent::nothing || row.out == Extent::block) return request.out.count;
  return row.in == Extent::blocks ? request.in.count / static_cast<std::size_t>(shape.size) : request.in.count;
}

// The size for the selection: 0 if not all ranks know it.
std::size_t selection_bytes(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  const auto size = static_cast<std::size_t>(shape.size);
  if (row.has_private_counts()) return 0;
  if (row.counts == BlockCounts::everyone && row.out == Extent::blocks) return request.out.bytes();
  if (row.in == Extent::block) return request.in.bytes() * size;
  if (row.out == Extent::block && !row.has_counts()) return request.out.bytes() * size;
  return row.in == Extent::nothing ? request.out.bytes() : request.in.bytes();
}

DType dtype_of(const Request& request, const Shape& shape) {
  return row_of(request.collective).has_input(request.root == shape.rank) ? request.in.dtype : request.out.dtype;
}

bool both_sides(const Request& request, const Shape& shape) {
  const CollectiveRow& row = row_of(request.collective);
  const bool is_root = request.root == shape.rank;
  return row.has_input(is_root) && row.has_output(is_root);
}

struct NodeSizes {
  int count = 0, least_ranks = 0, most_ranks = 0;
  // "2 nodes, 4 ranks each"
  std::string text() const {
    if (least_ranks == most_ranks) return fmt::format("{} nodes, {} ranks each", count, most_ranks);
    return fmt::format("{} nodes, {} to {} ranks each", count, least_ranks, most_ranks);
  }
};

NodeSizes sizes_of(const std::vector<int>& node_of_rank) {
  std::map<int, int> ranks;
  for (const int node : node_of_rank) ++ranks[node];
  NodeSizes sizes{.count = static_cast<int>(ranks.size())};
  for (const auto& [node, size] : ranks) {
    sizes.most_ranks = std::max(sizes.most_ranks, size);
    sizes.least_ranks = sizes.least_ranks == 0 ? size : std::min(sizes.least_ranks, size);
  }
  return sizes;
}

}  // namespace

struct Dispatcher::OwnedPlan {
  std::vector<std::size_t> contributions, in_counts, in_displacements, out_counts, out_displacements;
  Plan plan;
};

struct Dispatcher::Case {
  const Request& request;
  const Key& key;
  PlanRequest plan;
  std::size_t bytes;
  std::vector<std::size_t> shares = {};  // in the tree's order, if all ranks know them
};

Dispatcher::Dispatcher(Shape shape, std::vector<int> nodes, std::string backend, std::span<const NativeEntry> natives,
                       bool starts_natives, const CallSettings& settings)
    : shape_(shape),
      nodes_(std::move(nodes)),
      backend_(std::move(backend)),
      natives_(natives),
      starts_natives_(starts_natives),
      settings_(settings) {}

Dispatcher::Key Dispatcher::key_of(const Request& request, const CallWishes& wishes) const {
  const bool reduction = row_of(request.collective).reduces();
  const DType dtype = dtype_of(request, shape_);
  const bool widens = reduction && !wishes.compress && request.op.kind() != Op::Kind::user && !is_minmax(request.op) &&
                      core::accumulation_type(dtype) != dtype;
  const bool scaled = reduction && request.op.kind() == Op::Kind::premul_sum;
  Key key{
      .collective = request.collective,
      .count = request.order == Order::tree ? 0 : plan_count(request, shape_),
      .root = row_of(request.collective).rooted ? request.root : 0,
      .dtype = dtype,
      .widens = widens,
      .wide_input = widens && scaled,
      .in_place = !scaled && request.in.data != nullptr && both_sides(request, shape_) && is_in_place(request, shape_),
      .minmax = reduction && is_minmax(request.op),
      .commutative = !reduction || request.op.commutative(),
      .arithmetic = !reduction || is_arithmetic(request.op),
      .built_in = !reduction || request.op.kind() != Op::Kind::user,
      .deterministic = reduction && request.order != Order::tree &&
                       (request.order == Order::rank || settings_.numerics == CallSettings::Numerics::deterministic),
      .asynchronous = wishes.asynchronous,
      .algorithm = wishes.algorithm};
  if (request.order == Order::tree) add_contributions(request, key);
  return key;
}

// Away from the root of a reduce, a rank finds the length by its share, if it has one.
void Dispatcher::add_contributions(const Request& request, Key& key) const {
  const auto* const all = key.asynchronous ? nullptr : told(request.contributions);
  const std::optional<std::size_t> length = length_of_one(request, shape_);
  const bool is_rooted = row_of(key.collective).rooted;
  const bool is_told = all != nullptr && (!is_rooted || std::ranges::count(*all, 0u) == 0);
  key.is_tree = true;
  key.given = request.in.count;
  key.contributions = request.contributions;
  key.knows_shares = shape_.size == 1 || (length == 0u && !is_rooted) || is_told;
  if (length)
    key.length = *length;
  else if (key.knows_shares)
    key.length = request.in.count / (*all)[static_cast<std::size_t>(shape_.rank)];
  key.count = row_of(key.collective).out == Extent::block ? request.out.count : key.length;
}

std::shared_ptr<const Decision> Dispatcher::decide(const Request& request, const CallWishes& wishes) {
  const Key key = key_of(request, wishes);
  const auto make_anew = [&] { return make(request, key, Reasons::untold); };
  if (row_of(request.collective).has_counts()) return make_anew();  // their counts are no part of the key
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e->key == key; });
  if (known != entries_.end()) {
    const auto decision = (*known)->decision;
    if (known != entries_.begin()) std::iter_swap(known, known - 1);
    return decision;
  }
  auto entry = std::make_unique<Entry>(Entry{std::string(key.algorithm), key, make_anew()});
  entry->key.algorithm = entry->algorithm;
  if (entries_.size() == kKept) entries_.pop_back();
  entries_.push_back(std::move(entry));
  return entries_.back()->decision;
}

bool Dispatcher::can_run_natively(const Request& request, const CallWishes& wishes) const {
  const Key key = key_of(request, wishes);
  const Case c{request, key, {}, 0};
  const auto is_own = [&](const AlgorithmSpec& spec) { return native(key.collective, spec.name) != nullptr; };
  if (!wishes.algorithm.empty()) return is_own(AlgorithmSpec::parse(wishes.algorithm));
  for (const AlgorithmOverride& override_ : settings_.overrides) {
    if (override_.collective == key.collective) return is_own(override_.algorithm);
  }
  return std::any_of(natives_.begin(), natives_.end(), [&](const NativeEntry& entry) {
    return entry.collective == key.collective && !why_not_native(entry, c, false);
  });
}

std::string Dispatcher::explain(const Request& request, const CallWishes& wishes, const backend::ReasonOps* own) const {
  const Dispatcher own_files(shape_, nodes_, backend_, natives_, starts_natives_, settings_);
  if (const auto* const all = told(request.contributions)) own_files.shares_.emplace(request.contributions, *all);
  const auto decision = own_files.make(request, key_of(request, wishes), Reasons::told);
  std::string text = fmt::format("{}: {}", decision->algorithm, decision->reason);
  if (own != nullptr && !decision->native.empty()) text += fmt::format("; {}", own->how(request));
  if (const NodeSizes nodes = sizes_of(nodes_); nodes.count > 1) text += fmt::format("; {}", nodes.text());
  return text;
}

std::shared_ptr<const Decision> Dispatcher::make(const Request& request, const Key& key, Reasons reasons) const {
  auto owned = std::make_shared<OwnedPlan>();
  copy_counts(request.in_counts, owned->in_counts, owned->in_displacements);
  copy_counts(request.out_counts, owned->out_counts, owned->out_displacements);
  // On ranks other than the root, MPI's counts have no meaning.
  const bool ignored = row_of(request.collective).counts == BlockCounts::root && request.root != shape_.rank;
  // The selection must not look at what only some ranks know.
  const std::size_t common = key.knows_shares || !row_of(key.collective).rooted ? key.length : 0;
  Case c{request, key, {}, key.is_tree ? common * size_of(key.dtype) : selection_bytes(request, shape_)};
  c.plan = {.collective = request.collective,
            .rank = shape_.rank,
            .size = shape_.size,
            .root = key.root,
            .count = key.count,
            .widens = key.widens,
            .wide_input = key.wide_input,
            .in_place = key.in_place,
            .node_of_rank = nodes_};
  if (!ignored) {
    c.plan.in_counts = owned->in_counts;
    c.plan.in_displacements = owned->in_displacements;
    c.plan.out_counts = owned->out_counts;
    c.plan.out_displacements = owned->out_displacements;
  }
  if (key.is_tree && key.knows_shares && key.length + key.given != 0) c.shares = known_shares(key);
  const Choice choice = choose_for(c, reasons);
  auto decision = std::make_shared<Decision>();
  decision->algorithm = choice.algorithm.text();
  decision->reason = choice.reason;
  decision->dtype = key.dtype;
  decision->widens = key.widens;
  decision->wide_input = key.wide_input;
  decision->length = common;
  c.plan.parameters.radix = choice.algorithm.radix;
  c.plan.parameters.segment = choice.algorithm.segment_bytes / size_of(key.dtype);
  if (choice.algorithm.segment_bytes > 0 && c.plan.parameters.segment == 0) c.plan.parameters.segment = 1;
  if (!choice.algorithm.file.empty()) {
    const PlanFile& source = file(choice.algorithm.file);
    decision->algorithm += fmt::format("#{:016x}", source.hash());  // ranks that read different files do not match
    owned->plan = source.build(c.plan);
  } else if (const Algorithm* algorithm = find_algorithm(request.collective, choice.algorithm.name)) {
    if (key.is_tree && !key.knows_shares) {
      decision->exchange = exchange_of_shares(*algorithm, c, owned);
      owned->plan = plan_of_shares(c.plan, decision->exchange->sent.size());
    } else if (key.is_tree && key.length == 0) {
      // Nothing moves, and nobody asks how many contributions there are.
    } else if (key.is_tree) {
      owned->contributions = std::move(c.shares);
      c.plan.contributions = owned->contributions;
      owned->plan = algorithm->build(c.plan);
    } else if (const NeighbourCounts* counts = algorithm->neighbour_counts) {
      if (choice.algorithm.segment_bytes == 0) c.plan.parameters.segment = counts->segment(c.plan, size_of(key.dtype));
      owned->plan = counts->build(c.plan);
      decision->exchange = exchange_of(*algorithm, c.plan, owned);
    } else {
      owned->plan = algorithm->build(c.plan);
    }
  } else {
    decision->native = choice.algorithm.name;
    decision->shares = std::move(c.shares);
    decision->starts = starts_natives_ && native(request.collective, choice.algorithm.name)->asynchronous;
    return decision;
  }
  decision->plan = std::shared_ptr<const Plan>(owned, &owned->plan);
  return decision;
}

// A rank that is alone knows its own.
std::vector<std::size_t> Dispatcher::known_shares(const Key& key) const {
  if (shape_.size == 1) {
    const std::vector<std::size_t> own = {key.given / key.length};
    if (const std::string problem = problem_with(own, key.contributions); !problem.empty())
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", to_string(key.collective), problem), shape_.group,
                  shape_.rank);
    return own;
  }
  const std::vector<std::size_t>& all = *told(key.contributions);
  if (const std::size_t before = all[static_cast<std::size_t>(shape_.rank)]; before * key.length != key.given)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: this rank gives {}, but {} in the first call that named so many, which holds for all of "
                    "them; give as many, or leave contributions out",
                    to_string(key.collective),
                    key.length != 0 && key.given % key.length == 0
                        ? fmt::format("{} of {} contributions", key.given / key.length, key.contributions)
                        : fmt::format("{} elements, no whole number of {} contributions", key.given, key.contributions),
                    before),
        shape_.group, shape_.rank);
  return all;
}

const std::vector<std::size_t>* Dispatcher::told(std::size_t contributions) const {
  const std::lock_guard lock(telling_);
  const auto found = shares_.find(contributions);
  return found == shares_.end() ? nullptr : &found->second;
}

// The ranks tell one another what they give, in the slot of the call. Of a reduce, the root alone knows how long a
// contribution is, and tells that too.
std::shared_ptr<const CountsExchange> Dispatcher::exchange_of_shares(const Algorithm& algorithm, const Case& c,
                                                                     std::shared_ptr<const OwnedPlan> owned) const {
  auto exchange = std::make_shared<CountsExchange>();
  const bool is_rooted = row_of(c.key.collective).rooted;
  if (is_rooted)
    exchange->sent = {c.key.given, c.key.length};
  else
    exchange->sent = {c.key.given / c.key.length};
  exchange->received = exchange->sent.size() * static_cast<std::size_t>(shape_.size);
  exchange->plan_of = [this, &algorithm, request = c.plan, owned = std::move(owned), is_rooted,
                       contributions = c.key.contributions,
                       remembers = !c.key.asynchronous](std::vector<std::size_t> received) {
    PlanRequest knowing = request;
    if (is_rooted) {
      knowing.count = received[2 * static_cast<std::size_t>(request.root) + 1];
      received = shares_of_reduce(received, request.root, shape_.group);
    }
    const bool is_empty = is_rooted && knowing.count == 0;
    if (const std::string problem = problem_with(received, contributions); !problem.empty() && !is_empty)
      throw Error(ErrorCode::mismatch, fmt::format("{}: {}", to_string(request.collective), problem), shape_.group, -1);
    if (remembers && contributions != 0 && !is_empty) {
      const std::lock_guard lock(telling_);
      shares_.emplace(contributions, received);
    }
    auto plan = std::make_shared<PlanOfCounts>();
    plan->owned = owned;
    plan->counts = std::move(received);
    knowing.contributions = plan->counts;
    if (!is_empty) plan->plan = algorithm.build(knowing);
    return std::shared_ptr<const Plan>(plan, &plan->plan);
  };
  return exchange;
}

// The call's own word, then COL_ALGORITHM's, then the table's, then whatever can.
Choice Dispatcher::choose_for(const Case& c, Reasons reasons) const {
  const auto named = [&](const AlgorithmSpec& spec, std::string_view by) {
    if (const auto problem = why_not(spec, c, true))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: algorithm '{}', asked for by {}, cannot be used: {}", to_string(c.key.collective),
                              spec.text(), by, *problem),
                  shape_.group, shape_.rank);
    return Choice{spec, fmt::format("asked for by {}", by)};
  };
  if (!c.key.algorithm.empty()) {
    try {
      return named(AlgorithmSpec::parse(c.key.algorithm), "the call");
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), shape_.group, shape_.rank);
    }
  }
  for (const AlgorithmOverride& override_ : settings_.overrides) {
    if (override_.collective == c.key.collective) return named(override_.algorithm, "COL_ALGORITHM");
  }
  const NodeSizes nodes = sizes_of(nodes_);
  const SelectionQuery query{c.key.collective, shape_.size, nodes.count, nodes.most_ranks, c.bytes, backend_};
  const auto objection = [&](const AlgorithmSpec& spec) { return why_not(spec, c, false); };
  std::string refused, refused_by_own;
  if (settings_.table) {
    if (auto choice = choose(*settings_.table, query, objection, &refused_by_own, reasons)) return *choice;
  }
  if (auto choice = choose(SelectionTable::built_in(), query, objection, &refused, reasons)) {
    if (!refused_by_own.empty()) choice->reason += fmt::format(" ({})", refused_by_own);
    return *choice;
  }
  if (!refused_by_own.empty()) refused = fmt::format("{}; {}", refused_by_own, refused);
  // The table is about plans, which need host memory.
  if (shape_.device != Device::Type::cpu) refused = fmt::format("backend {} has none", backend_);
  for (const std::string& name : names(c.key.collective)) {
    AlgorithmSpec spec;
    spec.name = name;
    const auto problem = objection(spec);
    if (!problem) return {spec, fmt::format("no rule fits, and it is the first that can serve the call ({})", refused)};
    if (native(c.key.collective, name) != nullptr) refused = *problem;
  }
  throw Error(ErrorCode::unavailable,
              fmt::format("{}: no algorithm can serve this call: {}", to_string(c.key.collective), refused),
              shape_.group, shape_.rank);
}

std::optional<std::string> Dispatcher::why_not(const AlgorithmSpec& spec, const Case& c, bool by_name) const {
  if (!spec.file.empty()) return why_not_file(spec, c);
  if (const NativeEntry* entry = native(c.key.collective, spec.name)) return why_not_native(*entry, c, by_name);
  if (shape_.device != Device::Type::cpu) return fmt::format("{} runs on the host, in host memory", spec.name);
  const Algorithm* algorithm = find_algorithm(c.key.collective, spec.name);
  if (algorithm == nullptr)
    return fmt::format("there is no such algorithm on backend {}; choose from '{}'", backend_,
                       core::joined(names(c.key.collective), "', '"));
  if (spec.radix != 0 && algorithm->parameters.find("radix") == std::string_view::npos)
    return fmt::format("{} has no parameter 'radix'", spec.name);
  if (spec.segment_bytes != 0 && algorithm->parameters.find("segment") == std::string_view::npos)
    return fmt::format("{} has no parameter 'segment'", spec.name);
  if (c.key.is_tree && !algorithm->keeps_tree)
    return fmt::format("{} does not combine contributions in the tree's order", spec.name);
  if (c.key.deterministic && algorithm->order != FoldOrder::rank_order)
    return fmt::format("{} does not combine elements in rank order, as deterministic calls need", spec.name);
  if (!c.key.commutative && algorithm->order == FoldOrder::any)
    return fmt::format("{} changes the order of the ranks, and the operator does not commute", spec.name);
  PlanRequest request = c.plan;
  request.parameters.radix = spec.radix;
  return algorithm->refuse(request);
}

std::optional<std::string> Dispatcher::why_not_native(const NativeEntry& entry, const Case& c, bool by_name) const {
  if (c.key.asynchronous && !(starts_natives_ && entry.asynchronous))
    return fmt::format("{} blocks; asynchronous calls need a plan", entry.name);
  if ((entry.arithmetic_only && !c.key.arithmetic) || (entry.built_in_only && !c.key.built_in))
    return fmt::format("{} does not take the operator '{}'", entry.name, c.request.op.name());
  if (entry.reduces != nullptr && row_of(c.key.collective).reduces() && !entry.reduces(c.request.op, c.key.dtype))
    return fmt::format("{} does not combine {} by '{}'", entry.name, to_string(c.key.dtype), c.request.op.name());
  if (c.key.is_tree && entry.keeps_tree == nullptr)
    return fmt::format("{} does not combine contributions in the tree's order", entry.name);
  if (c.key.is_tree && (c.shares.empty() || !entry.keeps_tree(c.shares)))
    return fmt::format("{} does not combine {} in the tree's order", entry.name,
                       c.shares.empty() ? "contributions of which only their giver knows" : "such shares");
  if (c.key.deterministic && !entry.rank_order) return fmt::format("{} does not promise rank order", entry.name);
  const bool rounds =
      entry.rounds_per_hop && core::accumulation_type(c.key.dtype) != c.key.dtype && row_of(c.key.collective).reduces();
  const bool drops = entry.drops_nan && c.key.minmax;
  const bool strict = settings_.numerics != CallSettings::Numerics::fast;
  // A backend on a GPU is worth its weaknesses, which explain() names; on a CPU our own plans are as fast.
  const bool refuses = strict || (!by_name && shape_.device == Device::Type::cpu);
  if (rounds && refuses) return fmt::format("{} rounds {} at every hop", entry.name, to_string(c.key.dtype));
  if (drops && refuses) return fmt::format("{} may lose a NaN", entry.name);
  return std::nullopt;
}

std::optional<std::string> Dispatcher::objection(const Request& request, const CallWishes& wishes,
                                                 std::string_view own) const {
  const NativeEntry* const entry = native(request.collective, own);
  if (entry == nullptr)
    return fmt::format("backend {} has no {} of that name", backend_, to_string(request.collective));
  const Key key = key_of(request, wishes);
  return why_not_native(*entry, {request, key, {}, 0}, true);
}

std::optional<std::string> Dispatcher::why_not_file(const AlgorithmSpec& spec, const Case& c) const {
  try {
    if (row_of(c.key.collective).has_counts())
      return std::string("plans from files do not serve collectives with counts per rank");
    if (c.key.is_tree) return std::string("plans from files do not say how many contributions each rank gives");
    const PlanFile& source = file(spec.file);
    if (auto refusal = source.refuse(c.plan)) return refusal;
    // Both, whatever this rank does: ranks may differ in it, but must decide alike. (Not for a file in elements, which
    // is for one problem.) A plan in chunks is verified with one element in each chunk, whatever the call moves.
    Verdict verdict;
    for (const bool in_place : {true, false}) {
      if (source.chunks() == 0 && in_place != c.key.in_place) continue;
      if (c.key.wide_input && in_place) continue;  // the scaled input is a copy
      const PlanProblem problem({.collective = c.key.collective,
                                 .size = shape_.size,
                                 .root = c.key.root,
                                 .count = source.chunks() > 0 ? source.chunks() : c.key.count,
                                 .widens = c.key.widens,
                                 .wide_input = c.key.wide_input,
                                 .in_place = in_place});
      verdict = verify(problem, [&](int rank) { return source.build(problem.request(rank)); });
      if (!verdict.good) return fmt::format("the plan is wrong{}: {}", in_place ? " in place" : "", verdict.problem);
    }
    if (c.key.deterministic && verdict.order != FoldOrder::rank_order)
      return std::string("the plan does not combine elements in rank order, as deterministic calls need");
    if (!c.key.commutative && verdict.order == FoldOrder::any)
      return std::string("the plan changes the order of the ranks, and the operator does not commute");
    return std::nullopt;
  } catch (const Error& error) {
    return error.message();
  }
}

const NativeEntry* Dispatcher::native(Collective collective, std::string_view name) const {
  const auto found = std::find_if(natives_.begin(), natives_.end(), [&](const NativeEntry& entry) {
    return entry.collective == collective && entry.name == name;
  });
  return found == natives_.end() ? nullptr : &*found;
}

const PlanFile& Dispatcher::file(const std::string& path) const {
  const auto known = files_.find(path);
  return known != files_.end() ? known->second : files_.emplace(path, PlanFile::load(path)).first->second;
}

std::vector<std::string> Dispatcher::names(Collective collective) const {
  std::vector<std::string> all;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.collective == collective) all.emplace_back(algorithm.name);
  }
  for (const NativeEntry& entry : natives_) {
    if (entry.collective == collective) all.emplace_back(entry.name);
  }
  return all;
}

}  // namespace col::group
