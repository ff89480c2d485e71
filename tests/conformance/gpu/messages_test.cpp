// Messages between GPUs that no call of the host waits for.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/gpu/gpu_ranks.hpp"
#include "conformance/gpu/in_stream.hpp"

namespace col::test {
namespace {

using namespace std::chrono_literals;

using nccl_backend::GpuStream;
using Array = GpuArray<std::int32_t>;
using Values = std::vector<std::int32_t>;

constexpr std::size_t kMessageCount = 50;

// As pipeline stages in PyTorch make them: `work.wait()` is a wait of the stream there.
GPU_TEST_CASE("gpu messages: what only streams wait for ends, with a message beside it that nobody waits for so far",
              "[gpu]") {
  constexpr int kMessages = 20;
  const Setting progress("COL_PROGRESS", "thread");
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const GpuStream reader(cuda());
    const int peer = 1 - gpu;
    const Array own(gpu, Values(kMessageCount, gpu)), theirs(gpu, Values(kMessageCount, -1)),
        late(gpu, Values(kMessageCount, -1));
    group.sendrecv(own, peer, theirs, peer);  // connects
    std::vector<Work> works;
    for (int i = 0; i < kMessages; ++i) {
      Work received = group.irecv(theirs, peer), sent = group.isend(own, peer);
      received.wait(Stream{reader.get()});
      sent.wait(Stream{reader.get()});
      works.push_back(std::move(received));
      works.push_back(std::move(sent));
    }
    Work held = group.irecv(late, peer);  // held back until somebody waits
    for (const Work& work : works) expect_soon("a message does not end", [&] { return work.has_ended(); });
    expect(!held.has_ended(), "nobody has sent it");
    Work sent = group.isend(own, peer);
    held.wait();
    sent.wait();
    expect(late.values() == Values(kMessageCount, peer), "the last message");
  }));
}

GPU_TEST_CASE("gpu messages: a function that is to run after a message hands it over", "[gpu]") {
  check_good(run_gpu_ranks(2, [](Group& group, int gpu) {
    const int peer = 1 - gpu;
    const Array own(gpu, Values(kMessageCount, gpu)), theirs(gpu, Values(kMessageCount, -1));
    group.sendrecv(own, peer, theirs, peer);
    group.barrier();
    const Options brief{.timeout = 5s};
    std::optional<Error> told;
    bool has_run = false;
    const auto note = [&](const std::optional<Error>& error) {
      told = error;
      has_run = true;
    };
    if (gpu == 0) {
      const Array data(gpu, Values(kMessageCount, -1));
      group.irecv(data, peer, brief).then(note).wait();
      expect(has_run && !told, told ? told->what() : "it has not run");
      expect(data.values() == Values(kMessageCount, 1), "what was sent");
    } else {
      std::this_thread::sleep_for(200ms);  // the subject of the test: nobody has sent it when the function is given
      group.send(own, peer);
    }
    // Both at once: what has been posted by then goes together.
    Work received = group.irecv(theirs, peer, brief), sent = group.isend(own, peer, brief);
    Work after = received.then(note);
    after.wait();
    sent.wait();
    expect(!told, told ? told->what() : "");
    expect(theirs.values() == Values(kMessageCount, peer), "the exchange");
  }));
}

}  // namespace
}  // namespace col::test
