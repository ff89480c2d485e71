// The pauses of who polls a GPU.
#include <chrono>

#include "backend/nccl/device.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using col::Duration;
using col::nccl_backend::PollPause;

// As found on a GPU: a wait of 5 ms lasted 6, because the pauses had grown to 1 ms by then.
TEST_CASE("nccl: no pause makes a wait longer by more than a thirtieth", "[nccl]") {
  for (const Duration waited : {1ms, 3ms, 5ms, 10ms, 20ms, 1000ms}) {
    CHECK(PollPause::after(waited) <= waited / 30);
    CHECK(PollPause::after(waited) >= 20us);
  }
  CHECK(PollPause::after(0ms) == 20us);
  CHECK(PollPause::after(1h) == 1ms);
}
