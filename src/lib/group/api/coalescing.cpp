// The scope in which a group collects calls.
#include <col/coalescing.hpp>

#include <exception>
#include <utility>

#include "core/log.hpp"
#include "group/state.hpp"

namespace col {

struct Coalescing::Scope {
  std::shared_ptr<Group::State> state;  // shared with the handles of the group, which the scope may outlive
  int exceptions = std::uncaught_exceptions();
};

Coalescing Group::coalesce() {
  auto scope = std::make_unique<Coalescing::Scope>(Coalescing::Scope{.state = state().shared_from_this()});
  scope->state->collectives().begin_scope();
  return Coalescing(std::move(scope));
}

Coalescing::Coalescing(std::unique_ptr<Scope> scope) : scope_(std::move(scope)) {}

Coalescing::~Coalescing() {
  if (!scope_) return;
  if (std::uncaught_exceptions() > scope_->exceptions) {
    cancel();
    return;
  }
  try {
    (void)end();
  } catch (const std::exception& error) {
    core::log::warn("a scope of coalesce() that was left without end(): {}", error.what());
  } catch (...) {  // of an interrupt; the group is broken by it
  }
  cancel();
}

Work Coalescing::end() {
  if (!scope_) throw Error(ErrorCode::invalid_argument, "this scope of coalesce() has ended before; end it once");
  Group::State& state = *scope_->state;
  try {
    Work all = state.work_of(state.collectives().end_scope());
    scope_.reset();
    return all;
  } catch (...) {
    if (!state.core().is_collecting()) scope_.reset();  // else another thread is using the group
    throw;
  }
}

void Coalescing::cancel() noexcept {
  const auto scope = std::move(scope_);
  if (!scope || scope->state->access().is_destroyed()) return;
  try {
    scope->state->collectives().cancel_scope();
  } catch (const std::exception& error) {  // the group would collect for ever
    scope->state->core().note_lost_scope();
    core::log::warn("a scope of coalesce() cannot be cancelled, which breaks its group: {}", error.what());
  } catch (...) {  // of an interrupt
    scope->state->core().note_lost_scope();
  }
}

}  // namespace col
