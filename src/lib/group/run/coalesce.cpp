// Calls that a scope collects: <col/coalescing.hpp>.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "group/call/checks.hpp"
#include "group/run/collectives.hpp"

namespace col::group {
namespace {

// "coalesce of 3": part of what ranks compare, because NCCL needs the same groups on all of them. It lives forever.
std::string_view name_of_scope(std::size_t calls) {
  static std::mutex mutex;
  static auto* const names = new std::map<std::size_t, std::string>;
  const std::lock_guard lock(mutex);
  std::string& name = (*names)[calls];
  if (name.empty()) name = fmt::format("coalesce of {}", calls);
  return name;
}

}  // namespace

void Collectives::begin_scope() {
  const Use use(access_);
  core_.check_name("default");
  core_.collect(true);
}

PendingPtr Collectives::collect(const Call& call, const Options& options) {
  core_.check_named(options.group);
  Request request = request_of(call, options, core_.settings().order);
  if (!collected_.empty() && options.stream.handle != collected_.front().pending->stream.handle)
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("{}: the calls of one scope of coalesce() run in one stream, and this one names another than the "
                    "first; give both the same Options::stream",
                    to_string(call.collective)));
  Collected collected;
  collected.pending = starter_.prepare(nullptr, std::move(request), options, true);
  if (!collected.pending) return nullptr;
  const CollectiveRow& row = row_of(call.collective);
  const bool is_root = core_.rank() == options.root;
  if (row.has_input(is_root)) collected.read = call.in;
  const bool only_reads = call.collective == Collective::broadcast && is_root;
  if (row.has_output(is_root)) (only_reads ? collected.read : collected.written) = call.out;
  if (overlaps(collected.read, collected.written)) {  // in place: one of them is a part of the other
    if (collected.read.bytes() > collected.written.bytes()) collected.written = collected.read;
    collected.read = {};
  }
  collected.pending->is_collected = true;
  collected_.push_back(collected);
  return collected.pending;
}

PendingPtr Collectives::end_scope() {
  const Use use(access_);
  core_.collect(false);
  core_.check_name("default");
  if (collected_.empty()) return nullptr;
  try {
    check_apart(collected_);
    check_captures(collected_);
  } catch (const Error& error) {
    drop_collected(error);
    throw;
  }
  std::vector<PendingPtr> calls;
  for (Collected& one : std::exchange(collected_, {})) {
    one.pending->is_collected = false;
    calls.push_back(std::move(one.pending));
  }
  const PendingPtr all = flight_.acquire();
  all->name = "coalesce";
  all->collective = false;
  all->timeout = {};
  all->parts = calls;
  for (const PendingPtr& pending : calls) all->timeout = std::max(all->timeout, pending->timeout);
  try {
    starter_.begin_together(calls, name_of_scope(calls.size()));
    all->ends_on_device = std::ranges::all_of(calls, [](const auto& call) { return call->ends_on_device; });
    all->in_graph = calls.back()->in_graph;  // in one stream, so it is the end of all
    flight_.add(all);
    flight_.progress_all();
  } catch (...) {
    // Those that were in flight have their error. Others may have begun the rest.
    if (!core_.broken()) core_.break_with(core_.own_error(ErrorCode::aborted, "coalesce: the calls cannot be started"));
    calls.push_back(all);
    for (const PendingPtr& pending : calls) {
      if (pending->has_ended()) continue;
      pending->error = core_.broken();
      pending->end();
    }
    throw;
  }
  return all;
}

void Collectives::drop_collected(const Error& why) noexcept {
  for (const Collected& one : collected_) {
    one.pending->is_collected = false;
    one.pending->staging.reset();
    one.pending->error = why;
    one.pending->end();
  }
  collected_.clear();
  core_.collect(false);
}

void Collectives::cancel_scope() {
  const Use use(access_);
  drop_collected(core_.own_error(ErrorCode::aborted, "the scope of coalesce() was cancelled, and the call not made"));
}

// ---- Starting them together

void Starter::begin_together(std::span<const PendingPtr> calls, std::string_view part_of) {
  std::vector<PendingPtr> on_gpu;
  // Where calls are compared first, all of them have the timeout of one: else each that peers come late to would add
  // its own.
  std::optional<Deadline> limit;
  if (core_.settings().compare_first || calls.front()->request.is_captured)
    limit = Deadline::after(calls.front()->timeout);
  const Deadline* const until = limit ? &*limit : nullptr;
  for (const PendingPtr& pending : calls) {
    pending->form.part_of = part_of;
    pending->call = fingerprint(core_.token(), pending->request, pending->form);
    begin(*pending, false, until);
    if (!pending->decision->plan && lanes_.gpu_of(pending->channel) != nullptr)
      on_gpu.push_back(pending);
    else
      launch(pending);
  }
  if (!on_gpu.empty()) start_on_gpu(on_gpu, until);
}

void Starter::start_on_gpu(std::span<const PendingPtr> calls, const Deadline* until) {
  const Pending& first = *calls.front();
  LateDiagnosis diagnosis(core_.surroundings(), first);
  WaitContext wait = until != nullptr ? core_.waiting(*until, &diagnosis) : core_.waiting(first.timeout, &diagnosis);
  if (lanes_.hosted() != nullptr) wait.meanwhile([this] { flight_.progress_hosted(); });
  try {
    std::vector<const Request*> requests;
    for (const PendingPtr& pending : calls) {
      core_.pass_fault(pending->sequence);
      Flight::fetch(*pending, wait);
      requests.push_back(&pending->request);
    }
    DeviceOps& gpu = *lanes_.gpu_of(first.channel);
    const std::vector<Ticket> tickets = gpu.start_together(requests, wait);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i]->ticket = tickets[i];
      if (calls[i]->request.is_captured) calls[i]->in_graph = gpu.end_of(tickets[i], wait);
      flight_.add(calls[i]);
    }
  } catch (...) {
    core_.fail_with_current(diagnosis.get(), first.form.part_of);
  }
}

// ---- What a scope has to be like

bool Collectives::is_in_scope(ConstTensorView memory) const {
  return std::ranges::any_of(
      collected_, [&](const Collected& one) { return overlaps(memory, one.read) || overlaps(memory, one.written); });
}

// What a call was decided by must still hold: NCCL would put it in a graph behind our back, or not.
void Collectives::check_captures(const std::vector<Collected>& calls) const {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Pending& call = *calls[i].pending;
    const DeviceOps* const gpu = lanes_.gpu_of(call.channel);
    const bool is_captured = gpu != nullptr ? gpu->is_captured(call.stream)
                                            : call.staging != nullptr && call.staging->is_captured(call.stream);
    if (is_captured == call.request.is_captured) continue;
    throw core_.own_error(
        ErrorCode::invalid_argument,
        fmt::format("coalesce: the capture of the stream {} after call {} ({}) of the scope, so that none of its calls "
                    "is made; begin and end the capture outside of the scope, or the scope inside of the capture",
                    is_captured ? "began" : "ended", i + 1, call.name));
  }
}

// NCCL may run them beside one another.
void Collectives::check_apart(const std::vector<Collected>& calls) const {
  struct Stretch {
    const std::byte *begin, *end;
    bool is_written;
    std::size_t call;
  };
  std::vector<Stretch> stretches;
  const auto add = [&](ConstTensorView view, bool is_written, std::size_t call) {
    const auto* const begin = static_cast<const std::byte*>(view.data);
    if (!view.empty()) stretches.push_back({begin, begin + view.bytes(), is_written, call});
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    add(calls[i].read, false, i);
    add(calls[i].written, true, i);
  }
  std::ranges::sort(stretches, std::less<>{}, &Stretch::begin);
  const Stretch* furthest = nullptr;          // of those so far, the one with the last end
  const Stretch* furthest_written = nullptr;  // of those that are written
  const auto reaches = [](const Stretch* before, const Stretch& one) {
    return before != nullptr && std::less<>{}(one.begin, before->end);
  };
  for (const Stretch& one : stretches) {
    const Stretch* const before = one.is_written ? furthest : furthest_written;
    if (reaches(before, one))
      throw core_.own_error(
          ErrorCode::invalid_argument,
          fmt::format("coalesce: calls {} ({}) and {} ({}) of the scope have memory in common, and one of them writes "
                      "it; they run beside each other, so put them into two scopes",
                      std::min(before->call, one.call) + 1, calls[std::min(before->call, one.call)].pending->name,
                      std::max(before->call, one.call) + 1, calls[std::max(before->call, one.call)].pending->name));
    const auto extend = [&one](const Stretch*& last) {
      if (last == nullptr || std::less<>{}(last->end, one.end)) last = &one;
    };
    extend(furthest);
    if (one.is_written) extend(furthest_written);
  }
}

}  // namespace col::group
