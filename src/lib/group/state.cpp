#include "group/state.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "backend/capabilities.hpp"
#include "core/log.hpp"
#include "group/call/checks.hpp"
#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/world_ranks.hpp"

namespace col {

std::shared_ptr<Group::State> Group::State::make(group::GroupParts parts, group::GroupHost host, Lineage lineage) {
  auto state = std::make_shared<State>(Passkey(), std::move(parts), std::move(host), std::move(lineage));
  state->access_.set_self(std::shared_ptr<group::Access>(state, &state->access_));
  return state;
}

Group::State::State(Passkey /*passkey*/, group::GroupParts parts, group::GroupHost host, Lineage lineage)
    : host_(std::move(host)),
      lineage_(std::move(lineage)),
      core_(std::move(parts.core)),
      lanes_(core_, std::move(parts.connections)),
      stager_(core_, lanes_),
      mailbox_(core_),
      flight_(core_, lanes_, mailbox_),
      access_(core_, flight_),
      starter_(core_, lanes_, stager_, flight_),
      collectives_(core_, lanes_, flight_, access_, starter_),
      messages_(core_, lanes_, stager_, mailbox_, flight_, access_, starter_),
      multi_gpu_(core_, lanes_, flight_, access_, starter_),
      shared_memory_(core_, lanes_, access_, collectives_),
      family_(core_, lanes_, access_, collectives_, host_.family, parts.is_high_priority_stream,
              std::move(parts.nccl_settings)) {
  core_.set_on_break([this](const Error& cause) {
    lanes_.abort(cause);
    flight_.abandon(cause);
    collectives_.drop_collected(cause);
    is_broken_ = true;
    note_told(cause);
  });
  core_.set_on_refused([this](const Error& cause) { note_told(cause); });
  core_.surroundings().memory = lanes_.own().can.common_memory;
  if (lanes_.own().can.device != nullptr && core_.size() > 1)
    core_.surroundings().announced = std::make_unique<group::Announced>(core_.surroundings());
  core_.surroundings().post_others = [this](std::optional<int> held_up_by, bool to_all) {
    bool are_all_told = true;
    if (!host_.all_groups) return are_all_told;
    for (Group& other : host_.all_groups()) {
      if (!other.state().post_calls(held_up_by, to_all) && &other.state() != this) are_all_told = false;
    }
    return are_all_told;
  };
}

// Without a word to the others: a program that ends lets go of its groups, too, and is lost to those who wait for it.
Group::State::~State() {
  if (const auto error = end(std::nullopt, true)) core::log::warn("{}", error->what());
  // Left there by a call that was still going on when the group was destroyed.
  if (!core_.is_forked_child()) group::clear_board(core_.surroundings());
}

std::optional<Error> Group::State::destroy(const std::optional<Error>& why) noexcept {
  return end(why, false);
}

// A call of another thread ends by the channel's error, and then breaks the group itself.
void Group::State::revoke(const Error& why, bool is_urgent) noexcept {
  if (access_.is_destroyed() || core_.is_forked_child()) return;
  if (const auto lock = access_.lock_unless_used()) {
    if (is_urgent || !flight_.active().empty()) core_.break_with(why);
    return;
  }
  group::publish_failure(*core_.surroundings().scope, why, core_.rank());
  lanes_.abort(why);
}

void Group::State::retire(const Error& why) noexcept {
  if (access_.is_destroyed()) return;
  core_.retire(why);
  end(std::nullopt, true);
}

std::optional<Error> Group::State::end(const std::optional<Error>& why, bool silently) noexcept {
  if (!access_.mark_destroyed()) return std::nullopt;
  if (core_.is_forked_child()) {  // nobody else is here, whatever the group says of the parent's threads
    lanes_.close();
    return std::nullopt;
  }
  const group::LastUse use(access_);
  if (!use) {  // a call still uses the channel: it is ended, and the channel goes with the last handle
    lanes_.abort(core_.own_error(ErrorCode::aborted, "the group was destroyed"));
    access_.end_what_is_left();
    return std::nullopt;
  }
  collectives_.drop_collected(core_.own_error(ErrorCode::aborted, "the group was destroyed before coalesce() ended"));
  std::optional<Error> error = flight_.drain(why);
  // Before the connections close: a rank that notices the closing then finds it.
  if (silently) {
    group::unpost_calls(core_.surroundings());
  } else {
    const auto difference = group::leave_board(core_.surroundings(), core_.broken().has_value(), why);
    if (difference && !error) error = group::with_world_rank(*difference, core_.surroundings().peers);
  }
  core_.surroundings().memory = nullptr;
  lanes_.close();
  group::clear_board(core_.surroundings());
  return error;
}

group::Epoch& Group::State::own_epoch(std::string_view call) const {
  if (!lineage_.is_derived) return *lineage_.epoch;
  throw core_.own_error(ErrorCode::invalid_argument,
                        fmt::format("{}: this group was made from '{}', which alone has epochs; call it on that one, "
                                    "and make this group again from its next epoch",
                                    call, lineage_.epoch->group));
}

Group Group::State::renew(const Renewal& renewal) {
  if (!host_.renew) throw core_.own_error(ErrorCode::not_initialized, "renew: the context of the group has ended");
  return host_.renew(*this, renewal);
}

void Group::State::leave() {
  if (core_.is_forked_child())
    destroy();
  else if (!access_.is_destroyed() && host_.destroy_group)
    host_.destroy_group(core_.name());
}

bool Group::State::is_forgotten() const {
  const group::Surroundings& own = core_.surroundings();
  return core_.has_record() && !is_asked_for_ && !access_.is_destroyed() && !core_.is_forked_child() &&
         (own.history.last() > 0 || !own.sent.empty());
}

std::optional<Error> Group::State::broken_by() {
  if (group::Access::is_moving_one_on()) return std::nullopt;  // maybe this one: it would wait for itself
  const auto lock = access_.lock_unless_used();
  return lock ? core_.broken() : std::nullopt;
}

void Group::State::note_told(const Error& cause) noexcept {
  if (!is_broken_ || access_.is_destroyed() || core_.is_forked_child() || !host_.has_broken) return;
  try {
    host_.has_broken(cause);
  } catch (const std::exception&) {  // out of memory: others are not told why this rank leaves
  }
}

std::optional<std::uint64_t> Group::State::calls_made() {
  if (core_.is_forked_child()) return std::nullopt;
  const auto lock = access_.try_lock();
  if (!lock) return std::nullopt;
  const group::Surroundings& own = core_.surroundings();
  std::uint64_t made = own.history.last();
  for (const auto& [to, count] : own.sent) made += count;
  return made;
}

bool Group::State::post_calls(std::optional<int> held_up_by, bool to_all) {
  if (core_.is_forked_child()) return true;
  const auto lock = access_.lock_for_moments();
  if (!lock) return false;
  if (access_.is_destroyed() || core_.broken()) return true;
  if (!to_all && core_.surroundings().records_show_all()) held_up_by.reset();
  group::post_calls(core_.surroundings(), held_up_by);
  return true;
}

Work Group::State::work_of(group::PendingPtr pending) {
  if (!pending) return {};
  auto in_graph = std::exchange(pending->in_graph, nullptr);
  return Work(std::make_shared<Work::Handle>(
      Work::Handle{.state = shared_from_this(), .pending = std::move(pending), .in_graph = std::move(in_graph)}));
}

void Group::State::require_unused(std::string_view call, const void* memory, std::size_t bytes) {
  require_unused_here(call, memory, bytes, true);
  if (access_.is_destroyed() || core_.is_forked_child() || !host_.all_groups) return;
  for (const Group& other : host_.all_groups()) other.state_->require_unused_here(call, memory, bytes, false);
}

// `own`: the memory was allocated in this group.
void Group::State::require_unused_here(std::string_view call, const void* memory, std::size_t bytes, bool own) {
  if (core_.is_forked_child()) return;
  access_.require_not_inside();
  const auto lock = access_.lock_for_moments();
  if (!lock) {
    if (!own) return;  // most likely with memory of its own
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("{}: the group is in use by another thread, maybe with this memory; do it after that call", call));
  }
  const ConstTensorView whole(memory, bytes, DType::uint8);
  for (const group::PendingPtr& pending : flight_.active()) {
    if (!pending->uses(whole)) continue;
    throw core_.own_error(ErrorCode::invalid_argument,
                          fmt::format("{}: {} number {} has not ended and uses this memory; wait for it before", call,
                                      pending->name, pending->sequence));
  }
  if (collectives_.is_in_scope(whole))
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("{}: a scope of coalesce() that has not ended uses this memory; end it before", call));
}

}  // namespace col
