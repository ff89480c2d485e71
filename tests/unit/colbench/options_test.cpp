#include "colbench/commands/options.hpp"
#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace col::colbench;
using Catch::Matchers::Contains;
using Words = std::vector<std::string>;

namespace {

col::colbench::Request read(const std::vector<std::string>& arguments) {
  CommandLine line("colbench", "usage", "footer");
  line.add_cells();
  line.add_method();
  line.add_outputs();
  if (!line.parse(arguments, 1)) throw UsageError("a text was printed");
  col::colbench::Request& request = line.request();
  request.operations = parse_operations(line.words().empty() ? "allreduce" : line.words().front());
  if (request.sizes.empty()) request.sizes = {1024};
  return request;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return complaint_of([&] { cells_of(read(arguments)); });
}

}  // namespace

TEST_CASE("colbench options: lists and ranges of sizes", "[colbench]") {
  CHECK(parse_sizes("1K,8") == std::vector<std::size_t>{8, 1024});
  CHECK(parse_sizes("8:64:x2") == std::vector<std::size_t>{8, 16, 32, 64});
  CHECK(parse_sizes("8:64") == std::vector<std::size_t>{8, 16, 32, 64});
  CHECK(parse_sizes("8:40:+16") == std::vector<std::size_t>{8, 24, 40});
  CHECK(parse_sizes("1K:4K:x2,2K") == std::vector<std::size_t>{1024, 2048, 4096});
  for (const char* text : {"32M", "32m", "32MB", "32MiB", "32mib", "33554432", "33554432B"})
    CHECK(parse_sizes(text) == std::vector<std::size_t>{std::size_t{32} << 20});
  CHECK(parse_sizes("1kb,1.5KiB") == std::vector<std::size_t>{1024, 1536});
  for (const char* text : {"B", "MB", "iB", "8iB", "8BB", "1MBB", "1MiiB", "1 MB"})
    CHECK_THROWS_AS(parse_sizes(text), UsageError);
  for (const char* text : {"", "0", "32X", "8:", ":8", "64:8", "8:64:x1", "8:64:2", "8:64:+0", "1:8G:+1", "8,,9"})
    CHECK_THROWS_AS(parse_sizes(text), UsageError);
}

TEST_CASE("colbench options: every combination is a cell", "[colbench]") {
  const col::colbench::Request request =
      read({"allreduce,barrier,broadcast", "--size", "8,1K", "--algo", "ring,auto", "--place", "both", "-n", "3",
            "--root", "all", "--backend", "auto", "--order", "both"});
  const std::vector<CellSpec> cells = cells_of(request);
  std::size_t reduced = 0, barriers = 0, broadcasts = 0;
  for (const CellSpec& cell : cells) {
    CHECK(cell.ranks == 3);
    reduced += cell.operation == Operation::allreduce;
    barriers += cell.operation == Operation::barrier;
    broadcasts += cell.operation == Operation::broadcast;
  }
  CHECK(reduced == 2 * 2 * 2 * 2);  // sizes, algorithms, places, orders
  CHECK(barriers == 2);             // algorithms
  CHECK(broadcasts == 2 * 2 * 3);   // sizes, algorithms, roots
  CHECK(cells.size() == reduced + barriers + broadcasts);
}

TEST_CASE("colbench options: what other benchmarks call types, reductions and operations", "[colbench]") {
  CHECK(read({"-d", "float"}).dtype == col::DType::float32);
  CHECK(read({"--datatype", "half"}).dtype == col::DType::float16);
  CHECK(read({"-d", "double", "-o", "prod"}).op == col::ReduceOp::product);
  CHECK(read({"-o", "max"}).op == col::ReduceOp::max);
  CHECK(parse_operations("bcast,latency,bw,bibw") ==
        std::vector<Operation>{Operation::broadcast, Operation::pingpong, Operation::oneway, Operation::bidirectional});
  CHECK_THAT(refusal({"-g", "4"}), Contains("--ranks 4 --device cuda"));
}

TEST_CASE("colbench options: what a size is rounded to is said", "[colbench]") {
  CHECK(rounding_note(read({"allreduce", "--size", "3", "-n", "2"})) ==
        "allreduce of 3 bytes is measured as 4: every rank has whole elements of float32");
  CHECK(rounding_note(read({"allreduce", "--size", "4,1K", "-n", "2"})).empty());
  CHECK(rounding_note(read({"allgather", "--size", "8:64", "-n", "3"})).ends_with("; so it is with 3 more"));
  CHECK(rounding_note(read({"barrier", "--size", "3", "-n", "2"})).empty());
}

TEST_CASE("colbench options: nccl-tests' names mean what they mean there", "[colbench]") {
  const col::colbench::Request request = read({"-b", "8", "-e", "128", "-f", "4", "-n", "20", "-w", "5", "-c", "0"});
  CHECK(request.sizes == std::vector<std::size_t>{8, 32, 128});
  CHECK(request.method.min_iterations == 20);
  CHECK(request.method.max_iterations == 20);
  CHECK(request.method.warm_ups == 5);
  CHECK(request.method.check == "off");
  CHECK(read({"-n", "3"}).method.ranks == 3);
}

TEST_CASE("colbench options: what is wrong is said with what to write instead", "[colbench]") {
  CHECK_THAT(refusal({"allredcue"}), Contains("did you mean 'allreduce'"));
  CHECK_THAT(refusal({"allreduce", "--size", "0"}), Contains("at least one element"));
  CHECK_THAT(refusal({"allreduce", "--size", "32X"}), Contains("64K"));
  CHECK_THAT(refusal({"allreduce", "--size", "9000G"}), Contains("greatest size"));
  CHECK_THAT(refusal({"allreduce", "-n", "1"}), Contains("--allow-single"));
  CHECK_THAT(refusal({"allreduce", "-n", "0"}), Contains("from 1 to"));
  CHECK_THAT(refusal({"allreduce", "--sise", "8"}), Contains("did you mean '--size'"));
  CHECK_THAT(refusal({"allreduce", "--dtype", "float31"}), Contains("float32"));
  CHECK_THAT(refusal({"allreduce", "--op", "band"}), Contains("integers"));
  CHECK_THAT(refusal({"allreduce", "--root", "9", "-n", "2"}), Contains("from 0 to 1"));
  CHECK_THAT(refusal({"allreduce", "--place", "inside"}), Contains("both"));
  CHECK_THAT(refusal({"allreduce", "--groups", "mod"}), Contains("mod:N"));
  CHECK_THAT(refusal({"allreduce", "--groups", "mod:0"}), Contains("mod:N"));
  CHECK_THAT(refusal({"allreduce", "--skew", "late:7:1ms", "-n", "2"}), Contains("rank below 2"));
  CHECK_THAT(refusal({"allreduce", "--skew", "late:1"}), Contains("late:RANK:TIME"));
  CHECK_THAT(refusal({"allreduce", "--ci", "0%"}), Contains("2%"));
  CHECK_THAT(refusal({"allreduce", "--max-time", "10"}), Contains("10s"));
  CHECK_THAT(refusal({"allreduce", "--backend", "smh"}), Contains("shm"));
  CHECK_THAT(refusal({"allreduce", "--algo", "knomial:radix=1"}), Contains("radix"));
  CHECK_THAT(refusal({"allreduce", "-e", "8"}), Contains("-b"));
  CHECK_THAT(refusal({"allreduce", "-b", "8", "--size", "8"}), Contains("one of them"));
  CHECK_THAT(refusal({"allreduce", "again"}), Contains("unexpected"));
  CHECK(refusal({"allreduce", "-n", "2"}) == "nothing");
}

TEST_CASE("colbench options: errors name options as they were written", "[colbench]") {
  CHECK(refusal({"-n", "2", "-n", "3"}) == "-n was given twice; give it once");
  CHECK(refusal({"--np=2", "--np=3"}) == "--np was given twice; give it once");
  CHECK(refusal({"-n", "2", "--ranks", "3"}) == "--ranks was given twice (first by -n); give it once");
  CHECK_THAT(refusal({"--np", "0"}), Contains("--np takes a whole number"));
  CHECK_THAT(refusal({"-c", "2"}), Contains("-c takes a whole number"));
  CHECK_THAT(refusal({"--warmup_iters", "0"}), Contains("--warmup_iters takes a whole number"));
  CHECK_THAT(refusal({"-b", "8", "--np", "0"}), Contains("--np takes a whole number"));
  CHECK_THAT(refusal({"--maxbytes", "8"}), Contains("--maxbytes needs -b"));
  CHECK_THAT(refusal({"--minbytes", "8", "--sizes", "8"}), Contains("--minbytes and --sizes say the same"));
}

TEST_CASE("colbench options: values are joined to their options, or behind them", "[colbench]") {
  for (const std::vector<std::string>& words :
       {Words{"-n", "3"}, {"-n3"}, {"-n=3"}, {"--np=3"}, {"--ranks", "3"}, {"-n3", "allreduce"}})
    CHECK(read(words).method.ranks == 3);
  CHECK(read({"--json", "-", "--csv=a=b"}).output.json == "-");
  CHECK(read({"--csv=a=b"}).output.csv == "a=b");
  CHECK(read({"--csv==b"}).output.csv == "=b");
  // One dash too few is not "-n" with "p".
  CHECK(refusal({"-np", "3"}) == "unknown option '-np'; did you mean '--np'?");
  CHECK(refusal({"-np=3"}) == "unknown option '-np'; did you mean '--np'?");
  CHECK(refusal({"-n", "--json", "x"}) == "-n needs a value: -n N");
  CHECK(refusal({"-n", "--json=x"}) == "-n needs a value: -n N");
  CHECK(refusal({"-n="}) == "-n needs a value: -n N");
  CHECK_THAT(refusal({"-n", "-3"}), Contains("not '-3'"));
  CHECK(refusal({"-3"}) == "unknown option '-3'");
  CHECK(refusal({"--legend=1"}) == "--legend takes no value");
  CHECK(refusal({"--legend", "--legend"}) == "--legend was given twice; give it once");
  CHECK(refusal({"allreduce", "--", "--legend"}) == "unexpected argument '--'");
}

TEST_CASE("colbench options: a command may read -n by itself", "[colbench]") {
  CommandLine line("colbench", "usage", "footer");
  line.add_cells();
  line.add_method([](const std::string& option, const std::string& text) {
    CHECK(option == "--np");
    return static_cast<int>(text.size());
  });
  REQUIRE(line.parse({"-b", "8", "--np", "1,2"}, 0));
  CHECK(line.request().method.ranks == 3);
  CHECK(line.request().method.max_time == Method().max_time);  // it is no number of iterations
}

TEST_CASE("colbench options: on GPUs, messages go between any two kinds of memory", "[colbench]") {
  col::colbench::Request request;
  request.operations = {Operation::allreduce, Operation::pingpong};
  request.sizes = {1024};
  request.device = col::Device::Type::cuda;
  const std::vector<CellSpec> cells = cells_of(request);
  REQUIRE(cells.size() == 4);
  CHECK(cells[0].device == Devices::cuda);
  CHECK(cells[1].device == Devices::cuda);
  CHECK(cells[2].device == Devices::cpu_cuda);
  CHECK(cells[3].device == Devices::cuda_cpu);
  request.cache = CacheState::cold;
  CHECK_THROWS_WITH(cells_of(request), "--cache cold flushes the processor's caches; on GPUs, take --cache rotate");
  request.cache = CacheState::rotate;
  CHECK(cells_of(request).size() == 4);
}
