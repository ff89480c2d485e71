// How waits in a group over hosts end when something is wrong.
#include <chrono>
#include <memory>
#include <vector>

#include "conformance/hosts/host_ranks.hpp"
#include "support/temp_dir.hpp"

using namespace col;
using namespace col::test;
using namespace std::chrono_literals;

namespace {

const Hosts kTwoOfTwo{0, 0, 1, 1};

// A rank in a process of its own, which can be killed.
RankProcess start(const TempDir& dir, int rank, const std::function<void(Channel& channel, Store& store)>& body) {
  return RankProcess([&dir, rank, body] {
    const auto store = make_file_store(dir.path());
    const auto channel = connect(kTwoOfTwo, rank, make_prefix_store(store, "mesh"));
    body(*channel, *store);
  });
}

void stay(Channel& /*channel*/, Store& store) {
  store.wait_for("never", 20s);
}

}  // namespace

TEST_CASE("hosts ends: an abort by another thread ends every kind of wait at once, with its cause", "[hosts]") {
  // Of rank 0: for a neighbour, for a far rank, for any, and for a neighbour behind one for any.
  for (const int way : {0, 1, 2, 3}) {
    const auto endings = run_ranks(kTwoOfTwo, [way](HostRank& self) {
      if (self.rank != 0) return;
      Data data(3), first(3);
      if (way == 3) self.channel.post_recv(kAnyPeer, slot(1), first);
      const int peer = way == 1 ? 2 : way == 2 ? kAnyPeer : 1;
      const Ticket ticket = self.channel.post_recv(peer, slot(1), data);
      const Ending ending =
          ending_when_aborted(self.channel, [&](WaitContext& wait) { self.channel.wait(ticket, wait); });
      expect(ending.code == ErrorCode::aborted && ending.says("the test says stop"), ending.text);
      expect(ending.seconds < kPromptSeconds, "at once");
      const Ending later = ending_of([&] { self.channel.post_send(1, slot(1), data); });
      expect(later.code == ErrorCode::aborted && later.says("the test says stop"), "later calls: " + later.text);
    });
    INFO("way " << way << "\n" << show(endings));
    CHECK(all_well(endings));
  }
}

TEST_CASE("hosts ends: what breaks a rank breaks both of its sides", "[hosts]") {
  // Rank 0 breaks. Its neighbour waits for it over shared memory, rank 2 over the wire.
  const auto endings = run_ranks(kTwoOfTwo, [](HostRank& self) {
    Data data(3);
    if (self.rank == 0) {
      const Ticket ticket = self.channel.post_recv(3, slot(1), data);
      self.channel.abort(Error(ErrorCode::io, "the disk of rank 0 is full"));
      const Ending own = ending_of([&] { wait_for(self.channel, ticket); });
      expect(own.code == ErrorCode::aborted && own.says("disk of rank 0"), own.text);
    } else if (self.rank < 3) {
      recv(self.channel, 0, slot(1), data);
    }
  });
  INFO(show(endings));
  CHECK(!endings[0].code);
  CHECK(endings[1].code == ErrorCode::aborted);
  CHECK(endings[1].says("rank 0 ended the group"));
  CHECK(endings[1].says("the disk of rank 0 is full"));
  CHECK(endings[2].code == ErrorCode::peer_lost);
  CHECK(endings[2].rank == 0);
  for (const std::size_t rank : {1, 2}) CHECK(endings[rank].seconds < kPromptSeconds);
}

TEST_CASE("hosts ends: the ranks that errors name are those of the group", "[hosts]") {
  const TempDir dir;
  RankProcess first = start(dir, 0, stay), second = start(dir, 1, stay);
  // Rank 3 leaves in good order, and rank 2 waits for it, or for two that never come.
  RankProcess leaver = start(dir, 3, [](Channel&, Store& store) { store.wait_for("rank 2 waits", 20s); });
  RankProcess waiter = start(dir, 2, [](Channel& channel, Store& store) {
    Data data(3);
    const Ticket ticket = channel.post_recv(3, slot(1), data);
    store.set("rank 2 waits", "");
    wait_for(channel, ticket);
  });
  const Ending ending = waiter.wait();
  INFO(ending.text);
  CHECK(ending.code == ErrorCode::peer_lost);
  CHECK(ending.rank == 3);
  CHECK(ending.says("rank 3 left the group while this rank waits for data from rank 3"));
}

TEST_CASE("hosts ends: a far rank that is killed ends waits for it, and for any, and is named", "[hosts]") {
  for (const int peer : {2, kAnyPeer}) {
    const TempDir dir;
    const auto store = make_file_store(dir.path());
    RankProcess neighbour = start(dir, 1, stay), other = start(dir, 3, stay), victim = start(dir, 2, stay);
    RankProcess waiter = start(dir, 0, [peer](Channel& channel, Store& own_store) {
      Data data(3);
      const Ticket ticket = channel.post_recv(peer, slot(1), data);
      own_store.set("waits", "");
      wait_for(channel, ticket);
    });
    store->wait_for("waits", 20s);
    victim.kill();
    const Ending ending = waiter.wait();
    INFO("peer " << peer << ": " << ending.text);
    CHECK(ending.code == ErrorCode::peer_lost);
    CHECK(ending.rank == 2);
    CHECK(ending.seconds < kPromptSeconds);
  }
}

TEST_CASE("hosts ends: a receive from any ends when all others have left, and no sooner", "[hosts]") {
  for (const int last : {1, 2}) {  // a neighbour, or a far rank
    const TempDir dir;
    const auto store = make_file_store(dir.path());
    const auto leave_when = [](const char* key) {
      return [key](Channel&, Store& own_store) { own_store.wait_for(key, 20s); };
    };
    std::vector<RankProcess> others;
    for (const int rank : {1, 2, 3}) others.push_back(start(dir, rank, leave_when(rank == last ? "last" : "first")));
    RankProcess waiter = start(dir, 0, [](Channel& channel, Store& own_store) {
      Data data(3);
      const Ticket ticket = channel.post_recv(kAnyPeer, slot(1), data);
      own_store.set("first", "");
      own_store.wait_for("two have left", 20s);
      for (int i = 0; i < 1000; ++i) expect(!channel.test(ticket), "one may still send");
      own_store.set("last", "");
      wait_for(channel, ticket);
    });
    for (const int rank : {1, 2, 3}) {
      if (rank != last) CHECK(!others[static_cast<std::size_t>(rank - 1)].wait().code);
    }
    store->set("two have left", "");
    CHECK(!others[static_cast<std::size_t>(last - 1)].wait().code);
    const Ending ending = waiter.wait();
    INFO("last " << last << ": " << ending.text);
    CHECK(ending.code == ErrorCode::peer_lost);
    CHECK(ending.says("all other ranks have left"));
  }
}

TEST_CASE("hosts ends: a wait in vain times out and says for whom", "[hosts]") {
  for (const int peer : {1, 3, kAnyPeer}) {
    const auto endings = run_ranks(kTwoOfTwo, [peer](HostRank& self) {
      if (self.rank != 0) return;
      Data data(3);
      const Ticket ticket = self.channel.post_recv(peer, slot(1), data);
      const Ending ending = ending_of([&] { wait_for(self.channel, ticket, 300ms); });
      expect(ending.code == ErrorCode::timeout, ending.text);
      expect(ending.says(peer == kAnyPeer ? "data from any rank" : fmt::format("data from rank {}", peer)),
             ending.text);
    });
    INFO("peer " << peer << "\n" << show(endings));
    CHECK(all_well(endings));
  }
}

TEST_CASE("hosts ends: without the hosts of all ranks, it says what is missing", "[hosts]") {
  ConnectRequest request;
  request.group = "g";
  request.size = 2;
  request.store = make_memory_store();
  WaitContext wait = wait_for();
  const Ending ending = ending_of([&] { find_backend(hosts_backend())->connect(request, wait); });
  CHECK(ending.code == ErrorCode::invalid_argument);
  CHECK(ending.says("say where each rank is"));
}
