// Channels of a simulated job that can do more than they must, as those of shared memory and of Gloo: the parts of
// backend/capabilities.hpp over a channel of tests/support/memory_channel.hpp, and collectives of their own.
#pragma once

#include <functional>
#include <string_view>

#include "support/memory_channel.hpp"

namespace col::test {

// The backend of a job's groups: messages that end only when they are received, and nothing else; or those that end at
// once, with small messages and collectives of its own. Then groups of some ranks either grow in common memory, as in
// shm, or are drafted, as in hosts.
enum class ChannelKind { plain, planting, drafting };

// The name of the backend of that kind, and of the algorithm of its own collectives.
std::string_view backend_of(ChannelKind kind);
inline constexpr std::string_view kOwnAlgorithm = "simulated";

// Registers all of them, once per process. `network`: of this moment.
void register_simulated_backends(const std::function<Network*()>& network);

}  // namespace col::test
