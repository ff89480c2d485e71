// A backend that connects at once and whose operations never end by themselves: what ends them is the WaitContext. With
// it, the diagnosis of waits is tested without a network.
#pragma once

namespace col::test {

// Registers it as "stuck", once per process.
void register_stuck_backend();

}  // namespace col::test
