#include "player.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace programs {
namespace {

constexpr std::size_t kMostSteps = 60;  // that a failure shows
constexpr std::chrono::seconds kPatience{30};

}  // namespace

void Player::play(const std::vector<Event>& program) {
  for (const Event& event : program) {
    const col::Group& group = groups_[event.group];
    if (!group || !event.takes_part(group.rank())) continue;
    begin(event);
    while (!open_.empty() && choices_.chance(30)) end_one();
    if (choices_.chance(3)) dawdle();
  }
  while (!open_.empty()) end_one();
}

void Player::begin(const Event& event) {
  steps_.push_back("begin " + std::to_string(event.number));
  try {
    open_.push_back(Part::begin(event, groups_[event.group], choices_));
  } catch (const col::Error& error) {
    fail(event, error.what());
  }
  if (!open_.back()->works().empty()) return;
  end(*open_.back());
  open_.pop_back();
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
  const std::string problem = part.problem();
  if (!problem.empty()) fail(part.event(), problem);
}

// The ways to come to the end of a call. Who asks for long in vain waits instead, which ends with an error.
void Player::end(col::Work& work) {
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
                     std::to_string(groups_[event.group].rank()) + "; still open:";
  for (const auto& part : open_) text += "\n    " + part->event().text();
  text += "\n  it did:";
  const std::size_t first = steps_.size() > kMostSteps ? steps_.size() - kMostSteps : 0;
  for (std::size_t i = first; i < steps_.size(); ++i) text += (i == first ? " " : ", ") + steps_[i];
  throw Failure(text);
}

}  // namespace programs
