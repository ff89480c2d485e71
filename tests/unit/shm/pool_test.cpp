// Room for the segments of groups that are made from others: who gets which, and what becomes of the memory.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/shm/segment/pool.hpp"
#include "backend/shm/segment/segment.hpp"
#include "backend/shm/segment/shared_file.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"
#include "unit/shm/small_folder.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using shm_backend::Pool;
using shm_backend::Segment;

namespace {

constexpr std::size_t kPage = 4096, kLargest = std::size_t{1} << 20;

// A pool for groups of up to kLargest bytes.
class Memory {
 public:
  Memory() {
    const auto fd = shm_backend::make_memfd();
    const auto problem = shm_backend::make_file(fd.get(), bytes_, 0);
    REQUIRE_FALSE(problem.has_value());
    void* const address = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    REQUIRE(address != MAP_FAILED);
    base_ = static_cast<std::byte*>(address);
  }
  ~Memory() { ::munmap(base_, bytes_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Pool pool() const { return {base_, bytes_}; }
  std::size_t resident() const {
    std::vector<unsigned char> pages(bytes_ / kPage);
    REQUIRE(::mincore(base_, bytes_, pages.data()) == 0);
    return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
  }

 private:
  const std::size_t bytes_ = Pool::bytes_for(kLargest);
  std::byte* base_ = nullptr;
};

bool all_equal(const std::byte* begin, std::size_t bytes, std::byte value) {
  return bytes == 0 || (*begin == value && std::memcmp(begin, begin + 1, bytes - 1) == 0);
}

struct Room {
  std::size_t bytes, kept;
  std::byte mark;
};

}  // namespace

TEST_CASE("pool: rooms do not overlap, begin as zeros, and are found again when they are given back", "[shm]") {
  const Memory memory;
  const Pool pool = memory.pool();
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::map<std::size_t, Room> rooms;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    if (random() % 5 < 3) {
      const std::size_t bytes = (1 + random() % (kLargest / kPage)) * kPage;
      const std::size_t kept = std::min<std::size_t>(bytes, (1 + random() % 8) * kPage);
      const auto place = pool.take(bytes, kept);
      if (!place) {
        ++refused;
        continue;
      }
      REQUIRE(pool.holds(*place, bytes));
      const auto after = rooms.lower_bound(*place);
      if (after != rooms.end()) REQUIRE(*place + bytes <= after->first);
      if (after != rooms.begin()) REQUIRE(std::prev(after)->first + std::prev(after)->second.bytes <= *place);
      REQUIRE(all_equal(pool.at(*place) + kept, bytes - kept, std::byte{0}));
      const auto mark = static_cast<std::byte>(1 + random() % 255);
      std::memset(pool.at(*place), static_cast<int>(mark), bytes);
      rooms.emplace(*place, Room{bytes, kept, mark});
    } else if (!rooms.empty()) {
      const auto one = std::next(rooms.begin(), static_cast<std::ptrdiff_t>(random() % rooms.size()));
      REQUIRE(all_equal(pool.at(one->first), one->second.bytes, one->second.mark));
      pool.give_back(one->first, one->second.bytes, one->second.kept, true);
      rooms.erase(one);
    }
  }
  CHECK(refused > 0);
  for (const auto& [place, room] : rooms) pool.give_back(place, room.bytes, room.kept, true);
  // Nothing is lost: as many of the largest find room as in a new one.
  std::vector<std::size_t> places;
  while (const auto place = pool.take(kLargest, kPage)) places.push_back(*place);
  CHECK(places.size() >= 16);
  for (const std::size_t place : places) pool.give_back(place, kLargest, kPage, false);
  // The state, and at most eight pages where each room began.
  CHECK(memory.resident() <= 1 + places.size() * 8);
  CHECK_FALSE(Pool().take(1, 1).has_value());
}

TEST_CASE("pool: threads that take at once never get the same", "[shm]") {
  constexpr int kThreads = 4, kRounds = 500;
  const Memory memory;
  const Pool pool = memory.pool();
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int me = 1; me <= kThreads; ++me) {
      threads.emplace_back([&, me] {
        std::mt19937 random(static_cast<unsigned>(me));
        for (int round = 0; round < kRounds; ++round) {
          const std::size_t bytes = (1 + random() % 64) * 8 * kPage;
          const auto place = pool.take(bytes, kPage);
          if (!place) continue;
          std::byte* const begin = pool.at(*place);
          for (std::size_t at = 0; at < bytes; at += kPage) {
            if (at > 0 && begin[at] != std::byte{0}) ++wrong;
            begin[at] = static_cast<std::byte>(me);
          }
          std::this_thread::yield();
          for (std::size_t at = 0; at < bytes; at += kPage) wrong += begin[at] == static_cast<std::byte>(me) ? 0 : 1;
          pool.give_back(*place, bytes, kPage, true);
        }
      });
    }
  }
  CHECK(wrong == 0);
}

namespace {

ConnectRequest request_for(int rank, int size, std::uint64_t token) {
  ConnectRequest request;
  request.group = "child";
  request.rank = rank;
  request.size = size;
  request.token = token;
  return request;
}

// The channel of a group of the same ranks, made by both functions of the extension.
std::unique_ptr<Channel> dup(ShmChannel& channel, int rank, int size, std::uint64_t token) {
  std::uint64_t place = 0;
  std::unique_ptr<Channel> made;
  if (rank == 0) {
    auto reserved = channel.reserve(request_for(rank, size, token));
    expect(reserved.has_value(), "there is room");
    place = reserved->place;
    made = std::move(reserved->channel);
    for (int peer = 1; peer < size; ++peer) send(channel, peer, token, ConstTensorView(&place, 1, DType::uint64));
  } else {
    recv(channel, 0, token, TensorView(&place, 1, DType::uint64));
    made = channel.open(place, request_for(rank, size, token));
  }
  return made;
}

// A sum, short and long, and a message from each to the next.
void use(Channel& channel, int rank, int size) {
  for (const std::size_t count : {1, 25, 27, 3000, 300000}) {
    std::vector<std::int32_t> in(count, rank + 1), out(count), got(count);
    Request request;
    request.collective = Collective::allreduce;
    request.in = in;
    request.out = out;
    request.fingerprint = count;
    run_native(channel, request);
    expect(out.front() == size * (size + 1) / 2 && out.back() == out.front(), fmt::format("sum of {}", count));
    const Ticket receiving = channel.post_recv((rank + size - 1) % size, count, got);
    send(channel, (rank + 1) % size, count, in);
    wait_for(channel, receiving);
    expect(got.back() == (rank + size - 1) % size + 1, fmt::format("message of {}", count));
  }
}

}  // namespace

TEST_CASE("pool: channels in it carry what others carry, and outlive those that they were made from", "[shm]") {
  for (const int size : {2, 5}) {
    const TempDir dir;
    std::vector<RankProcess> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        auto root = connect({.rank = rank, .size = size, .store = make_file_store(dir.path())});
        auto child = dup(*root, rank, size, 1);
        use(*child, rank, size);
        auto grandchild = dup(dynamic_cast<ShmChannel&>(*child), rank, size, 2);
        root.reset();
        use(*grandchild, rank, size);
        child.reset();
        use(*grandchild, rank, size);
      });
    }
    for (auto& rank : ranks) CHECK(rank.wait().text == "");
    require_well(run_ranks(size, [size](int rank, ShmChannel& root) {
      for (std::uint64_t round = 0; round < 30; ++round) {
        const auto child = dup(root, rank, size, round);
        use(*child, rank, size);
      }
    }));
  }
}

TEST_CASE("pool: what is not there, or of another group, is refused", "[shm]") {
  require_well(run_ranks(2, [](int rank, ShmChannel& channel) {
    if (rank != 0) return;
    const auto is_refused = [&](std::uint64_t place, int size, std::uint64_t token) {
      const Ending ending = ending_of([&] { channel.open(place, request_for(1, size, token)); });
      expect(ending.code == ErrorCode::internal, ending.text);
    };
    const auto reserved = channel.reserve(request_for(0, 2, 7));
    expect(reserved.has_value(), "there is room");
    is_refused(reserved->place, 2, 8);
    is_refused(reserved->place, 1, 7);
    is_refused(reserved->place + kPage, 2, 7);
    is_refused(0, 2, 7);
    is_refused(~std::uint64_t{0}, 2, 7);
    // Until all is taken.
    std::vector<std::unique_ptr<Channel>> all;
    while (auto another = channel.reserve(request_for(0, 2, 9))) {
      all.push_back(std::move(another->channel));
      expect(all.size() < 10000, "it is full some day");
    }
    expect(all.size() >= 15, fmt::format("{} groups", all.size()));
  }));
}

TEST_CASE("pool: data without memory for it is a resource error that names the rank, not a signal", "[shm]") {
  const TempDir mount_point;
  // Room for the first group without its rings, which are not used, and for a second that moves few bytes.
  const std::size_t room = Segment::first_bytes_for(2) - 2 * Segment::ring_bytes_for(2) + (128 << 10);
  check_in_small_folder(mount_point.path(), room, [&] {
    const auto store = make_memory_store();
    shm_backend::LocalSegments local;
    const auto endings = run_each(2, [&](int rank) {
      const auto root = connect({.rank = rank,
                                 .size = 2,
                                 .store = store,
                                 .places = {.use_memfd = false, .files = mount_point.path()},
                                 .local = &local});
      const auto child = dup(*root, rank, 2, 1);
      Request request;
      request.collective = Collective::barrier;
      request.fingerprint = 1;
      run_native(*child, request);
      std::vector<std::int32_t> data(100000, 1);
      request.collective = Collective::allreduce;
      request.in = data;
      request.out = data;
      request.fingerprint = 2;
      const Ending ending = ending_of([&] { run_native(*child, request); });
      expect(ending.code == ErrorCode::resource || ending.code == ErrorCode::aborted, ending.text);
      expect(ending.says("no room for the"), ending.text);
      // The other one is as it was.
      std::vector<std::int32_t> one(3, rank);
      request.in = one;
      request.out = one;
      request.fingerprint = 3;
      run_native(*root, request);
      expect(one[2] == 1, "the first group goes on");
    });
    expect(all_well(endings), show(endings));
  });
}

TEST_CASE("pool: the memory of a group that was used goes back to the machine", "[shm]") {
  const auto fd = shm_backend::make_memfd();
  const auto root = Segment::create(fd.get(), 2, 1);
  const auto taken = [&] {
    struct stat status {};
    REQUIRE(::fstat(fd.get(), &status) == 0);
    return static_cast<std::size_t>(status.st_blocks) * 512;
  };
  std::size_t before = 0;
  for (int round = 0; round < 5; ++round) {
    auto first = Segment::reserve(root, 2, 5);
    REQUIRE(first != nullptr);
    auto second = Segment::open(root, first->place_in_pool(), 2, 5);
    if (round == 0) before = taken();
    CHECK(first->claim_slots(0, 0, first->area().slot_bytes()) == first->area().slot_bytes());
    CHECK(second->claim_ring(1, 0, 0, 5000) >= 5000);
    CHECK(taken() >= before + shm_backend::kSlots * first->area().slot_bytes());
    first.reset();
    CHECK(taken() > before);  // the other one has it still
    second.reset();
    CHECK(taken() == before);
  }
}
