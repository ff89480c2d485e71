#include "colcheck/selftest/planted_channel.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace col::colcheck {
namespace {

constexpr int kFirstMessage = static_cast<int>(Collective::send);  // of the enumeration, after all collectives

constexpr auto entries() {
  std::array<NativeEntry, kFirstMessage> all{};
  for (int c = 0; c < kFirstMessage; ++c)
    all[static_cast<std::size_t>(c)] = {.collective = static_cast<Collective>(c),
                                        .name = kPlantedAlgorithm,
                                        .keeps_tree = [](std::span<const std::size_t>) noexcept { return true; }};
  return all;
}
constexpr std::array kEntries = entries();

Bytes bytes_of(ConstTensorView view) {
  const auto* const begin = static_cast<const std::byte*>(view.data);
  return begin == nullptr ? Bytes() : Bytes(begin, begin + view.bytes());
}

// Where the elements would begin if they were aligned.
const void* aligned(ConstTensorView view) {
  return static_cast<const std::byte*>(view.data) - reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.dtype);
}

std::byte* at(TensorView view, std::size_t offset) {
  return static_cast<std::byte*>(view.data) + offset;
}

bool gathers(Collective collective) {
  return collective == Collective::reduce || collective == Collective::gather || collective == Collective::gatherv;
}

// Not so where a rank passes nothing, or anything at all, as the call does not look at it.
bool is_there(ConstTensorView view) {
  return view.data != nullptr && !view.empty();
}

bool is_floating(DType dtype) {
  return dtype >= DType::float16;
}

// Set in the tickets of add(), and never in a channel's tickets, which count from small numbers.
constexpr std::uint64_t kOwn = std::uint64_t{1} << 63;

}  // namespace

// ---- Messages

// Takes the place of the last equal one, so that slots and lengths come in the order of the messages.
Ticket ReorderedReceives::add(int peer, std::uint64_t slot, TensorView data) {
  Receive receive{kOwn | next_++, peer, slot, data};
  const Ticket ticket{receive.id};
  const auto alike = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Receive& other) {
    return other.peer == peer && other.slot == slot && other.data.bytes() == data.bytes();
  });
  if (alike != waiting_.rend()) std::swap(*alike, receive);
  waiting_.push_back(receive);
  return ticket;
}

void ReorderedReceives::post(Channel& channel) {
  for (const Receive& receive : waiting_)
    posted_[receive.id] = channel.post_recv(receive.peer, receive.slot, receive.data);
  waiting_.clear();
}

Ticket ReorderedReceives::translate(Ticket ticket) const {
  const auto found = posted_.find(ticket.id);
  return found == posted_.end() ? ticket : found->second;
}

Ticket PlantedChannel::post_send(int peer, std::uint64_t slot, ConstTensorView data) {
  return inner_->post_send(peer, slot, data);
}

Ticket PlantedChannel::post_recv(int peer, std::uint64_t slot, TensorView data) {
  if (has(Bug::swaps_equal_tags)) return reordered_.add(peer, slot, data);
  return inner_->post_recv(peer, slot, data);
}

std::optional<int> PlantedChannel::test(Ticket ticket) {
  reordered_.post(*inner_);
  const auto peer = inner_->test(reordered_.translate(ticket));
  if (peer) reordered_.forget(ticket);
  return peer;
}

int PlantedChannel::wait(Ticket ticket, WaitContext& wait) {
  reordered_.post(*inner_);
  const int peer = inner_->wait(reordered_.translate(ticket), wait);
  reordered_.forget(ticket);
  return peer;
}

// ---- Collectives

std::span<const NativeEntry> PlantedChannel::native_entries() const {
  return kEntries;
}

Ticket PlantedChannel::start_native(const col::Request& given, WaitContext& wait) {
  col::Request request = given;
  if (has(Bug::barrier_does_nothing) && request.collective == Collective::barrier) return kEnded;
  const bool other_root = request.collective == Collective::broadcast || request.collective == Collective::reduce;
  if (has(Bug::wrong_root) && other_root && size_ > 2) request.root = (request.root + 1) % size_;

  const bool reduces = row_of(request.collective).reduces();
  const bool is_tree = request.order == Order::tree;
  const auto total = std::reduce(request.shares.begin(), request.shares.end());
  const Arithmetic arithmetic(bug_, request.op, dtype_of(request), is_tree ? static_cast<int>(total) : size_);
  const Traffic traffic = traffic_of(request, rank_, size_);
  if (has(Bug::output_cleared_first)) clear_output(request, traffic);
  stage(request, traffic, arithmetic);
  exchange(request, traffic, reduces ? arithmetic.working_type() : dtype_of(request), wait);
  if (is_tree)
    write_tree(request, arithmetic);
  else if (reduces && !order_.empty())
    write(request.out, 0, arithmetic.result(folded(arithmetic, traffic.from[index(order_.front())]->count)));
  else if (!reduces)
    write_blocks(request, traffic);
  harm_buffers(request, given.root);
  return kEnded;
}

// Harmless where the input is elsewhere.
void PlantedChannel::clear_output(const col::Request& request, const Traffic& traffic) const {
  const bool writes =
      std::any_of(traffic.from.begin(), traffic.from.end(), [](const auto& block) { return block.has_value(); });
  if (writes && is_there(request.out)) std::memset(request.out.data, 0, request.out.bytes());
}

// Copies what each rank gets, so that the output may be written whatever it shares with the input.
void PlantedChannel::stage(const col::Request& request, const Traffic& traffic, const Arithmetic& arithmetic) {
  ConstTensorView source = source_of(request);
  if (has(Bug::assumes_alignment)) source.data = aligned(source);
  outgoing_.assign(index(size_), {});
  for (int r = 0; r < size_; ++r) {
    const auto& block = traffic.to[index(r)];
    if (!block || block->count == 0) continue;
    const ConstTensorView view = source.slice(block->offset, block->count);
    outgoing_[index(r)] = row_of(request.collective).reduces() ? arithmetic.contribution(view) : bytes_of(view);
  }
  if (has(Bug::unsynchronised_reuse)) stage_in_one_buffer();
  const bool reads = std::any_of(outgoing_.begin(), outgoing_.end(), [](const Bytes& block) { return !block.empty(); });
  if (has(Bug::reads_past_end) && reads)
    static_cast<void>(static_cast<const volatile std::byte*>(source.data)[source.bytes()]);
}

// The buffer of a send is filled for the next rank before the send has read it: all send what was filled in last.
void PlantedChannel::stage_in_one_buffer() {
  Bytes buffer;
  for (const Bytes& block : outgoing_) {
    buffer.resize(std::max(buffer.size(), block.size()));
    std::copy(block.begin(), block.end(), buffer.begin());
  }
  for (Bytes& block : outgoing_)
    std::copy(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(block.size()), block.begin());
}

// Fills incoming_ and order_.
void PlantedChannel::exchange(const col::Request& request, const Traffic& traffic, DType dtype, WaitContext& wait) {
  const std::size_t element_bytes = size_of(dtype);
  const bool from_any = has(Bug::arrival_order) && row_of(request.collective).reduces();
  std::vector<Ticket> sends;
  std::vector<std::pair<int, Ticket>> receives;  // with the rank whose place in incoming_ is filled
  incoming_.assign(index(size_), {});
  order_.clear();
  for (int r = 0; r < size_; ++r) {
    const auto& block = traffic.from[index(r)];
    if (!block || r == rank_) continue;
    Bytes& incoming = incoming_[index(r)];
    incoming.resize(block->count * element_bytes);
    receives.emplace_back(
        r, inner_->post_recv(from_any ? kAnyPeer : r, request.fingerprint, {incoming.data(), block->count, dtype}));
  }
  for (int r = 0; r < size_; ++r) {
    const Bytes& outgoing = outgoing_[index(r)];
    if (!traffic.to[index(r)] || r == rank_) continue;
    sends.push_back(
        inner_->post_send(r, request.fingerprint, {outgoing.data(), outgoing.size() / element_bytes, dtype}));
  }
  if (traffic.from[index(rank_)]) {
    incoming_[index(rank_)] = own_block(dtype, request.op.kind());
    order_.push_back(rank_);
  }
  for (const auto& [place, ticket] : receives) {
    inner_->wait(ticket, wait);
    order_.push_back(place);
  }
  for (const Ticket ticket : sends) inner_->wait(ticket, wait);
  if (!from_any) std::sort(order_.begin(), order_.end());
}

// What this rank gives itself. The mistake: it is kept for later calls of the same size and kind, and not filled again.
const Bytes& PlantedChannel::own_block(DType dtype, Op::Kind kind) {
  const Bytes& block = outgoing_[index(rank_)];
  if (!has(Bug::stale_scratch)) return block;
  return kept_.try_emplace({block.size(), dtype, kind == Op::Kind::user}, block).first->second;
}

Bytes PlantedChannel::folded(const Arithmetic& arithmetic, std::size_t count) const {
  Bytes total = incoming_[index(order_.front())];
  for (std::size_t i = 1; i < order_.size(); ++i) {
    const bool is_last = i + 1 == order_.size();
    const std::size_t remainder = count % index(size_);
    arithmetic.combine(total, incoming_[index(order_[i])],
                       has(Bug::wrong_remainder_block) && is_last ? count - remainder : count);
  }
  return total;
}

// Level by level.
Bytes PlantedChannel::tree_of(const Arithmetic& arithmetic, std::vector<Bytes> level, std::size_t count) {
  while (level.size() > 1) {
    std::vector<Bytes> above;
    for (std::size_t i = 0; i < level.size(); i += 2) {
      if (i + 1 < level.size()) arithmetic.combine(level[i], level[i + 1], count);
      above.push_back(std::move(level[i]));
    }
    level = std::move(above);
  }
  return std::move(level.front());
}

// The mistake: a tree of the ranks, in place of one of what they give.
Bytes PlantedChannel::folded_in_tree(const Arithmetic& arithmetic, std::span<const std::size_t> shares,
                                     std::size_t count) const {
  const auto bytes = static_cast<std::ptrdiff_t>(count * size_of(arithmetic.working_type()));
  std::vector<Bytes> all;
  for (int r = 0; r < size_; ++r) {
    std::vector<Bytes> own;
    auto next = incoming_[index(r)].begin();
    for (std::size_t i = 0; i < shares[index(r)]; ++i, next += bytes) own.emplace_back(next, next + bytes);
    if (has(Bug::tree_over_ranks) && !own.empty()) own = {tree_of(arithmetic, own, count)};
    all.insert(all.end(), own.begin(), own.end());
  }
  return tree_of(arithmetic, std::move(all), count);
}

// The part of the result that this rank gets.
void PlantedChannel::write_tree(const col::Request& request, const Arithmetic& arithmetic) const {
  const CollectiveRow& row = row_of(request.collective);
  if (!row.has_output(rank_ == request.root)) return;
  Bytes whole = arithmetic.result(folded_in_tree(arithmetic, request.shares, length_of_one(request, rank_, size_)));
  const auto own = request.in_counts.begin() + (row.has_counts() ? rank_ : 0);
  const std::size_t before = row.has_counts()           ? std::reduce(request.in_counts.begin(), own)
                             : row.out == Extent::block ? index(rank_) * request.out.count
                                                        : 0;
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(before * size_of(request.out.dtype));
  write(request.out, 0, {begin, begin + static_cast<std::ptrdiff_t>(request.out.bytes())});
}

void PlantedChannel::write_blocks(const col::Request& request, const Traffic& traffic) const {
  for (const int r : order_) {
    Bytes block = incoming_[index(r)];
    const std::size_t first_bytes = incoming_[index(order_.front())].size();
    if (has(Bug::uneven_blocks_cut)) block.resize(std::min(block.size(), first_bytes));
    write(request.out, traffic.from[index(r)]->offset, block);
  }
}

// Puts a block where it belongs; `offset` counts elements.
void PlantedChannel::write(TensorView output, std::size_t offset, const Bytes& block) const {
  const std::size_t element_bytes = size_of(output.dtype);
  const std::size_t begin = offset * element_bytes;
  // A wrong root may have no output.
  if (block.empty() || !is_there(output) || begin + block.size() > output.bytes()) return;
  const std::size_t dropped = has(Bug::dropped_last_element) ? element_bytes : 0;
  std::memcpy(at(output, begin), block.data(), block.size() - dropped);
  if (has(Bug::writes_past_end)) *at(output, begin + block.size()) = std::byte{0};
}

// The bugs that spoil what the call has left in the caller's memory.
void PlantedChannel::harm_buffers(const col::Request& request, int root) const {
  const bool is_copy = request.collective == Collective::allreduce && rank_ == size_ - 1;
  if (has(Bug::one_ulp) && is_copy && is_floating(request.out.dtype) && is_there(request.out))
    *at(request.out, 0) ^= std::byte{1};  // the lowest bit, in little-endian order
  const bool is_elsewhere = gathers(request.collective) && rank_ != root;
  if (has(Bug::non_root_output_touched) && is_elsewhere && is_there(request.in) && is_there(request.out))
    std::memmove(request.out.data, request.in.data, std::min(request.in.bytes(), request.out.bytes()));
  const bool writes_own = row_of(request.collective).reduces() && !is_elsewhere;
  if (has(Bug::input_overwritten) && writes_own && is_there(request.in) && is_there(request.out))
    std::memmove(const_cast<void*>(request.in.data), request.out.data,
                 std::min(request.in.bytes(), request.out.bytes()));
}

}  // namespace col::colcheck
