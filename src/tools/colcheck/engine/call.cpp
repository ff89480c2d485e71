#include "colcheck/engine/call.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>

#include <fmt/format.h>

namespace col::colcheck {
namespace {

constexpr std::byte kPattern{0xa5};

}  // namespace

col::Call call_of(const Case& c, ConstTensorView in, TensorView out, std::span<const std::size_t> in_counts,
                  std::span<const std::size_t> out_counts) {
  const Collective collective = collective_of(c.primitive).value();
  const CollectiveRow& row = row_of(collective);
  col::Call call{.collective = collective};
  if (row.in != Extent::nothing) call.in = in;
  if (row.out != Extent::nothing) call.out = out;
  if (row.has_counts() && row.in == Extent::blocks) call.in_counts = in_counts;
  if (row.has_counts() && row.out == Extent::blocks) call.out_counts = out_counts;
  return call;
}

void Call::assign(Memory& memory, const Bytes& content, Side side) {
  memory.assign(content, case_.placement, size_of(case_.dtype), device_of(case_, group_.rank(), side));
}

Call::Call(Group group, Case c)
    : group_(std::move(group)), case_(std::move(c)), part_(part_of(case_, group_.rank(), group_.size())) {
  lay_out();
}

// What a rank's call does not look at is there in half of the cases, to be left alone, and absent in the others.
void Call::lay_out() {
  const bool rooted_elsewhere = is_rooted(case_.primitive) && group_.rank() != case_.root;
  if (case_.in_place && (!rooted_elsewhere || case_.primitive == Primitive::reduce)) return lay_out_in_place();
  Bytes input = part_.input;
  if (!part_.reads) input.assign(maybe(1) ? input.size() : 0, kPattern);
  assign(first_, input, Side::input);
  in_ = first_.view(0, elements(input), case_.dtype);

  Bytes output(part_.writes || !rooted_elsewhere || maybe(2) ? part_.output.size() : 0, kPattern);
  if (case_.primitive == Primitive::broadcast && group_.rank() == case_.root) output = part_.output;
  assign(second_, output, Side::output);
  out_ = second_.view(0, elements(output), case_.dtype);
  if (part_.writes) second_.expect(0, part_.output);
}

void Call::lay_out_in_place() {
  const bool input_is_longer = part_.input.size() >= part_.output.size();
  const bool equal = part_.input.size() == part_.output.size();
  const std::size_t offset = equal && !is_v_form(case_.primitive) ? 0 : part_.own_offset;
  std::size_t in_offset = 0, out_offset = 0;
  if (input_is_longer) {
    assign(first_, part_.input, Side::input);
    out_offset = offset;
  } else {
    Bytes whole(part_.output.size(), kPattern);
    std::copy(part_.input.begin(), part_.input.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset));
    assign(first_, whole, Side::input);
    in_offset = offset;
  }
  if (part_.writes) first_.expect(out_offset, part_.output);
  in_ = first_.view(in_offset, elements(part_.input), case_.dtype);
  out_ = first_.view(out_offset, elements(part_.output), case_.dtype);
}

Call::~Call() {
  for (Work& work : works_) {
    try {
      work.wait_for(std::chrono::seconds(5));
    } catch (const std::exception&) {  // it has ended
    }
  }
}

std::string Call::problem() const {
  if (!good_sources_) return "not one message from each rank";
  for (const Memory* memory : {&first_, &second_}) {
    const std::string problem = memory->problem(size_of(case_.dtype));
    if (!problem.empty()) return fmt::format("{}: {}", memory == &second_ ? "output" : "input or both", problem);
  }
  return {};
}

// ---- Starting

void Call::start() {
  const col::Options options{
      .op = op_of(case_, group_.rank()), .root = case_.root, .algorithm = case_.algorithm, .tag = case_.tag};
  collective_of(case_.primitive) ? start_collective(options) : start_messages(options);
}

void Call::start_collective(const col::Options& options) {
  const bool async = case_.asynchronous;
  if (case_.in_place && !async && maybe(3)) {  // the forms of one view
    if (case_.primitive == Primitive::allreduce) return group_.allreduce(out_, options);
    if (case_.primitive == Primitive::reduce) return group_.reduce(out_, options);
  }
  const col::Call call = call_of(case_, in_, out_, part_.in_counts, part_.out_counts);
  async ? keep(group_.start(call, options)) : group_.run(call, options);
}

void Call::start_messages(const col::Options& options) {
  if (case_.primitive == Primitive::send_recv) return rotate(options);
  if (case_.primitive == Primitive::recv_any) return collect(options);
  if (case_.primitive == Primitive::batch) return exchange(options);
  const int n = group_.size();
  group_.sendrecv(in_, destination_of(case_, group_.rank(), n), out_, source_of(case_, group_.rank(), n), options);
}

// A blocking send may wait for its receive: one rank of every cycle of the rotation has to receive first, and none may
// that sends to itself.
void Call::rotate(const col::Options& options) {
  const int n = group_.size(), me = group_.rank();
  const int shift = shift_of(case_, n);
  const int to = destination_of(case_, me, n), from = source_of(case_, me, n);
  const bool receives_first =
      case_.asynchronous ? maybe(10 + static_cast<std::uint64_t>(me)) : shift != 0 && me < std::gcd(shift, n);
  for (const bool receiving : {receives_first, !receives_first}) {
    if (case_.asynchronous)
      keep(receiving ? group_.irecv(out_, from, options) : group_.isend(in_, to, options));
    else if (receiving)
      group_.recv(out_, from, options);
    else
      group_.send(in_, to, options);
  }
}

void Call::collect(const col::Options& options) {
  if (case_.asynchronous)
    keep(group_.isend(in_, case_.root, options));
  else
    group_.send(in_, case_.root, options);
  if (group_.rank() != case_.root) return;
  assign(collected_, Bytes(part_.output.size(), kPattern), Side::output);
  const TensorView all = collected_.view(0, elements(part_.output), case_.dtype);
  for (std::size_t i = 0; i < static_cast<std::size_t>(group_.size()); ++i) {
    const TensorView block = all.slice(i * case_.count, case_.count);
    if (case_.asynchronous)
      keep(group_.irecv_any(block, options));
    else
      sources_.push_back(group_.recv_any(block, options));
  }
  if (!case_.asynchronous) sort_collected();
}

// Puts each block where the rank that it is said to come from belongs.
void Call::sort_collected() {
  const std::size_t bytes = part_.input.size();
  std::vector<int> ranks = sources_;
  std::sort(ranks.begin(), ranks.end());
  for (int r = 0; r < group_.size(); ++r) good_sources_ = good_sources_ && ranks[static_cast<std::size_t>(r)] == r;
  if (!good_sources_) return;
  for (std::size_t i = 0; i < sources_.size(); ++i)
    second_.write(static_cast<std::size_t>(sources_[i]) * bytes, collected_.read(i * bytes, bytes));
}

void Call::exchange(const col::Options& options) {
  std::vector<Message> messages;
  for (int peer = 0; peer < group_.size(); ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * case_.count;
    messages.push_back(Message::send(in_.slice(offset, case_.count), peer, case_.tag));
    messages.push_back(Message::recv(out_.slice(offset, case_.count), peer, case_.tag));
  }
  std::mt19937_64 random(mix(case_.seed, 3, static_cast<std::uint64_t>(group_.rank())));
  std::shuffle(messages.begin(), messages.end(), random);
  case_.asynchronous ? keep(group_.ibatch(messages, options)) : group_.batch(messages, options);
}

// ---- Ending

void Call::wait() {
  for (std::size_t i = 0; i < works_.size(); ++i)
    wait_for(works_[i], mix(case_.seed, 4, static_cast<std::uint64_t>(group_.rank())) + i);
  if (case_.primitive == Primitive::recv_any && case_.asynchronous && group_.rank() == case_.root) {
    for (std::size_t i = 1; i < works_.size(); ++i) sources_.push_back(works_[i].source());  // the first is the send
    sort_collected();
  }
  works_.clear();
}

void Call::wait_for(Work& work, std::uint64_t way) {
  constexpr int kPolls = 200;
  bool ended = false;
  for (int i = 0; way % 3 == 1 && !ended && i < kPolls; ++i) {
    ended = work.test();
    if (!ended) std::this_thread::yield();
  }
  for (int i = 0; way % 3 == 2 && !ended && i < kPolls; ++i) ended = work.wait_for(std::chrono::microseconds(50));
  if (!ended) work.wait();
}

std::string run_case(Group& group, const Case& c) {
  Call call(group, c);
  call.start();
  call.wait();
  return call.problem();
}

}  // namespace col::colcheck
