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
    post(step, messages_);
  }
  early_steps_ = 0;
  for (const Step& step : round_.steps()) {
    if (step.kind != Step::Kind::send) continue;
    begin_step(index_, step);
    post(step, messages_);
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
    post(step, early_);
    ++early_steps_;
  }
}

void Executor::post(const Step& step, std::vector<Message>& messages) {
  const bool receives = step.kind == Step::Kind::recv;
  const Slice& slice = receives ? step.to : step.left;
  const TensorView view = memory_.view(slice);
  const Ticket ticket =
      receives ? channel_->post_recv(step.peer, job_.slot, view) : channel_->post_send(step.peer, job_.slot, view);
  messages.push_back({ticket, slice, step.peer, receives, false});
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
    if (!message.done) message.done = channel_->test(message.ticket).has_value();
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
    memory_.run(step);
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
    message.done = true;
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
