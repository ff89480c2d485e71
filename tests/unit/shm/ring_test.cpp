// The ring alone: both of its ends in one thread, and in two.
#include <atomic>
#include <cstring>
#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "backend/shm/ring.hpp"
#include "support/catch.hpp"

using namespace col::shm_backend;

namespace {

constexpr std::size_t kRingBytes = 4096;

struct Ring {
  RingIndices indices{};
  alignas(64) std::byte bytes[kRingBytes] = {};
  Producer producer{indices, bytes, kRingBytes};
  Consumer consumer{indices, bytes, kRingBytes};
};

std::vector<unsigned char> payload_of(std::uint64_t number, std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(number * 31 + i);
  return data;
}

}  // namespace

TEST_CASE("shm ring: frames of random lengths come out as they went in, around the end and back", "[shm]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  Ring ring;
  std::deque<std::vector<unsigned char>> inside;
  std::uint64_t number = 0, refused = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t bytes = random() % 2 == 0 ? random() % 1000 : random() % 70;
    if (ring.producer.fits(bytes)) {
      inside.push_back(payload_of(++number, bytes));
      ring.producer.put(
          {.kind = FrameKind::eager, .payload_bytes = static_cast<std::uint32_t>(bytes), .slot = 7, .id = number},
          inside.back().data());
      if (random() % 2 == 0) ring.producer.clear_ahead(kRingBytes);
    } else {
      ++refused;
    }
    for (std::size_t n = random() % 3; n > 0 && ring.consumer.is_there(); --n) {
      const FrameHeader header = ring.consumer.front();
      REQUIRE(header.kind == FrameKind::eager);
      REQUIRE(header.slot == 7);
      REQUIRE(header.payload_bytes == inside.front().size());
      std::vector<unsigned char> out(header.payload_bytes, 0);
      ring.consumer.read(out.data(), out.size());
      REQUIRE(out == inside.front());
      inside.pop_front();
      ring.consumer.pop(header);
      if (random() % 2 == 0) ring.consumer.release();
    }
    REQUIRE(ring.consumer.is_there() == !inside.empty());
  }
  CHECK(refused > 0);  // it was full at times
}

TEST_CASE("shm ring: what was read is the producer's again only after the release", "[shm]") {
  Ring ring;
  constexpr std::size_t kPayload = kRingBytes - 2 * sizeof(FrameHeader);  // and the word after it
  const auto data = payload_of(1, kPayload);
  REQUIRE(ring.producer.fits(kPayload));
  CHECK_FALSE(ring.producer.fits(kPayload + 1));
  ring.producer.put({.kind = FrameKind::data, .payload_bytes = kPayload}, data.data());
  CHECK_FALSE(ring.producer.fits(0));
  REQUIRE(ring.consumer.is_there());
  ring.consumer.pop(ring.consumer.front());
  CHECK_FALSE(ring.consumer.is_there());
  CHECK_FALSE(ring.producer.fits(0));
  ring.consumer.release();
  CHECK(ring.producer.fits(kPayload));
}

TEST_CASE("shm ring: two threads, one million bytes", "[shm]") {
  constexpr std::uint64_t kFrames = 10'000;
  Ring ring;
  std::atomic<bool> wrong{false};
  std::thread reader([&] {
    for (std::uint64_t number = 0; number < kFrames;) {
      if (!ring.consumer.is_there()) {
        std::this_thread::yield();
        continue;
      }
      const FrameHeader header = ring.consumer.front();
      std::vector<unsigned char> out(header.payload_bytes);
      ring.consumer.read(out.data(), out.size());
      if (header.id != number || out != payload_of(number, number % 200)) wrong = true;
      ring.consumer.pop(header);
      ring.consumer.release();
      ++number;
    }
  });
  for (std::uint64_t number = 0; number < kFrames;) {
    const auto data = payload_of(number, number % 200);
    if (!ring.producer.fits(data.size())) {
      std::this_thread::yield();
      continue;
    }
    ring.producer.put({.kind = FrameKind::data, .payload_bytes = static_cast<std::uint32_t>(data.size()), .id = number},
                      data.data());
    if (number % 3 != 0) ring.producer.clear_ahead(kRingBytes);
    ++number;
  }
  reader.join();
  CHECK_FALSE(wrong);
}
