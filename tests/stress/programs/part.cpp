#include "part.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace programs {
namespace {

constexpr std::byte kPattern{0xa5};

bool may_be_in_place(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::scan || kind == Kind::exscan ||
         kind == Kind::alltoall || kind == Kind::alltoallv;
}

// Both forms write nothing there, and want a buffer of that size all the same.
bool has_untouched_output(const Event& event, int rank) {
  return (event.kind == Kind::reduce && rank != event.root) || (event.kind == Kind::exscan && rank == 0);
}

}  // namespace

Buffer::Buffer(const Bytes& content, std::byte* place)
    : own_(place == nullptr ? content.size() + 2 * kMargin : 0),
      place_(place == nullptr ? own_.data() : place),
      bytes_(content.size()) {
  std::fill_n(place_, kMargin, kPattern);
  std::copy(content.begin(), content.end(), data());
  std::fill_n(data() + bytes_, kMargin, kPattern);
}

col::TensorView Buffer::view(col::DType dtype) {
  return {data(), bytes_ / col::size_of(dtype), dtype};
}

bool Buffer::margins_are_intact() const {
  const auto is_pattern = [](std::byte byte) { return byte == kPattern; };
  return std::all_of(data() - kMargin, data(), is_pattern) &&
         std::all_of(data() + bytes_, data() + bytes_ + kMargin, is_pattern);
}

Buffer& Part::add(std::string name, Bytes content) {
  Bytes same = content;
  return add(std::move(name), std::move(content), std::move(same));
}

Buffer& Part::add(std::string name, Bytes content, Bytes expected) {
  const std::size_t needed = (content.size() + 2 * Buffer::kMargin + 63) / 64 * 64;
  std::byte* place = nullptr;
  if (event_.in_shared && !is_async_ && needed <= shared_.size()) {
    place = shared_.data();
    shared_ = shared_.subspan(needed);
  }
  expected_.push_back({std::move(name), std::make_unique<Buffer>(content, place), std::move(expected)});
  return *expected_.back().buffer;
}

col::Options Part::options() const {
  col::Options options{.root = event_.root, .deterministic = event_.deterministic};
  if (event_.has_operator()) options.op = op_of(event_, rank_);
  return options;
}

std::unique_ptr<Part> Part::begin(const Event& event, Place& place, Random& choices) {
  const bool is_message = event.kind >= Kind::message && event.kind <= Kind::recv_any;
  const bool is_async = is_message ? choices.chance(65) : event.is_async;
  std::unique_ptr<Part> part(new Part(event, place, is_async));
  switch (event.kind) {
    case Kind::message:
      part->begin_message();
      break;
    case Kind::sendrecv:
      part->begin_sendrecv();
      break;
    case Kind::batch:
      part->begin_batch(choices);
      break;
    case Kind::recv_any:
      part->begin_recv_any();
      break;
    case Kind::objects:
      part->gather_objects();
      break;
    case Kind::dup:
      part->make_group();
      break;
    default:
      part->begin_collective();
  }
  return part;
}

void Part::begin_collective() {
  const col::tools::ReferenceCall reference = call_of(event_);
  const std::size_t size = col::size_of(event_.dtype), ins = col::tools::elements_of(input_blocks(reference, rank_));
  const bool untouched = has_untouched_output(event_, rank_);
  const std::size_t outs = untouched ? event_.count : col::tools::elements_of(output_segments(reference, rank_));
  const Bytes input = input_of(event_, rank_, ins);
  Bytes expected = untouched ? Bytes(outs * size, kPattern) : expected_output(event_, rank_);
  if (event_.kind == Kind::broadcast) {
    Buffer& buffer = add("buffer", rank_ == event_.root ? input : Bytes(outs * size, kPattern), std::move(expected));
    return call({}, buffer.view(event_.dtype), true);
  }
  if (event_.in_place && may_be_in_place(event_.kind) && ins == outs) {
    if (untouched) expected = input;
    Buffer& buffer = add("buffer", input, std::move(expected));
    return call(buffer.view(event_.dtype), buffer.view(event_.dtype), true);
  }
  Buffer& in = add("input", input);
  Buffer& out = add("output", Bytes(outs * size, kPattern), std::move(expected));
  call(in.view(event_.dtype), out.view(event_.dtype), false);
}

// What a user would write.
void Part::call(col::ConstTensorView in, col::TensorView out, bool same) {
  if (same && !is_async_ && event_.kind == Kind::allreduce) return group_.allreduce(out, options());
  if (same && !is_async_ && event_.kind == Kind::reduce) return group_.reduce(out, options());
  lengths_ = col::test::lengths_of(call_of(event_), rank_);
  const col::Call call{call_of(event_).collective, in, out, lengths_.in_counts, lengths_.out_counts};
  col::Work work = col::test::call_by_name(group_, call, options(), is_async_);
  if (is_async_) works_.push_back(std::move(work));
}

void Part::send(Buffer& buffer, int destination, int tag) {
  const col::Options with{.tag = tag};
  if (is_async_)
    works_.push_back(group_.isend(buffer.view(event_.dtype), destination, with));
  else
    group_.send(buffer.view(event_.dtype), destination, with);
}

// To oneself, the send comes first.
void Part::begin_message() {
  const Bytes content = input_of(event_, event_.root, event_.count);
  if (rank_ == event_.root) send(add("sent", content), event_.peer, event_.tag);
  if (rank_ != event_.peer) return;
  Buffer& buffer = add("received", Bytes(content.size(), kPattern), content);
  const col::Options with{.tag = event_.tag};
  if (is_async_)
    works_.push_back(group_.irecv(buffer.view(event_.dtype), event_.root, with));
  else
    group_.recv(buffer.view(event_.dtype), event_.root, with);
}

void Part::begin_sendrecv() {
  const int to = (rank_ + event_.peer) % event_.size, from = (rank_ - event_.peer + event_.size) % event_.size;
  Buffer& sent = add("sent", input_of(event_, rank_, event_.count));
  const Bytes expected = input_of(event_, from, event_.count);
  Buffer& received = add("received", Bytes(expected.size(), kPattern), expected);
  group_.sendrecv(sent.view(event_.dtype), to, received.view(event_.dtype), from, {.tag = event_.tag});
}

void Part::begin_batch(Random& choices) {
  for (std::size_t i = 0; i < event_.transfers.size(); ++i) {
    const Transfer& transfer = event_.transfers[i];
    const Bytes content = input_of(event_, static_cast<int>(i), event_.count);
    if (rank_ == transfer.from)
      messages_.push_back(col::Message::send(add("sent", content).view(event_.dtype), transfer.to, transfer.tag));
    if (rank_ == transfer.to)
      messages_.push_back(col::Message::recv(
          add("received", Bytes(content.size(), kPattern), content).view(event_.dtype), transfer.from, transfer.tag));
  }
  choices.shuffle(messages_);
  if (is_async_)
    works_.push_back(group_.ibatch(messages_));
  else
    group_.batch(messages_);
}

// All that are sent to oneself come first.
void Part::begin_recv_any() {
  for (std::size_t i = 0; i < event_.transfers.size(); ++i) {
    const Transfer& transfer = event_.transfers[i];
    if (rank_ == transfer.from)
      send(add("sent", input_of(event_, static_cast<int>(i), event_.count)), transfer.to, transfer.tag);
  }
  if (rank_ != event_.root) return;
  for (const Transfer& transfer : event_.transfers) {
    Buffer& buffer = add("received", Bytes(event_.count * col::size_of(event_.dtype), kPattern));
    Expected& expected = expected_.back();
    expected.from_any = true;
    const col::Options with{.tag = transfer.tag};
    if (is_async_) {
      expected.work = works_.size();
      works_.push_back(group_.irecv_any(buffer.view(event_.dtype), with));
    } else {
      expected.source = group_.recv_any(buffer.view(event_.dtype), with);
    }
  }
}

void Part::gather_objects() {
  const auto object_of = [&](int rank) {
    const std::uint64_t number = mixed(event_.seed, static_cast<std::uint64_t>(rank));
    return std::string(event_.count % (1 + number % 5'000), static_cast<char>('a' + number % 26));
  };
  const std::vector<std::string> objects = group_.allgather_object(object_of(rank_));
  for (int rank = 0; rank < event_.size; ++rank) {
    if (objects.at(static_cast<std::size_t>(rank)) != object_of(rank))
      trouble_ = "the object of rank " + std::to_string(rank) + " is another one";
  }
}

void Part::make_group() {
  col::Group made = group_.dup();
  std::int32_t sum = 1;
  made.allreduce(std::span(&sum, 1));
  if (sum != event_.size) trouble_ = "the sum in the new group is wrong";
  col::destroy_collective_group(made.name());
}

// Each message is taken once, and those of one sender in the order in which it has sent them.
std::string Part::problem_of_any(const Expected& expected, std::vector<std::size_t>& taken) const {
  const int source = is_async_ ? works_[expected.work].source() : expected.source;
  for (std::size_t i = 0; i < event_.transfers.size(); ++i) {
    if (event_.transfers[i].from != source || std::find(taken.begin(), taken.end(), i) != taken.end()) continue;
    taken.push_back(i);
    return difference(event_, expected.buffer->data(), input_of(event_, static_cast<int>(i), event_.count));
  }
  return "it came from rank " + std::to_string(source) + ", which has sent no more";
}

std::string Part::problem() const {
  if (!trouble_.empty()) return trouble_;
  std::vector<std::size_t> taken;
  for (const Expected& expected : expected_) {
    const std::string wrong = expected.from_any ? problem_of_any(expected, taken)
                                                : difference(event_, expected.buffer->data(), expected.content);
    if (!wrong.empty()) return "its " + expected.name + ": " + wrong;
    if (!expected.buffer->margins_are_intact()) return "something was written beside its " + expected.name;
  }
  return {};
}

}  // namespace programs
