// Where simulated ranks are, and times and speeds on a command line.
#include <functional>
#include <string>
#include <vector>

#include "colbench/commands/topology.hpp"
#include "colbench/commands/units.hpp"
#include "common/command_line.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Approx;

namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const col::tools::UsageError& error) {
    return error.what();
  }
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("topology: ranks follow each other within a node", "[colbench]") {
  const Topology topology = parse_topology("nodes:3x2", 0);
  CHECK(topology.ranks == 6);
  CHECK(topology.nodes == 3);
  CHECK((topology.node_of_rank() == std::vector<int>{0, 0, 1, 1, 2, 2}));
  CHECK(topology.text() == "6 ranks, 3 nodes of 2");
  CHECK(parse_topology("nodes:3x2", 6).ranks == 6);
  CHECK(parse_topology("flat", 5).nodes == 1);
}

TEST_CASE("topology: what is wrong is said, and what to write instead", "[colbench]") {
  CHECK(holds(refusal([] { parse_topology("nodes:3x2", 7); }), "has 6 ranks, not the 7"));
  CHECK(holds(refusal([] { parse_topology("flat", 0); }), "--ranks"));
  CHECK(holds(refusal([] { parse_topology("nodes:65536x65536", 0); }), "4294967296 ranks"));
  for (const char* text : {"", "nodes", "nodes:", "nodes:x", "nodes:3x", "nodes:x3", "nodes:0x3", "nodes:-1x3",
                           "nodes:3x4x5", "nodes:3 x4", "torus:3x4"}) {
    INFO(text);
    CHECK(holds(refusal([&] { parse_topology(text, 0); }), "nodes:512x8"));
  }
}

TEST_CASE("units: times have a unit", "[colbench]") {
  CHECK(parse_time("5us").value() == Approx(5e-6));
  CHECK(parse_time("1.5ms").value() == Approx(1.5e-3));
  CHECK(parse_time("20 ns").value() == Approx(20e-9));
  CHECK(parse_time("2s").value() == Approx(2));
  CHECK(parse_time("0").value() == 0);
  for (const char* text : {"", "5", "us", "-5us", "5 u", "5usx", "1e3us", "nanus", "infs"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text).has_value());
  }
  CHECK(holds(refusal([] { time_option("--alpha", "5"); }), "--alpha should be a time such as 5us"));
}

TEST_CASE("units: speeds are in bytes or bits, by powers of 1000 or 1024", "[colbench]") {
  CHECK(parse_speed("25GB/s").value() == Approx(25e9));
  CHECK(parse_speed("200Gbit/s").value() == Approx(25e9));
  CHECK(parse_speed("200Gbps").value() == Approx(25e9));
  CHECK(parse_speed("1MiB/s").value() == Approx(1048576));
  CHECK(parse_speed("1.5kB/s").value() == Approx(1500));
  CHECK(parse_speed("100 B/s").value() == Approx(100));
  // "Gb/s" is read as bits by some, as bytes by others.
  for (const char* text : {"", "25", "25GB", "25Gb/s", "0GB/s", "-1GB/s", "25XB/s", "25GiiB/s", "GB/s"}) {
    INFO(text);
    CHECK_FALSE(parse_speed(text).has_value());
  }
  CHECK(holds(refusal([] { speed_option("--beta", "25Gb/s"); }), "25GB/s or 200Gbit/s"));
}

TEST_CASE("units: speeds and sizes in three digits", "[colbench]") {
  CHECK(speed_text(25e9) == "25 GB/s");
  CHECK(speed_text(1.25e9) == "1.25 GB/s");
  CHECK(speed_text(340e6) == "340 MB/s");
  CHECK(speed_text(999.9e6) == "1 GB/s");
  CHECK(rough_size_text(1000) == "1000");
  CHECK(rough_size_text(12500) == "12.2K");
  CHECK(rough_size_text(3 << 20) == "3M");
  CHECK(rough_size_text((1 << 20) - 1) == "1M");
}
