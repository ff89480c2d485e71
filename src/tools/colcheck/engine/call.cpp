#include "colcheck/engine/call.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

#include "common/gpu.hpp"
#include "core/clock/clock.hpp"

namespace col::colcheck {
namespace {

constexpr std::byte kUnwritten{0xa5};

Bytes bytes_of(TensorView view) {
  Bytes bytes(view.bytes());
  if (view.device.type == Device::Type::cuda)
    tools::copy_from_gpu(bytes, view.data, view.device.index);
  else if (!bytes.empty())
    std::copy_n(static_cast<const std::byte*>(view.data), bytes.size(), bytes.data());
  return bytes;
}

void set_bytes(TensorView view, const Bytes& bytes) {
  if (view.device.type == Device::Type::cuda)
    tools::copy_to_gpu(view.data, bytes, view.device.index);
  else if (!bytes.empty())
    std::copy_n(bytes.data(), bytes.size(), static_cast<std::byte*>(view.data));
}

// Blocking sends may wait for their receives: one rank of every cycle of the rotation receives first.
void rotate(Group& group, const Case& c, const Views& views, const col::Options& options) {
  const int n = group.size(), me = group.rank(), shift = shift_of(c, n);
  const bool receives_first = shift != 0 && me < std::gcd(shift, n);
  for (const bool receiving : {receives_first, !receives_first}) {
    if (receiving)
      group.recv(views.out, source_of(c, me, n), options);
    else
      group.send(views.in, destination_of(c, me, n), options);
  }
}

// Puts the blocks of recv_any, which are in the order of their receives, where the ranks that they come from belong.
void sort_by_source(TensorView all, const std::vector<int>& sources) {
  const std::size_t count = all.count / sources.size();
  std::vector<int> ranks = sources;
  std::sort(ranks.begin(), ranks.end());
  std::vector<Bytes> arrived;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (ranks[i] != static_cast<int>(i)) throw std::runtime_error("recv_any did not get one message from each rank");
    arrived.push_back(bytes_of(all.slice(i * count, count)));
  }
  for (std::size_t i = 0; i < sources.size(); ++i)
    set_bytes(all.slice(static_cast<std::size_t>(sources[i]) * count, count), arrived[i]);
}

void collect(Group& group, const Case& c, const Views& views, const col::Options& options) {
  group.send(views.in, c.root, options);
  if (group.rank() != c.root) return;
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t count = views.out.count / size;
  std::vector<int> sources;
  for (std::size_t i = 0; i < size; ++i) sources.push_back(group.recv_any(views.out.slice(i * count, count), options));
  sort_by_source(views.out, sources);
}

// In an order of each rank's own.
std::vector<Message> messages_of(const Group& group, const Case& c, const Views& views) {
  const auto size = static_cast<std::size_t>(group.size());
  const std::size_t sent = views.in.count / size, received = views.out.count / size;
  std::vector<Message> messages;
  for (std::size_t r = 0; r < size; ++r) {
    messages.push_back(Message::send(views.in.slice(r * sent, sent), static_cast<int>(r), c.tag));
    messages.push_back(Message::recv(views.out.slice(r * received, received), static_cast<int>(r), c.tag));
  }
  std::mt19937_64 random(mix(c.seed, 3, static_cast<std::uint64_t>(group.rank())));
  std::shuffle(messages.begin(), messages.end(), random);
  return messages;
}

void call_messages(Group& group, const Case& c, const Views& views, const col::Options& options) {
  const int n = group.size(), me = group.rank();
  if (c.primitive == Primitive::send_recv) return rotate(group, c, views, options);
  if (c.primitive == Primitive::recv_any) return collect(group, c, views, options);
  if (c.primitive == Primitive::batch) return group.batch(messages_of(group, c, views), options);
  group.sendrecv(views.in, destination_of(c, me, n), views.out, source_of(c, me, n), options);
}

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

Sides sides_of(const Case& c, int size) {
  const std::size_t whole = c.count * static_cast<std::size_t>(size);
  const auto extent = [&](Extent side) { return side == Extent::blocks ? whole : c.count; };
  if (const auto collective = collective_of(c.primitive))
    return {extent(row_of(*collective).in), extent(row_of(*collective).out)};
  return {c.primitive == Primitive::batch ? whole : c.count,
          c.primitive == Primitive::batch || c.primitive == Primitive::recv_any ? whole : c.count};
}

col::Options options_of(const Case& c, int rank) {
  return {.op = op_of(c, rank), .root = c.root, .algorithm = c.algorithm, .tag = c.tag};
}

void call_plainly(Group& group, const Case& c, const Views& views, const col::Options& options) {
  if (!collective_of(c.primitive)) return call_messages(group, c, views, options);
  group.run(call_of(c, views.in, views.out, views.in_counts, views.out_counts), options);
}

void Call::assign(Memory& memory, Bytes content, Side side) {
  content.resize(std::max(room_, content.size()), kUnwritten);
  const bool is_there = room_ > 0 && memory.size() == content.size();
  if (!is_there)
    return memory.assign(content, case_.placement, size_of(case_.dtype), device_of(case_, group_.rank(), side));
  memory.write(0, content);
  memory.expect(0, content);
}

TensorView Call::ignored(const Memory& memory, std::uint64_t salt) const {
  const std::uint64_t drawn = mix(case_.seed, 900, salt) % 4;
  if (drawn == 0) return {};
  if (drawn == 1) return {nullptr, case_.count + 1, case_.dtype};
  if (drawn == 2) return memory.view(0, memory.size(), DType::uint8);
  return memory.view(0, memory.size() / size_of(case_.dtype), case_.dtype);
}

Call::Call(Group group, Case c, Part part) : group_(std::move(group)), case_(std::move(c)), part_(std::move(part)) {
  lay_out();
}

Call::Call(Group group, Case c, std::size_t room) : group_(std::move(group)), room_(room) {
  take(c);
}

Call::Call(Group group, Case c) : Call(std::move(group), std::move(c), 0) {}

void Call::take(const Case& c) {
  case_ = c;
  part_ = part_of(c, group_.rank(), group_.size());
  lay_out();
}

void Call::lay_out() {
  const bool rooted_elsewhere = is_rooted(case_.primitive) && group_.rank() != case_.root;
  if (case_.in_place && (!rooted_elsewhere || case_.primitive == Primitive::reduce)) return lay_out_in_place();
  Bytes input = part_.input;
  if (!part_.reads) input.assign(input.size(), kUnwritten);
  assign(first_, input, Side::input);
  in_ = first_.view(0, elements(input), case_.dtype);
  if (!part_.reads && rooted_elsewhere) in_ = ignored(first_, 1);

  Bytes output(part_.output.size(), kUnwritten);
  if (case_.primitive == Primitive::broadcast && group_.rank() == case_.root) output = part_.output;
  assign(second_, output, Side::output);
  out_ = second_.view(0, elements(output), case_.dtype);
  if (!part_.writes && rooted_elsewhere) out_ = ignored(second_, 2);
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
    Bytes whole(part_.output.size(), kUnwritten);
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
  for (const Memory* memory : {&first_, &second_}) {
    const std::string problem = memory->problem(size_of(case_.dtype));
    if (!problem.empty()) return fmt::format("{}: {}", memory == &second_ ? "output" : "input or both", problem);
  }
  return {};
}

// ---- Starting

void Call::prepare() {
  prepared_ =
      group_.prepare(call_of(case_, in_, out_, part_.in_counts, part_.out_counts), options_of(case_, group_.rank()));
}

void Call::start() {
  if (prepared_) {
    prepared_->start();
    return keep(prepared_->work());
  }
  const col::Options options = options_of(case_, group_.rank());
  if (!case_.asynchronous && case_.in_place && maybe(3)) {  // the forms of one view
    if (case_.primitive == Primitive::allreduce) return group_.allreduce(out_, options);
    if (case_.primitive == Primitive::reduce) return group_.reduce(out_, options);
  }
  if (!case_.asynchronous) return call_plainly(group_, case_, views(), options);
  if (!collective_of(case_.primitive)) return start_messages(options);
  keep(group_.start(call_of(case_, in_, out_, part_.in_counts, part_.out_counts), options));
}

void Call::start_messages(const col::Options& options) {
  const int n = group_.size(), me = group_.rank();
  if (case_.primitive == Primitive::batch) return keep(group_.ibatch(messages_of(group_, case_, views()), options));
  if (case_.primitive == Primitive::recv_any) {
    keep(group_.isend(in_, case_.root, options));
    for (int i = 0; me == case_.root && i < n; ++i)
      keep(group_.irecv_any(out_.slice(static_cast<std::size_t>(i) * case_.count, case_.count), options));
    return;
  }
  const bool receives_first = maybe(10 + static_cast<std::uint64_t>(me));
  for (const bool receiving : {receives_first, !receives_first})
    keep(receiving ? group_.irecv(out_, source_of(case_, me, n), options)
                   : group_.isend(in_, destination_of(case_, me, n), options));
}

// ---- Ending

void Call::clear_output() {
  if (case_.primitive == Primitive::broadcast && group_.rank() == case_.root) return;  // its input
  second_.write(0, Bytes(second_.size(), kUnwritten));
}

void Call::spoil() {
  for (Memory* memory : {&first_, &second_}) memory->write(0, Bytes(memory->size(), kUnwritten));
}

void Call::wait() {
  for (std::size_t i = 0; i < works_.size(); ++i)
    wait_for(works_[i], mix(case_.seed, 4, static_cast<std::uint64_t>(group_.rank())) + i);
  std::vector<int> sources;  // of recv_any; the first work is the send
  for (std::size_t i = 1; case_.primitive == Primitive::recv_any && i < works_.size(); ++i)
    sources.push_back(works_[i].source());
  works_.clear();
  if (!sources.empty()) sort_by_source(out_, sources);
}

void Call::wait_for(Work& work, std::uint64_t way) {
  constexpr int kPolls = 200;
  bool ended = false;
  for (int i = 0; way % 3 == 1 && !ended && i < kPolls; ++i) {
    ended = work.test();
    if (!ended) core::yield();
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
