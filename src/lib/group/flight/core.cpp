#include "group/flight/core.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "group/diagnosis/failure.hpp"
#include "group/diagnosis/world_ranks.hpp"

namespace col::group {

Core::Core(Spec spec)
    : spec_(std::move(spec)),
      fault_(exec::FaultHook::meant(settings().fault, spec_.global_rank, name())),
      ring_(record() != nullptr ? std::optional<core::CallRing>(*record()) : std::nullopt),
      recorded_group_(record() != nullptr ? record()->enter_group(name(), token()) : 0),
      traced_group_(core::Names::number(name())) {}

void Core::annotate(std::string_view label) {
  const bool is_text = std::ranges::none_of(label, [](char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return code < 0x20 || code == 0x7f;
  });
  if (!is_text)
    throw own_error(ErrorCode::invalid_argument,
                    "annotate() takes a label without control characters, such as line breaks; leave them out");
  const std::uint16_t number = core::Names::number(label);
  label_ = record() != nullptr ? record()->label(label, number) : number;
}

Core::~Core() {
  if (record() != nullptr && !is_forked_child()) record()->leave_group(recorded_group_);
}

Error Core::error_about(int culprit, ErrorCode code, std::string_view message) const {
  return with_world_rank(Error(code, message, name(), culprit), surroundings().peers);
}

void Core::check_own(std::string_view named) const {
  if (named == name()) return;
  throw own_error(
      ErrorCode::invalid_argument,
      fmt::format("called on this group, but the options name group '{}'; call it on that group, or use the free "
                  "function",
                  named));
}

void Core::throw_refused() {
  require_no_lost_scope();
  if (!broken_)
    throw own_error(
        ErrorCode::invalid_argument,
        "a scope of coalesce() is open on this group, and takes i-forms of collectives only; end it before");
  if (on_refused_) on_refused_(*broken_);
  throw Error(ErrorCode::aborted,
              fmt::format("the group broke before ({}: {}); destroy it and create it anew", to_string(broken_->code()),
                          broken_->message()),
              name(), broken_->rank(), broken_->world_rank(), broken_->is_loss());
}

void Core::throw_lost_scope() {
  fail(own_error(
      ErrorCode::aborted,
      "a scope of coalesce() was left while another thread used the group, so that its calls were neither made nor "
      "cancelled; end a scope where no other thread is in a call of the group"));
}

void Core::fail(const Error& cause) {
  break_with(cause);
  throw *broken_;
}

void Core::fail_with_current(Diagnosis& diagnosis, std::string_view what) {
  // Not the present exception: a backend may have made something else of it.
  if (const std::exception_ptr interruption = WaitContext::take_interruption()) {
    break_with(own_error(ErrorCode::aborted, fmt::format("rank {} was interrupted in {}", rank(), what)));
    std::rethrow_exception(interruption);
  }
  if (broken_) throw *broken_;  // by something else in flight, which has been explained
  try {
    throw;
  } catch (const Error& error) {
    fail(diagnosis.explain(error));
  } catch (const std::bad_alloc&) {
    fail(own_error(ErrorCode::resource, fmt::format("out of memory in {}", what)));
  } catch (const std::length_error&) {
    fail(own_error(ErrorCode::resource, fmt::format("out of memory in {}", what)));
  } catch (const std::exception& error) {
    fail(own_error(
        ErrorCode::internal,
        fmt::format("{} threw '{}'; if that came from a reduction of yours, catch it there", what, error.what())));
  } catch (...) {
    fail(own_error(
        ErrorCode::internal,
        fmt::format("{} threw something that is no std::exception; if that came from a reduction of yours, catch "
                    "it there",
                    what)));
  }
}

void Core::fail_with_current(std::string_view what) {
  Diagnosis diagnosis(surroundings(), {{.text = std::string(what), .collective = false, .counterparts = {}}});
  fail_with_current(diagnosis, what);
}

// Publishes the cause before the connections close, so that a rank that notices the closing finds the cause.
void Core::break_with(const Error& cause) noexcept {
  if (broken_) return;
  broken_ = cause;
  refuses_ = true;
  try {
    broken_ = with_world_rank(cause, surroundings().peers);
    // That another group has found the store mute is no reason not to tell what nobody else has found. Before the other
    // errors, it has been asked again.
    if (cause.code() == ErrorCode::mismatch || cause.code() == ErrorCode::internal ||
        cause.code() == ErrorCode::resource)
      surroundings().store->ask_again();
    // The host of the store may be what was lost.
    if (surroundings().scope && !surroundings().store_is_mute())
      broken_ = publish_failure(*surroundings().scope, *broken_, rank());
    if (broken_->group() != name())
      broken_ = Error(broken_->code(), broken_->message(), name(), broken_->rank(), broken_->world_rank(),
                      broken_->is_loss());
  } catch (const std::exception&) {  // the cause itself is what counts
  }
  if (record() != nullptr) {
    const int about = broken_->rank();
    const bool is_member = about >= 0 && about < size();
    record()->fail(is_member ? world_rank(about) : -1);
  }
  on_break_(*broken_);
  write_error_file(spec_.error_file, *broken_);
}

}  // namespace col::group
