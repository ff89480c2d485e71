#include "player.hpp"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace programs {
namespace {

constexpr std::size_t kMostSteps = 60;  // that a failure shows
constexpr std::chrono::seconds kPatience{30};

}  // namespace

void Player::play(const std::vector<Event>& program) {
  const int eagerness = 5 + choices_.below(60);  // percent
  for (const Event& event : program) {
    const col::Group& group = places_[event.group].group;
    if (!group || !event.takes_part(group.rank())) continue;
    begin(event);
    while (!open_.empty() && choices_.chance(eagerness)) end_one();
    if (choices_.chance(3)) dawdle();
  }
  while (!open_.empty()) end_one();
}

void Player::begin(const Event& event) {
  steps_.push_back("begin " + std::to_string(event.number));
  try {
    open_.push_back(Part::begin(event, places_[event.group], choices_));
  } catch (const col::Error& error) {
    fail(event, error.what());
  }
  Part& part = *open_.back();
  const bool is_open = !part.works().empty();
  if (is_open && !event.is_dropped) return;
  if (is_open) {
    part.works().clear();
    dropped_.push_back(std::move(open_.back()));
  } else {
    end(part);
    if (event.kind == Kind::barrier) check_dropped(event.group);
  }
  open_.pop_back();
}

// A blocking barrier has ended what this rank had in flight in its group.
void Player::check_dropped(std::size_t group) {
  std::erase_if(dropped_, [&](const std::unique_ptr<Part>& part) {
    if (part->event().group != group) return false;
    check(*part);
    return true;
  });
}

void Player::end_one() {
  std::swap(open_[choices_.below(open_.size())], open_.back());
  end(*open_.back());
  open_.pop_back();
}

void Player::end(Part& part) {
  steps_.push_back("end " + std::to_string(part.event().number));
  try {
    std::vector<col::Work*> works;
    for (col::Work& work : part.works()) works.push_back(&work);
    choices_.shuffle(works);
    for (col::Work* work : works) end(*work);
  } catch (const col::Error& error) {
    fail(part.event(), error.what());
  }
  check(part);
}

void Player::check(const Part& part) const {
  const std::string problem = part.problem();
  if (!problem.empty()) fail(part.event(), problem);
}

// Another thread may end what this one has begun, as long as they take turns.
void Player::end_in_another_thread(col::Work& work) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      work.wait();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
}

// The ways to come to the end of a call. Who asks for long in vain waits instead, which ends with an error.
void Player::end(col::Work& work) {
  if (choices_.chance(3)) return end_in_another_thread(work);
  const int way = choices_.below(4);
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  while (way < 2 && std::chrono::steady_clock::now() < latest) {
    if (way == 0 ? work.test() : work.wait_for(std::chrono::microseconds(200))) return;
    if (way == 0) std::this_thread::yield();
  }
  work.wait();
}

// A rank that is late.
void Player::dawdle() {
  std::this_thread::sleep_for(std::chrono::microseconds(choices_.below(3'000)));
}

void Player::fail(const Event& event, const std::string& why) const {
  std::string text = why + "\n  in event " + event.text() + "\n  as rank " +
                     std::to_string(places_[event.group].group.rank()) + "; still open:";
  for (const auto& part : open_) text += "\n    " + part->event().text();
  text += "\n  it did:";
  const std::size_t first = steps_.size() > kMostSteps ? steps_.size() - kMostSteps : 0;
  for (std::size_t i = first; i < steps_.size(); ++i) text += (i == first ? " " : ", ") + steps_[i];
  throw Failure(text);
}

}  // namespace programs
