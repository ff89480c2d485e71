#include "simulation/network.hpp"

#include <chrono>

namespace col::test {
namespace {

// The time that the kernel of a killed process needs until its peers know.
constexpr Duration kEndIsSeenAfter = std::chrono::microseconds(300);

}  // namespace

Duration SimulatedNetwork::delay() {
  Random& random = simulator_.choices();
  const Duration longest = random.one_in(200) ? 10 * longest_ : longest_;
  return Duration(static_cast<Duration::rep>(random.skewed_below(static_cast<std::uint64_t>(longest.count()))));
}

Network::Time SimulatedNetwork::arrival(std::int64_t from, std::int64_t to) {
  simulator_.count_progress();
  if (truth_.is_cut(Simulator::process_of(from), Simulator::process_of(to))) return Time::max();
  return simulator_.now() + delay();
}

bool SimulatedNetwork::is_lost(std::int64_t at, std::int64_t peer) {
  const int self = Simulator::process_of(at), other = Simulator::process_of(peer);
  if (truth_.is_reset(self, other)) return true;
  const Time ended = truth_.ended_at(other);
  return ended != Time::max() && simulator_.now() - ended > kEndIsSeenAfter && !truth_.is_cut(self, other);
}

}  // namespace col::test
