// What the ranks of a group of GPUs tell one another before NCCL connects them.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "backend/nccl/meeting.hpp"
#include "support/catch.hpp"
#include "support/counting_store.hpp"
#include "support/prompt.hpp"

namespace col::nccl_backend {
namespace {

using test::CountingStore;

ncclUniqueId some_id() {
  ncclUniqueId id;
  std::memset(id.internal, 0, sizeof id.internal);  // texts in a store are of any bytes
  std::memcpy(id.internal + 7, "\nid", 3);
  return id;
}

// One rank's part, and how it ended.
struct Part {
  explicit Part(const std::shared_ptr<Store>& common) : store(std::make_shared<CountingStore>(common)) {}

  std::shared_ptr<CountingStore> store;  // counts what goes through it; shared with the meeting
  std::optional<Meeting::Table> table;
  std::optional<Error> error;
};

struct Ranks {
  explicit Ranks(int size) {
    for (int rank = 0; rank < size; ++rank) parts.emplace_back(common);
  }

  // `absent`: a rank that does not come.
  void meet(const std::function<Offer(int rank)>& offer, const Meeting::MakeId& id = some_id, int absent = -1,
            Duration limit = test::kDeadline) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < parts.size(); ++rank) ranks.push_back(static_cast<int>(rank));
    std::vector<std::thread> threads;
    std::latch connected(static_cast<std::ptrdiff_t>(ranks.size()));
    for (const int rank : ranks) {
      if (rank == absent) continue;
      threads.emplace_back([&, rank, part = &parts[static_cast<std::size_t>(rank)]] {
        Meeting meeting({.group = "g",
                         .store = make_prefix_store(part->store, "meeting"),
                         .ranks = ranks,
                         .place = static_cast<std::size_t>(rank),
                         .advice = "give each its own"});
        WaitContext wait(Deadline::after(limit));
        try {
          part->table = meeting.exchange(offer(rank), id, wait);
          connected.arrive_and_wait();
          meeting.leave(wait);
        } catch (const Error& error) {
          part->error = error;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  const std::shared_ptr<Store> common = make_memory_store();  // shared by all parts
  std::vector<Part> parts;
};

Offer offer_of(int rank) {
  return {.terms = "2 GPUs", .devices = rank + 1, .why_alone = "it is old", .seats = {fmt::format("GPU {}", rank)}};
}

TEST_CASE("nccl meeting: all hear what all bring, and the id", "[nccl]") {
  Ranks ranks(5);
  ranks.meet(offer_of);
  for (const Part& part : ranks.parts) {
    INFO((part.error ? part.error->what() : "no error"));
    REQUIRE(part.table);
    REQUIRE(part.table->offers.size() == 5);
    CHECK(part.table->offers[3].devices == 4);
    CHECK(part.table->offers[3].why_alone == "it is old");
    CHECK(part.table->offers[3].seats == std::vector<std::string>{"GPU 3"});
    CHECK(!part.table->has_shared_gpus);
    CHECK(std::memcmp(&part.table->id, some_id().internal, sizeof(ncclUniqueId)) == 0);
  }
}

// No rank reads what each of the others has written.
TEST_CASE("nccl meeting: the keys grow with the ranks, and their trips do not", "[nccl]") {
  for (const int size : {2, 8, 32}) {
    Ranks ranks(size);
    ranks.meet(offer_of);
    std::size_t keys = 0, rounds = 0;
    for (const Part& part : ranks.parts) {
      INFO((part.error ? part.error->what() : "no error"));
      REQUIRE(part.table);
      keys += part.store->keys();
      rounds = std::max(rounds, part.store->rounds());
    }
    INFO(size << " ranks: " << keys << " keys, " << rounds << " rounds");
    CHECK(keys <= 4 * static_cast<std::size_t>(size));
    CHECK(rounds <= 3);
    CHECK(ranks.common->num_keys("") == 0);
  }
}

TEST_CASE("nccl meeting: ranks whose terms differ hear it alike", "[nccl]") {
  for (const int odd : {0, 2}) {
    Ranks ranks(4);
    ranks.meet([odd](int rank) {
      Offer offer = offer_of(rank);
      if (rank == odd) offer.terms = "3 GPUs";
      return offer;
    });
    for (const Part& part : ranks.parts) {
      REQUIRE(part.error);
      CHECK(part.error->code() == ErrorCode::mismatch);
      CHECK(part.error->rank() == odd);
    }
  }
}

TEST_CASE("nccl meeting: where there can be no id, all hear why", "[nccl]") {
  Ranks ranks(3);
  ranks.meet(offer_of, []() -> ncclUniqueId { throw Error(ErrorCode::io, "no interface"); });
  for (std::size_t rank = 0; rank < 3; ++rank) {
    REQUIRE(ranks.parts[rank].error);
    CHECK(ranks.parts[rank].error->code() == ErrorCode::io);
    CHECK(ranks.parts[rank].error->rank() == 0);
    CHECK(std::string(ranks.parts[rank].error->what()).find("no interface") != std::string::npos);
  }
}

// Most ranks wait for the first one, which waits for it.
TEST_CASE("nccl meeting: a rank that does not come is named on all others", "[nccl]") {
  for (const int absent : {0, 2}) {
    Ranks ranks(4);
    ranks.meet(offer_of, some_id, absent, std::chrono::milliseconds(200));
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == absent) continue;
      const Part& part = ranks.parts[static_cast<std::size_t>(rank)];
      REQUIRE(part.error);
      INFO(rank << ": " << part.error->what());
      CHECK(part.error->code() == ErrorCode::timeout);
      CHECK(part.error->rank() == absent);
    }
  }
}

}  // namespace
}  // namespace col::nccl_backend
