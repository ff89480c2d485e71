// How ranks come to share memory: without a name, by a file where that cannot be, and with a clean error otherwise.
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backend/factories.hpp"
#include "backend/shm/segment/layout.hpp"
#include "backend/shm/segment/tuning.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/shm/shm_ranks.hpp"
#include "unit/shm/small_folder.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;
using namespace col::shm_backend;

namespace {

// Every rank hears from every other one.
void meet(ShmChannel& channel, int rank, int size) {
  std::vector<std::int32_t> in(static_cast<std::size_t>(size), -1);
  const std::vector<std::int32_t> out = {rank};
  std::vector<Ticket> tickets;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    tickets.push_back(channel.post_recv(peer, 1, TensorView(&in[static_cast<std::size_t>(peer)], 1, DType::int32)));
    tickets.push_back(channel.post_send(peer, 1, out));
  }
  for (const Ticket ticket : tickets) wait_for(channel, ticket);
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) expect(in[static_cast<std::size_t>(peer)] == peer, "a word of every peer");
  }
}

// One process per rank, each with its own idea of where memory comes from.
void check_processes(const std::vector<Places>& places, const std::string& wanted) {
  const TempDir dir;
  const int size = static_cast<int>(places.size());
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto before = own_descriptors();
      const auto channel = connect({.rank = rank,
                                    .size = size,
                                    .store = make_file_store(dir.path()),
                                    .places = places[static_cast<std::size_t>(rank)]});
      expect(own_descriptors() == before, "no descriptor stays open");
      meet(*channel, rank, size);
    });
  }
  for (auto& rank : ranks) {
    const std::string words = rank.wait().text;
    INFO(words);
    if (wanted.empty()) CHECK(words == "");
    CHECK(words.find(wanted) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("shm connect: processes share memory that has no name", "[shm]") {
  const TempDir shared;
  const Places own = {.files = shared.path()};  // others make files in /dev/shm
  for (const int size : {1, 2, 5, 16}) check_processes(std::vector(static_cast<std::size_t>(size), own), "");
  CHECK(leftovers(shared.path()).empty());
}

TEST_CASE("shm connect: threads of one process share one mapping", "[shm]") {
  require_well(run_ranks(4, [](int rank, ShmChannel& channel) { meet(channel, rank, 4); }));
}

TEST_CASE("shm connect: where one rank cannot see the others' descriptors, all use a file, which is gone afterwards",
          "[shm]") {
  const TempDir shared;
  Places sees = {.files = shared.path()};
  Places blind = {.processes = shared / "nothing", .files = shared.path()};
  check_processes({sees, sees, blind}, "");
  CHECK(leftovers(shared.path()).empty());
  check_processes({Places{.use_memfd = false, .files = shared.path()}, sees}, "");
  CHECK(leftovers(shared.path()).empty());
}

TEST_CASE("shm connect: a descriptor that leads to something else is not taken for the group's memory", "[shm]") {
  const TempDir shared;
  Places sees = {.files = shared.path()};
  Places misled = {.processes = shared / "proc", .files = shared.path()};
  // As in another pid namespace, where the number means another process: its file is large enough, and no memory of
  // ours.
  const std::string big(Segment::bytes_for(2), 'x');
  const TempDir dir;
  RankProcess leader([&] {
    const auto channel = connect({.rank = 0, .size = 2, .store = make_file_store(dir.path()), .places = sees});
    meet(*channel, 0, 2);
  });
  RankProcess follower([&] {
    const auto store = make_file_store(dir.path());
    const std::string offer = store->wait_for("offer/0", 20s);
    const auto number = [&](const std::string& key) {
      const std::size_t at = offer.find("\"" + key + "\":") + key.size() + 3;
      return std::to_string(std::stoi(offer.substr(at)));
    };
    const std::string folder = misled.processes + "/" + number("pid") + "/fd";
    expect(std::system(("mkdir -p " + folder).c_str()) == 0, "mkdir");
    std::ofstream(folder + "/" + number("fd")) << big;
    const auto channel = connect({.rank = 1, .size = 2, .store = store, .places = misled});
    meet(*channel, 1, 2);
  });
  CHECK(leader.wait().text == "");
  CHECK(follower.wait().text == "");
  CHECK(leftovers(shared.path()).empty());
}

TEST_CASE("shm connect: when there is no way to share, every rank says so and nothing is left", "[shm]") {
  const TempDir shared;
  Places sees = {.files = shared.path()};
  const Places blind = {.processes = shared / "nothing", .files = shared.path()};
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    if (rank == 0) return void(connect({.rank = 0, .size = 2, .store = store, .places = blind}));
    WaitContext wait = wait_for();
    // Refuses both offers, as a rank in another mount namespace does.
    for (int round = 0; round < 2; ++round) {
      store->wait("offer/" + std::to_string(round), wait);
      store->set("answer/" + std::to_string(round) + "/1", R"({"no":"cannot open it"})");
    }
    const std::string last = store->wait("offer/2", wait);
    expect(last.find("cannot open it") != std::string::npos, last);
  });
  INFO(show(endings));
  CHECK(endings[0].code == ErrorCode::io);
  CHECK(endings[0].says("rank 1 cannot open it"));
  CHECK_FALSE(endings[1].code);
  CHECK(leftovers(shared.path()).empty());
  // Rank 0 cannot make the file; the other one is told.
  const std::string nowhere = shared / "missing";
  check_processes({Places{.use_memfd = false, .files = nowhere}, sees}, "cannot create a file to share in " + nowhere);
}

TEST_CASE("shm connect: ranks of two groups never share memory", "[shm]") {
  const auto store = make_memory_store();
  const auto endings = run_each(2, [&](int rank) {
    connect({.rank = rank, .size = 2, .store = store, .token = kToken + static_cast<std::uint64_t>(rank)});
  });
  INFO(show(endings));
  CHECK(endings[0].code == ErrorCode::mismatch);
  CHECK(endings[1].code == ErrorCode::mismatch);
}

TEST_CASE("shm connect: a rank that does not come is named, and no key stays when all came", "[shm]") {
  const auto store = make_memory_store();
  const Ending alone = ending_of([&] { connect({.rank = 0, .size = 3, .store = store}, 200ms); });
  CHECK(alone.code == ErrorCode::timeout);
  CHECK(alone.says("ranks 1, 2"));
  const Ending late = ending_of([&] { connect({.rank = 1, .size = 3, .store = store}, 20s); });
  INFO(late.text);
  CHECK(late.code == ErrorCode::timeout);  // rank 0's, at once
  CHECK(late.seconds < kPromptSeconds);
  const auto other = make_memory_store();
  const Ending follower = ending_of([&] { connect({.rank = 1, .size = 2, .store = other}, 200ms); });
  CHECK(follower.code == ErrorCode::timeout);
  CHECK(follower.rank == 0);

  const auto good = make_memory_store();
  require_well(run_each(3, [&](int rank) { connect({.rank = rank, .size = 3, .store = good}); }));
  CHECK(good->num_keys() == 0);
}

TEST_CASE("shm connect: a limit on file sizes is a resource error for all, not a signal", "[shm]") {
  const TempDir dir;
  std::vector<RankProcess> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto store = make_file_store(dir.path());
      const rlimit limit{64 << 10, 64 << 10};
      if (rank == 0) setrlimit(RLIMIT_FSIZE, &limit);
      const Ending ending = ending_of([&] { connect({.rank = rank, .size = 2, .store = store}); });
      expect(ending.code == ErrorCode::resource, ending.text);
      expect(ending.says("ulimit -f"), ending.text);
    });
  }
  for (auto& rank : ranks) CHECK(rank.wait().text == "");
}

TEST_CASE("shm connect: a full file system is a resource error, not a signal", "[shm]") {
  const TempDir mount_point;
  check_in_small_folder(mount_point.path(), 64 << 10, [&] {
    const Ending ending = ending_of([&] {
      connect({.rank = 0,
               .size = 2,
               .store = make_memory_store(),
               .places = {.use_memfd = false, .files = mount_point.path()}});
    });
    expect(ending.code == ErrorCode::resource, ending.text);
    expect(leftovers(mount_point.path()).empty(), "the file is gone");
  });
}

TEST_CASE("shm connect: a ring without memory for it is a resource error of the message, not a signal", "[shm]") {
  const TempDir mount_point;
  // Room for a group without its rings, and for a first page of each.
  constexpr int kRanks = 3;
  const std::size_t rings = kRanks * (kRanks - 1) * Segment::ring_bytes_for(kRanks);
  const std::size_t room = Segment::first_bytes_for(kRanks) - rings + kRanks * (kRanks - 1) * 4096 + (64 << 10);
  check_in_small_folder(mount_point.path(), room, [&] {
    const auto store = make_memory_store();
    shm_backend::LocalSegments local;
    const Tuner through_rings = [](const Segment& segment, int processors) {
      return decide(shape_of(segment, processors), {.copies = KernelCopies::off});
    };
    const auto endings = run_each(kRanks, [&](int rank) {
      const auto channel = connect({.rank = rank,
                                    .size = kRanks,
                                    .store = store,
                                    .places = {.use_memfd = false, .files = mount_point.path()},
                                    .local = &local,
                                    .tuner = through_rings});
      std::vector<std::int32_t> few(10, rank), many(1 << 18, rank), taken(few.size());
      WaitContext wait = wait_for(20s);
      const int next = (rank + 1) % kRanks, last = (rank + kRanks - 1) % kRanks;
      const Ticket sent = channel->post_send(next, 1, few), received = channel->post_recv(last, 1, taken);
      channel->wait(sent, wait);
      channel->wait(received, wait);
      expect(taken[9] == last, "few bytes arrive");
      const Ending ending = ending_of([&] {
        const Ticket sends = channel->post_send(next, 2, many), receives = channel->post_recv(last, 2, many);
        channel->wait(sends, wait);
        channel->wait(receives, wait);
      });
      expect(ending.code == ErrorCode::resource || ending.code == ErrorCode::aborted, ending.text);
      expect(ending.says("no room for the"), ending.text);
    });
    expect(all_well(endings), show(endings));
  });
}

TEST_CASE("shm connect: large slots without memory are a resource error of every rank, threads of one process too",
          "[shm]") {
  const TempDir mount_point;
  // Room for what one rank wants more, but not for two.
  const std::size_t more = Area::slot_bytes_for(2) - Area::small_slot_bytes_for(2);
  const std::size_t rings = 2 * Segment::ring_bytes_for(2);
  const std::size_t room = Segment::first_bytes_for(2) - rings + kSlots * more + kSlots * more / 2;
  const Tuner large = [](const Segment& segment, int processors) {
    Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::off});
    tuning.slot = segment.area().slot_bytes();
    return tuning;
  };
  check_in_small_folder(mount_point.path(), room, [&] {
    const auto store = make_memory_store();
    LocalSegments local;
    const auto endings = run_each(2, [&](int rank) {
      const auto channel = connect({.rank = rank,
                                    .size = 2,
                                    .store = store,
                                    .places = {.use_memfd = false, .files = mount_point.path()},
                                    .local = &local,
                                    .tuner = large});
      std::vector<std::int32_t> data(kSlots * more, 1);
      Request request;
      request.collective = Collective::allreduce;
      request.in = request.out = TensorView(data);
      request.fingerprint = 1;
      const Ending ending = ending_of([&] { run_native(*channel, request); });
      expect(ending.code == ErrorCode::resource || ending.code == ErrorCode::aborted, ending.text);
      expect(ending.says("no room for the"), ending.text);
    });
    expect(all_well(endings), show(endings));
  });
}

TEST_CASE("shm connect: without memory to wander through, calls go on as before", "[shm]") {
  const TempDir mount_point;
  // Room for the slots that calls need, and for less than they would like.
  const std::size_t small = Area::small_slot_bytes_for(2), more = Area::slot_bytes_for(2) - small;
  const std::size_t room = Segment::first_bytes_for(2) - 2 * Segment::ring_bytes_for(2) + kSlots * more;
  const Tuner with_small_slots = [&](const Segment& segment, int processors) {
    Tuning tuning = decide(shape_of(segment, processors), {.copies = KernelCopies::off});
    tuning.crowd = 1;
    tuning.slot = small;
    tuning.wide_slot = segment.area().slot_bytes();
    return tuning;
  };
  check_in_small_folder(mount_point.path(), room, [&] {
    const auto store = make_memory_store();
    LocalSegments local;
    const auto endings = run_each(2, [&](int rank) {
      const auto channel = connect({.rank = rank,
                                    .size = 2,
                                    .store = store,
                                    .places = {.use_memfd = false, .files = mount_point.path()},
                                    .local = &local,
                                    .tuner = with_small_slots});
      for (int call = 0; call < 100; ++call) {
        std::vector<std::int32_t> data(1 << 16, call + rank);
        Request request;
        request.collective = Collective::allreduce;
        request.in = request.out = TensorView(data);
        request.fingerprint = 1;
        run_native(*channel, request);
        expect(data.front() == 2 * call + 1 && data.back() == 2 * call + 1, "the sum");
      }
    });
    expect(all_well(endings), show(endings));
  });
}

TEST_CASE("shm connect: the factory says what it does, and who is elsewhere", "[shm]") {
  const auto factory = shm_backend::make_factory();
  CHECK(factory->name() == "shm");
  CHECK_FALSE(factory->unavailable_reason().has_value());
  ConnectRequest request = request_of({.rank = 1, .size = 2, .store = make_memory_store()});
  CHECK(factory->describe(request).find(fmt::format("rings of {} KiB", Segment::ring_bytes_for(2) >> 10)) !=
        std::string::npos);
  const std::vector<PeerInfo> peers = {
      {.rank = 0, .global_rank = 0, .pid = 1, .hostname = "far", .boot_id = "a", .network_namespace = "n"},
      {.rank = 1, .global_rank = 1, .pid = 1, .hostname = "near", .boot_id = "b", .network_namespace = "n"}};
  request.peers = peers;
  request.same_host = false;
  const Ending ending = ending_of([&] {
    WaitContext wait(Deadline::after(1s));
    factory->connect(request, wait);
  });
  CHECK(ending.code == ErrorCode::unavailable);
  CHECK(ending.says("rank 0"));
  CHECK(ending.says("far"));
}

TEST_CASE("shm segment: rings are powers of two, and they and all slots fit into a bounded piece of memory", "[shm]") {
  std::size_t before = SIZE_MAX;
  for (int size = 1; size <= 300; ++size) {
    const std::size_t ring = Segment::ring_bytes_for(size);
    REQUIRE((ring & (ring - 1)) == 0);
    REQUIRE(ring >= 4096);
    REQUIRE(ring <= before);
    before = ring;
    const auto pairs = static_cast<std::size_t>(size) * static_cast<std::size_t>(size - 1);
    const std::size_t slot = shm_backend::Area::small_slot_bytes_for(size);
    REQUIRE(slot % 4096 == 0);
    const std::size_t ranks = static_cast<std::size_t>(size) * (5 * 4096 + shm_backend::kSlots * slot);
    const std::size_t rings = (std::size_t{33} << 20) + pairs * (4096 + sizeof(shm_backend::RingIndices));
    REQUIRE(Segment::first_bytes_for(size) <= rings + ranks);
    REQUIRE(shm_backend::kSlots * slot * static_cast<std::size_t>(size) <= (std::size_t{32} << 20));
  }
}
