#include "exec/executor.hpp"

#include <algorithm>
#include <utility>

namespace col::exec {
namespace {

bool is_message(const Step& step) {
  return step.kind == Step::Kind::send || step.kind == Step::Kind::recv;
}

}  // namespace

void Executor::start(Channel& channel, Job job) {
  job_ = std::move(job);
  memory_.prepare(*job_.plan, job_.operands);
  channel_ = &channel;
  index_ = 0;
  steps_begun_ = 0;
  bytes_done_ = 0;
  messages_.clear();
  early_.clear();
  early_steps_ = 0;
  if (job_.plan->rounds == 0) return;
  job_.plan->round(0, next_);
  load(0);
}

// Makes round `index`, which next_ holds, the current one.
void Executor::load(std::size_t index) {
  index_ = index;
  std::swap(round_, next_);
  std::swap(messages_, early_);
  early_.clear();
  next_local_ = 0;
  begin_round();
  if (index + 1 < job_.plan->rounds) {
    job_.plan->round(index + 1, next_);
    post_early();
  }
}

void Executor::begin_round() {
  // Receives first: what a peer has sent already then lands where it belongs.
  std::size_t receives = 0;
  for (const Step& step : round_.steps()) {
    if (step.kind != Step::Kind::recv) continue;
    if (receives++ < early_steps_) continue;
    begin_step(index_, step);
    post(index_, step, messages_);
  }
  early_steps_ = 0;
  for (const Step& step : round_.steps()) {
    if (step.kind != Step::Kind::send) continue;
    begin_step(index_, step);
    post(index_, step, messages_);
  }
}

// Posts the receives of the next round, in order, up to the first whose memory this round uses.
void Executor::post_early() {
  for (const Step& step : next_.steps()) {
    if (step.kind != Step::Kind::recv) continue;
    for (const Step& current : round_.steps()) {
      if (touches(current, step.to)) return;
    }
    begin_step(index_ + 1, step);
    post(index_ + 1, step, early_);
    ++early_steps_;
  }
}

void Executor::post(std::size_t round, const Step& step, std::vector<Message>& messages) {
  const bool receives = step.kind == Step::Kind::recv;
  const Slice& slice = receives ? step.to : step.left;
  const TensorView view = memory_.view(slice);
  const std::uint64_t began = job_.timeline.trace != nullptr ? job_.timeline.trace->ticks() : 0;
  const Ticket ticket =
      receives ? channel_->post_recv(step.peer, job_.slot, view) : channel_->post_send(step.peer, job_.slot, view);
  messages.push_back({.ticket = ticket,
                      .slice = slice,
                      .peer = step.peer,
                      .receives = receives,
                      .began = began,
                      .round = round,
                      .index = static_cast<std::size_t>(steps_begun_)});
}

void Executor::finish(Message& message) {
  message.done = true;
  const std::uint64_t bytes = memory_.view(message.slice).bytes();
  bytes_done_ += bytes;
  if (job_.timeline.trace == nullptr) return;
  trace_step(message.began, message.receives ? Step::Kind::recv : Step::Kind::send, message.peer, message.round,
             message.index, bytes);
}

void Executor::trace_step(std::uint64_t began, Step::Kind kind, int peer, std::size_t round, std::size_t index,
                          std::uint64_t bytes) {
  const StepTrace& timeline = job_.timeline;
  timeline.trace->add_step(*timeline.cursor, timeline.call,
                           {.begin = began,
                            .kind = static_cast<int>(kind),
                            .peer = peer < 0 ? -1 : (*timeline.peers)[static_cast<std::size_t>(peer)].global_rank,
                            .round = round,
                            .bytes = bytes,
                            .index = index});
}

void Executor::begin_step(std::size_t round, const Step& step) {
  FaultHook::pass(job_.fault, job_.operation, steps_begun_);
  ++steps_begun_;
  if (job_.trace != nullptr) job_.trace->push_back({round, step});
}

bool Executor::touches(const Step& step, const Slice& slice) const {
  const Extent extent = memory_.extent(slice);
  return overlap(memory_.extent(step.to), extent) || overlap(memory_.extent(step.left), extent) ||
         overlap(memory_.extent(step.right), extent);
}

bool Executor::progress() {
  if (!running()) return true;
  try {
    while (index_ < job_.plan->rounds) {
      const bool messages_done = test_messages();
      if (!run_local_steps() || !messages_done) return false;
      if (index_ + 1 == job_.plan->rounds) break;
      load(index_ + 1);
    }
  } catch (...) {
    end();
    throw;
  }
  end();
  return true;
}

// Whether all messages of the round have been exchanged.
bool Executor::test_messages() {
  bool all = true;
  for (Message& message : messages_) {
    if (!message.done && channel_->test(message.ticket)) finish(message);
    all = all && message.done;
  }
  return all;
}

// Whether all local steps of the round have been run.
bool Executor::run_local_steps() {
  const auto steps = round_.steps();
  for (; next_local_ < steps.size(); ++next_local_) {
    const Step& step = steps[next_local_];
    if (is_message(step)) continue;
    if (!may_run(step)) return false;
    begin_step(index_, step);
    const std::uint64_t began = job_.timeline.trace != nullptr ? job_.timeline.trace->ticks() : 0;
    memory_.run(step);
    if (job_.timeline.trace != nullptr)
      trace_step(began, step.kind, -1, index_, static_cast<std::size_t>(steps_begun_), memory_.view(step.to).bytes());
  }
  return true;
}

// A step waits for a message that brings what it uses, and for one that still reads what it writes.
bool Executor::may_run(const Step& step) const {
  return std::none_of(messages_.begin(), messages_.end(), [&](const Message& message) {
    if (message.done) return false;
    if (message.receives) return touches(step, message.slice);
    return overlap(memory_.extent(step.to), memory_.extent(message.slice));
  });
}

void Executor::wait(WaitContext& wait) {
  for (Message& message : messages_) {
    if (message.done) continue;
    try {
      channel_->wait(message.ticket, wait);
    } catch (...) {
      end();
      throw;
    }
    finish(message);
    return;
  }
}

int Executor::peer() const noexcept {
  for (const Message& message : messages_) {
    if (!message.done) return message.peer;
  }
  return -1;
}

void Executor::end() noexcept {
  channel_ = nullptr;
  job_ = {};  // a user's function may hold what its owner wants back
  memory_.forget();
}

}  // namespace col::exec
