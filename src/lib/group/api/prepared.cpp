// Calls that are prepared once and started again and again.
#include <col/prepared.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "group/state.hpp"

namespace col {

struct PreparedCall::State {
  std::shared_ptr<Group::State> group;  // shared with the handles of the group, which it may outlive
  Call call;                            // its lists of counts are the two below
  std::vector<std::size_t> in_counts, out_counts;
  Options options;  // its names are the two below
  std::string group_name, algorithm;
  // What every start begins again. Null where each is a call of its own: this rank is alone, or something has to be
  // made anew for each (copies between GPU and host, a function of the user's).
  group::PendingPtr pending = {};
  Work work = {};  // the call that was started last
};

PreparedCall Group::prepare(const Call& call, const Options& options) {
  auto made = std::make_unique<PreparedCall::State>(
      PreparedCall::State{.group = state().shared_from_this(),
                          .call = call,
                          .in_counts = {call.in_counts.begin(), call.in_counts.end()},
                          .out_counts = {call.out_counts.begin(), call.out_counts.end()},
                          .options = options,
                          .group_name = std::string(options.group),
                          .algorithm = std::string(options.algorithm)});
  made->call.in_counts = made->in_counts;
  made->call.out_counts = made->out_counts;
  made->options.group = made->group_name;
  made->options.algorithm = made->algorithm;
  made->pending = made->group->collectives().prepare(made->call, made->options);
  made->work = made->group->work_of(made->pending);
  return PreparedCall(std::move(made));
}

PreparedCall::PreparedCall() noexcept = default;
PreparedCall::PreparedCall(std::unique_ptr<State> state) : state_(std::move(state)) {}
PreparedCall::PreparedCall(PreparedCall&& other) noexcept = default;
PreparedCall& PreparedCall::operator=(PreparedCall&& other) noexcept = default;
PreparedCall::~PreparedCall() = default;

void PreparedCall::start() {
  if (!state_) throw Error(ErrorCode::invalid_argument, "start: this is no prepared call; Group::prepare() makes one");
  State& own = *state_;
  if (!own.work.has_ended())
    throw own.group->core().own_error(
        ErrorCode::invalid_argument,
        fmt::format("start: the prepared {} that was started before has not ended; wait for it, or prepare another one",
                    to_string(own.call.collective)));
  group::Collectives& collectives = own.group->collectives();
  if (own.pending != nullptr) return collectives.start_prepared(own.pending, own.options);
  own.work = own.group->work_of(collectives.start(own.call, own.options));
}

void PreparedCall::wait() {
  if (state_) state_->work.wait();
}
void PreparedCall::wait(Stream stream) {
  if (state_) state_->work.wait(stream);
}
Work PreparedCall::work() const {
  return state_ ? state_->work : Work();
}
bool PreparedCall::wait_for(Duration budget) {
  return !state_ || state_->work.wait_for(budget);
}
bool PreparedCall::test() {
  return !state_ || state_->work.test();
}
bool PreparedCall::has_ended() const noexcept {
  return !state_ || state_->work.has_ended();
}

}  // namespace col
