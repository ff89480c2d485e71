// Tests say "promptly" of a call that something else than its deadline must end. No figure of milliseconds: a busy
// machine may stand still for seconds, so that the only question a test can ask is which of the two ended it.
#pragma once

#include <chrono>

namespace col::test {

// The deadline of a call in a test that says none, and the time in which a call that does not wait for it has ended.
inline constexpr std::chrono::seconds kDeadline{20};
inline constexpr std::chrono::seconds kPrompt{15};
inline constexpr double kPromptSeconds = std::chrono::duration<double>(kPrompt).count();
static_assert(kPrompt < kDeadline);

}  // namespace col::test
