// Where ranks on several hosts look for rank 0.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <col/error.hpp>
#include <col/request.hpp>

#include "core/env.hpp"
#include "group/adopt/meeting_point.hpp"
#include "support/catch.hpp"

using col::ErrorCode;
using namespace col::group::adopt;

namespace {

using Values = std::map<std::string, std::string, std::less<>>;

MeetingPoint find(const LaunchedRank& place, const Values& values, const std::string& own_name = "n1") {
  const Lookup lookup = [&](std::string_view name) -> std::optional<std::string> {
    (void)col::core::env::get(name);  // throws when it is in no table
    const auto it = values.find(name);
    if (it == values.end()) return std::nullopt;
    return it->second;
  };
  return find_meeting_point(
      place, lookup, [&] { return own_name; }, [] { return "n7"; });
}

std::string refusal(ErrorCode code, const LaunchedRank& place, const Values& values,
                    const std::string& own_name = "n1") {
  try {
    find(place, values, own_name);
  } catch (const col::Error& error) {
    CHECK(error.code() == code);
    CHECK(error.message().find("COL_RDZV_ENDPOINT") != std::string::npos);
    return error.message();
  }
  FAIL("no error");
  return "";
}

LaunchedRank place_of(const std::string& launcher, int rank = 0) {
  LaunchedRank place;
  place.launcher = launcher;
  place.rank = rank;
  place.world_size = 4;
  place.several_hosts = "N=2";
  return place;
}

col::PeerInfo peer(const std::string& boot_id, const std::string& network_namespace) {
  col::PeerInfo info;
  info.boot_id = boot_id;
  info.network_namespace = network_namespace;
  return info;
}

}  // namespace

TEST_CASE("node lists: the first host of each of Slurm's forms", "[adopt]") {
  CHECK(first_of_node_list("n1") == "n1");
  CHECK(first_of_node_list("n1,n2") == "n1");
  CHECK(first_of_node_list("n[01-03,7]") == "n01");
  CHECK(first_of_node_list("n[7]") == "n7");
  CHECK(first_of_node_list("n[12,3-5],login") == "n12");
  CHECK(first_of_node_list("a1,b[2-4]") == "a1");
  CHECK(first_of_node_list("gpu-b[2-4],a1") == "gpu-b2");
  CHECK(first_of_node_list("rack[1-2]node[08-16]") == "rack1node08");
  CHECK(first_of_node_list("n[1-2]-ib.cluster,x") == "n1-ib.cluster");
}

TEST_CASE("node lists: what is none is refused", "[adopt]") {
  for (const char* list :
       {"", ",n1", "n[", "n[1", "n[]", "n[a-b]", "n[-2]", "n[1-]", "n[1,,2]", "n1]", "n 1", "n[1-x]"}) {
    INFO(list);
    CHECK_FALSE(first_of_node_list(list).has_value());
  }
}

TEST_CASE("pods: the first pod of an Indexed Job", "[adopt]") {
  CHECK(first_pod("train-0", 0) == "train-0");
  CHECK(first_pod("train-17", 17) == "train-0");
  CHECK(first_pod("my-train-2-17.svc.ns.svc.cluster.local", 17) == "my-train-2-0.svc.ns.svc.cluster.local");
  CHECK(first_pod("train-17-x8k2p", 17).empty());
  CHECK(first_pod("train-17", 7).empty());
  CHECK(first_pod("train17", 17).empty());
  CHECK(first_pod("-3", 3).empty());
  CHECK(first_pod("", 0).empty());
}

TEST_CASE("meeting point: COL_RDZV_ENDPOINT goes before what the launcher says", "[adopt]") {
  const LaunchedRank place = place_of("slurm");
  MeetingPoint point = find(place, {{"COL_RDZV_ENDPOINT", "node1:29401"}, {"SLURM_STEP_NODELIST", "n[1-2]"}});
  CHECK(point.host == "node1");
  CHECK(point.port == 29401);
  point = find(place, {{"COL_RDZV_ENDPOINT", "[fe80::1%eth0]:65535"}});
  CHECK(point.host == "fe80::1%eth0");
  CHECK(point.port == 65535);
  point = find(place, {{"COL_RDZV_ENDPOINT", "10.0.0.1"}});
  CHECK(point.host == "10.0.0.1");
  CHECK(point.port == 0);
  point = find(place, {{"COL_RDZV_ENDPOINT", "[::1]"}});
  CHECK(point.host == "::1");
  CHECK(point.port == 0);
  for (const char* text : {"node1:", ":29401", "node1:0", "node1:65536", "node1:29401x", "::1", "fe80::1:29401",
                           "a b:1", "[]:1", "tcp://node1:29401"}) {
    INFO(text);
    CHECK(refusal(ErrorCode::invalid_argument, place, {{"COL_RDZV_ENDPOINT", text}}).find(text) != std::string::npos);
  }
}

TEST_CASE("meeting point: of Slurm, the first host of the step", "[adopt]") {
  const MeetingPoint point = find(place_of("slurm"), {{"SLURM_STEP_NODELIST", "n[03-04]"}});
  CHECK(point.host == "n03");
  CHECK(point.port == 0);
  CHECK(point.source == "SLURM_STEP_NODELIST");
  refusal(ErrorCode::unavailable, place_of("slurm"), {});
  refusal(ErrorCode::invalid_argument, place_of("slurm"), {{"SLURM_STEP_NODELIST", "n[1"}});
  // Tasks that a file of hosts has placed in another order.
  LaunchedRank elsewhere = place_of("slurm");
  elsewhere.node = "1";
  CHECK(refusal(ErrorCode::unavailable, elsewhere, {{"SLURM_STEP_NODELIST", "n[1-2]"}}).find("SLURM_NODEID=1") !=
        std::string::npos);
  elsewhere.rank = 3;
  CHECK(find(elsewhere, {{"SLURM_STEP_NODELIST", "n[1-2]"}}).host == "n1");
}

TEST_CASE("meeting point: of torchrun MASTER_ADDR, and never its port", "[adopt]") {
  MeetingPoint point = find(place_of("torchrun"), {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "29500"}});
  CHECK(point.host == "n1");
  CHECK(point.port == 0);
  CHECK(find(place_of("torchrun"), {{"MASTER_ADDR", "fe80::7"}}).host == "fe80::7");
  refusal(ErrorCode::unavailable, place_of("torchrun"), {});
  refusal(ErrorCode::invalid_argument, place_of("torchrun"), {{"MASTER_ADDR", "n 1"}});
}

TEST_CASE("meeting point: of an Indexed Job, its first pod", "[adopt]") {
  const MeetingPoint point = find(place_of("kubernetes", 3), {}, "train-3.svc.ns.svc.cluster.local");
  CHECK(point.host == "train-0.svc.ns.svc.cluster.local");
  CHECK(point.port == 0);
  // Whether a pod knows its domain or not, the port comes out the same.
  CHECK(point.job == find(place_of("kubernetes", 1), {}, "train-1").job);
  CHECK(refusal(ErrorCode::unavailable, place_of("kubernetes", 3), {}, "laptop").find("'laptop'") != std::string::npos);
}

TEST_CASE("meeting point: Slurm sorts the hosts, and the lowest rank of the first serves", "[adopt]") {
  // A heterogeneous job whose first part is on n3, or tasks that a file of hosts has placed in another order.
  Values first{{"SLURM_STEP_NODELIST", "n[1,3]"}, {"SLURMD_NODENAME", "n1"}, {"SLURM_GTIDS", "2,1"}};
  LaunchedRank place = place_of("slurm", 1);
  place.node = "1";
  MeetingPoint point = find(place, first);
  CHECK((point.host == "n1" && point.serves == true && point.server == "rank 0 or the lowest rank there"));
  place.rank = 2;
  CHECK(find(place, first).serves == false);
  const Values third{{"SLURM_STEP_NODELIST", "n[1,3]"}, {"SLURMD_NODENAME", "n3"}, {"SLURM_GTIDS", "0"}};
  place.rank = 0;
  CHECK(find(place, third).serves == false);
  CHECK(find(place, third).host == "n1");
  // Whoever says where, means rank 0.
  Values told = third;
  told["COL_RDZV_ENDPOINT"] = "n3:29401";
  CHECK_FALSE(find(place, told).serves.has_value());
}

TEST_CASE("meeting point: MPICH's launcher is asked where rank 0 is", "[adopt]") {
  LaunchedRank place = place_of("mpich", 2);
  place.pmi_fd = 5;
  CHECK(find(place, {}).host == "n7");
  CHECK(find(place, {{"COL_RDZV_ENDPOINT", "n1:29401"}}).host == "n1");
}

TEST_CASE("meeting point: Open MPI and a PMI without a socket do not tell", "[adopt]") {
  for (const char* launcher : {"openmpi", "mpich", "pmi"}) {
    CHECK(refusal(ErrorCode::unavailable, place_of(launcher), {{"MASTER_ADDR", "n1"}}).find("N=2") !=
          std::string::npos);
  }
}

TEST_CASE("meeting point: a port is FNV-1a of the job's name, in a range of its own", "[adopt]") {
  // 64 bits of FNV-1a: "" 0xcbf29ce484222325, "a" 0xaf63dc4c8601ec8c, "foobar" 0x85944171f73967e8.
  CHECK(job_port("") == 20000 + static_cast<int>(0xcbf29ce484222325ULL % 9000));
  CHECK(job_port("a") == 20000 + static_cast<int>(0xaf63dc4c8601ec8cULL % 9000));
  CHECK(job_port("foobar") == 20000 + static_cast<int>(0x85944171f73967e8ULL % 9000));
  for (int i = 0; i < 10000; ++i) {
    const int port = job_port("slurm-" + std::to_string(i));
    REQUIRE((port >= 20000 && port <= 28999));
  }
}

TEST_CASE("hosts: containers on one machine count as several", "[adopt]") {
  const auto hosts = [](std::vector<col::PeerInfo> peers) { return col::hosts_of(peers); };
  CHECK(hosts({}).empty());
  CHECK(hosts({peer("m", "1"), peer("m", "1"), peer("m", "1")}) == std::vector<int>{0, 0, 0});
  CHECK(hosts({peer("m", "1"), peer("m", "2"), peer("m", "1"), peer("m", "2")}) == std::vector<int>{0, 1, 0, 1});
  CHECK(hosts({peer("m", "1"), peer("k", "1"), peer("k", "2"), peer("k", "1")}) == std::vector<int>{0, 1, 2, 1});
  const auto in_container = [](std::string pid_namespace) {
    col::PeerInfo info = peer("m", "1");
    info.pid_namespace = std::move(pid_namespace);
    return info;
  };
  CHECK(hosts({in_container("p"), in_container("q"), in_container("p")}) == std::vector<int>{0, 1, 0});
  // Where it cannot be known, nobody shares a host.
  CHECK(hosts({peer("", ""), peer("", ""), peer("m", ""), peer("m", "1")}) == std::vector<int>{0, 1, 2, 3});
}
