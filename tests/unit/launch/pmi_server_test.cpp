// What ranks that speak PMI-1 are told, and what becomes of those that speak something else.
#include "launch/pmi/pmi_server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "launch/processes/events.hpp"
#include "support/catch.hpp"

using namespace col::launch;
using col::tools::UniqueFd;

namespace {

class PmiRanks {
 public:
  explicit PmiRanks(const Assignment& assignment)
      : server(assignment, events_, [this](int rank) { heard_of_.push_back(rank); }) {
    for (int rank = 0; rank < assignment.local_ranks; ++rank) ends_.push_back(server.add_rank(rank));
  }

  // The rank says it, and the server reads it. False: the server has closed the socket.
  bool ask(int rank, const std::string& text) {
    const int socket = ends_[static_cast<std::size_t>(rank)].get();
    if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0) return false;
    events_.serve({});
    CHECK(std::exchange(heard_of_, {}) == std::vector{rank});
    return true;
  }
  // What the rank then hears; "gone" if the server has closed the socket.
  std::string say(int rank, const std::string& text) {
    REQUIRE(ask(rank, text));
    return heard(rank);
  }
  std::string heard(int rank) {
    char bytes[8192];
    const ssize_t length = ::recv(ends_[static_cast<std::size_t>(rank)].get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (length < 0 && errno == EAGAIN) return "";
    return length <= 0 ? "gone" : std::string(bytes, static_cast<std::size_t>(length));
  }
  void hang_up(int rank) {
    ends_[static_cast<std::size_t>(rank)].reset();
    events_.serve({});
    CHECK(std::exchange(heard_of_, {}) == std::vector{rank});
  }

 private:
  Events events_;
  std::vector<int> heard_of_;
  std::vector<UniqueFd> ends_;

 public:
  PmiServer server;
};

const Assignment kTwoOfFive = {
    .nodes = 3, .first_rank = 2, .local_ranks = 2, .world_size = 5, .job_id = "job", .ranks_of_nodes = {2, 2, 1}};

}  // namespace

TEST_CASE("pmi: a rank learns the world and where its ranks are", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  CHECK(ranks.say(0, "cmd=init pmi_version=1 pmi_subversion=1\n") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  CHECK(ranks.say(1, "cmd=init pmi_version=2 pmi_subversion=0\n") ==
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
  CHECK(ranks.say(0, "cmd=get_maxes\n") == "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
  CHECK(ranks.say(0, "cmd=get_universe_size\n") == "cmd=universe_size size=5 rc=0\n");
  CHECK(ranks.say(0, "cmd=get_appnum\n") == "cmd=appnum appnum=0 rc=0\n");
  CHECK(ranks.say(0, "cmd=get_my_kvsname\n") == "cmd=my_kvsname kvsname=job rc=0\n");
  CHECK(ranks.say(0, "cmd=get kvsname=job key=PMI_process_mapping\n") ==
        "cmd=get_result rc=0 msg=success value=(vector,(0,2,2),(2,1,1))\n");
  CHECK(ranks.say(0, "cmd=finalize\n") == "cmd=finalize_ack rc=0\n");
}

TEST_CASE("pmi: what a rank puts is seen by all after the barrier, that of other nodes too", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  // Half a line, then the rest and the next one.
  CHECK(ranks.say(0, "cmd=put kvsname=job key=P2 val") == "");
  CHECK(ranks.say(0, "ue=port#41 = x\ncmd=barrier_in\n") == "cmd=put_result rc=0 msg=success\n");
  CHECK_FALSE(ranks.server.take_barrier());
  CHECK(ranks.say(1, "cmd=get kvsname=job key=P0\n") == "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  CHECK(ranks.say(1, "cmd=barrier_in\n") == "");
  const auto put = ranks.server.take_barrier();
  REQUIRE(put);
  CHECK(*put == PmiServer::Entries{{"P2", "port#41 = x"}});
  CHECK_FALSE(ranks.server.take_barrier());
  ranks.server.end_barrier({{"P0", "zero"}, {"P2", "port#41 = x"}});
  for (const int rank : {0, 1}) {
    CHECK(ranks.heard(rank) == "cmd=barrier_out rc=0\n");
    CHECK(ranks.say(rank, "cmd=get kvsname=job key=P0\n") == "cmd=get_result rc=0 msg=success value=zero\n");
    CHECK(ranks.say(rank, "cmd=get kvsname=job key=P2\n") == "cmd=get_result rc=0 msg=success value=port#41 = x\n");
  }
}

TEST_CASE("pmi: a rank that aborts is to be ended with its code, once", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  CHECK(ranks.say(1, "cmd=abort exitcode=7\n") == "");
  CHECK_FALSE(ranks.server.take_abort(0));
  CHECK(ranks.server.take_abort(1) == 7);
  CHECK_FALSE(ranks.server.take_abort(1));
}

TEST_CASE("pmi: what is not served is said to be that", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  CHECK(ranks.say(0, "mcmd=spawn\nnprocs=1\nexecname=x\n") == "");
  CHECK(ranks.say(0, "cmd=barrier_in\nendcmd\n") == "cmd=spawn_result rc=-1 msg=colrun_starts_no_more_processes\n");
  CHECK(ranks.say(0, "cmd=lookup_name service=x\n") == "cmd=lookup_result rc=-1 info=no_names_here\n");
  CHECK(ranks.say(0, "cmd=publish_name service=x port=y\n") == "cmd=publish_result rc=-1 info=no_names_here\n");
  CHECK(ranks.say(0, "cmd=unpublish_name service=x\n") == "cmd=unpublish_result rc=-1 info=no_names_here\n");
  const std::string long_key(65, 'k'), long_value(1025, 'v');
  CHECK(ranks.say(0, "cmd=put kvsname=job key=" + long_key + " value=x\n") ==
        "cmd=put_result rc=-1 msg=too_long_or_too_many\n");
  CHECK(ranks.say(0, "cmd=put kvsname=job key=k value=" + long_value + "\n") ==
        "cmd=put_result rc=-1 msg=too_long_or_too_many\n");
}

TEST_CASE("pmi: a rank that speaks something else loses its socket, and the others keep theirs", "[launch]") {
  for (const std::string& text : {std::string("GET / HTTP/1.1\n"), std::string("\n"), std::string(5000, 'x'),
                                  std::string("cmd=\n"), std::string("\0\0\0\n", 4)}) {
    PmiRanks ranks(kTwoOfFive);
    CHECK(ranks.say(0, text) == "gone");
    CHECK(ranks.say(1, "cmd=get_appnum\n") == "cmd=appnum appnum=0 rc=0\n");
  }
}

TEST_CASE("pmi: a rank that asks and never reads, or puts without end, fills no memory", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  int asked = 0;
  while (asked < 100'000 && ranks.ask(0, "cmd=get_my_kvsname\n")) ++asked;
  CHECK(asked < 100'000);
  std::string refused;
  for (int i = 0; i < 3000 && refused.empty(); ++i) {
    const std::string told = ranks.say(1, "cmd=put kvsname=job key=k" + std::to_string(i) + " value=x\n");
    if (told != "cmd=put_result rc=0 msg=success\n") refused = told;
  }
  CHECK(refused == "cmd=put_result rc=-1 msg=too_long_or_too_many\n");
}

TEST_CASE("pmi: a rank that has hung up is no reason to fail", "[launch]") {
  PmiRanks ranks(kTwoOfFive);
  ranks.hang_up(0);
  CHECK(ranks.say(1, "cmd=barrier_in\n") == "");
  CHECK_FALSE(ranks.server.take_barrier());
  ranks.server.end_barrier({});
  CHECK(ranks.heard(1) == "cmd=barrier_out rc=0\n");
}
