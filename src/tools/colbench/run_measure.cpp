#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "colbench/command.hpp"
#include "colbench/options.hpp"
#include "colbench/output.hpp"
#include "common/exit_codes.hpp"

namespace col::colbench {
namespace {

constexpr const char* kUsage = "Usage: colbench COLL[,COLL]|all|sendrecv [options]\n       colbench COMMAND [options]";
constexpr const char* kFooter =
    "Collectives: allreduce reduce broadcast allgather(v) reduce_scatter(v) gather(v) scatter(v) alltoall(v) scan "
    "exscan\n"
    "barrier; messages: pingpong oneway bidirectional (sendrecv is all three).\n"
    "\n"
    "Commands: compare A.json B.json, noise, algorithms, tune, explain, simulate, draw, pairs, bisect, suite ps,\n"
    "self-test; each has its --help.\n"
    "\n"
    "Examples:\n"
    "  colbench allreduce --size 32M            how fast, on this machine, and how far from its limit?\n"
    "  colbench all --sizes 8:16M:x8 -n 4 --html report.html\n"
    "  colbench allreduce --sizes 1K:64M:x4 --algo ring,bde,auto --backend shm,gloo --plot curves.svg\n"
    "  colbench allreduce -b 8 -e 128M -f 2     as nccl-tests\n"
    "  colbench sendrecv --device cuda          between GPUs, and between them and the host\n"
    "  mpirun -n 4 colbench allreduce           in the ranks that are there already\n"
    "\n"
    "Times are the host's, from a call until its result is there. On GPUs, tdev is the device's own: between two "
    "events\n"
    "around the call in its stream; a dash for messages, barriers, and what goes through the host.\n"
    "\n"
    "Exit code: 0 measured; 1 wrong data; 2 usage; 3 time is up; 4 slower than allowed (compare); 5 a rank died; 6 a "
    "time\n"
    "below the physical bound; 77 nothing could be measured here.";

}  // namespace

int run_measure(const Invocation& invocation) {
  CommandLine line("colbench", kUsage, kFooter);
  line.add_cells();
  line.add_method();
  line.add_outputs();
  if (!line.parse(invocation.arguments, 1)) return tools::exit_code::kSuccess;
  Request& request = line.request();
  if (line.words().empty()) throw UsageError("what shall be measured? colbench allreduce, or colbench all");
  request.operations = parse_operations(line.words().front());
  if (request.sizes.empty()) request.sizes = {std::size_t{32} << 20};
  const std::vector<CellSpec> cells = cells_of(request);
  check_outputs(request.output);
  if (request.device == Device::Type::cpu) request.method.fits = request.backends;
  const Results results = invocation.measure(request.method, cells);
  // Nothing could be done as it was asked for: the reasons are all there is to say.
  if (results.exit_code == tools::exit_code::kUsage && results.ended_early.empty()) {
    std::set<std::string> notes;
    for (const Cell& cell : results.cells) notes.insert(cell.note);
    throw UsageError(fmt::format("{}", fmt::join(notes, "; ")));
  }
  return report(results, request.output, invocation.screen);
}

}  // namespace col::colbench
