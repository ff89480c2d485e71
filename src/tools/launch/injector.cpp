#include "launch/injector.hpp"

#include <csignal>

namespace col::launch {

Injector::Injector(const std::vector<Injection>& injections, int first_rank, int count) {
  for (const Injection& injection : injections) {
    if (injection.rank >= first_rank && injection.rank - first_rank < count) planned_.push_back({injection});
  }
}

void Injector::on_started(int rank, Time now) {
  for (Planned& planned : planned_) {
    if (planned.injection.rank == rank) planned.at = now + planned.injection.at;
  }
}

void Injector::on_ended(int rank) {
  for (Planned& planned : planned_) {
    if (planned.injection.rank == rank) planned.at.reset();
  }
}

// Does what is due of one injection and sets the time of what comes next.
void Injector::advance(Planned& planned, std::vector<Act>& acts) {
  const Injection& injection = planned.injection;
  const Time at = *planned.at;
  planned.at.reset();
  if (injection.kind == Injection::Kind::kill) {
    acts.push_back({injection.rank, SIGKILL});
    return;
  }
  planned.stopped = !planned.stopped;
  const bool is_slow = injection.kind == Injection::Kind::slow;
  acts.push_back({injection.rank, planned.stopped ? SIGSTOP : SIGCONT, !is_slow || !planned.began});
  planned.began = true;
  if (injection.kind == Injection::Kind::stop) {
    if (planned.stopped && injection.duration > Milliseconds::zero()) planned.at = at + injection.duration;
    return;
  }
  const auto runs = std::chrono::duration_cast<std::chrono::microseconds>(kPeriod / injection.factor);
  planned.at = at + (planned.stopped ? kPeriod - runs : runs);
}

std::vector<Injector::Act> Injector::due(Time now) {
  std::vector<Act> acts;
  for (Planned& planned : planned_) {
    if (!planned.at || now < *planned.at) continue;
    // A launcher that was late must not make up for it by acts in quick succession.
    if (now - *planned.at > kPeriod) planned.at = now;
    advance(planned, acts);
  }
  return acts;
}

std::optional<Injector::Time> Injector::deadline() const {
  std::optional<Time> first;
  for (const Planned& planned : planned_) {
    if (planned.at && (!first || *planned.at < *first)) first = planned.at;
  }
  return first;
}

}  // namespace col::launch
