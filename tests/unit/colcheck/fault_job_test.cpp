// The engine under colcheck --faults: what it says of processes that end in every way there is, and of drills that
// fail.
#include "colcheck/faults/job.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "colcheck/faults/drill.hpp"
#include "core/clock/clock.hpp"
#include "support/catch.hpp"

using namespace col::colcheck;
using namespace std::chrono_literals;

namespace {

// Ranks that run `script`; descriptor 0 is the socket to the engine.
JobSpec shell(const std::string& script, int ranks = 1) {
  return {.ranks = ranks, .program = "/bin/sh", .arguments = {"-c", script}};
}

RankEnd run_one(const JobSpec& spec) {
  Job job(spec);
  const JobEnd end = job.finish();
  CHECK(end.left_behind.empty());
  return end.ranks.at(0);
}

std::string left(const std::string& script) {
  return Job(shell(script)).finish().left_behind;
}

bool has_children() {
  return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Setting() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("fault job: exit codes and signals are told apart, and nothing is left", "[colcheck]") {
  Job job(shell("[ $COL_RANK = 0 ] && exit 7; [ $COL_RANK = 1 ] && kill -SEGV $$; exit 0", 3));
  const std::string directory = std::filesystem::path(job.store_directory()).parent_path();
  CHECK(std::filesystem::exists(directory));
  const JobEnd end = job.finish();
  CHECK(end.ranks[0].ending.exit_code == 7);
  CHECK(end.ranks[1].ending.signal == SIGSEGV);
  CHECK(end.ranks[2].ending.exit_code == 0);
  for (const RankEnd& rank : end.ranks) {
    CHECK_FALSE(rank.overdue);
    CHECK_FALSE(rank.report);
    CHECK(rank.ended_at > 0);
  }
  CHECK(end.left_behind.empty());
  CHECK_FALSE(std::filesystem::exists(directory));
  CHECK_FALSE(has_children());
}

TEST_CASE("fault job: a rank that hangs is killed at the limit", "[colcheck]") {
  JobSpec spec = shell("trap '' TERM HUP INT; exec sleep 1000");
  spec.limit = 200ms;
  const RankEnd end = run_one(spec);
  CHECK(end.overdue);
  CHECK(end.ending.signal == SIGKILL);
  CHECK(end.ended_at >= 0.2);
  CHECK(end.ended_at < 10);
  CHECK_FALSE(has_children());
}

TEST_CASE("fault job: a job that is given up leaves neither process nor directory", "[colcheck]") {
  std::string directory;
  {
    Job job(shell("echo at sleep >&0; exec sleep 1000", 2));
    directory = job.store_directory();
    CHECK(job.await(0, "sleep"));
    CHECK(job.await(1, "sleep"));
  }
  CHECK_FALSE(std::filesystem::exists(directory));
  CHECK_FALSE(has_children());
}

TEST_CASE("fault job: a rank that has come to a point is let go on, or killed there", "[colcheck]") {
  Job job(shell("echo at here >&0; head -c 1; exit 5", 2));
  REQUIRE(job.await(0, "here"));
  REQUIRE(job.await(1, "here"));
  const double killed_at = job.now();
  job.signal(1, SIGKILL);
  job.go_on(0);
  const JobEnd end = job.finish();
  CHECK(end.ranks[0].ending.exit_code == 5);
  CHECK(end.ranks[0].output == "g");
  CHECK(end.ranks[1].ending.signal == SIGKILL);
  CHECK(end.ranks[1].ended_at >= killed_at);
  CHECK_FALSE(end.ranks[1].overdue);
}

TEST_CASE("fault job: a point that a rank never comes to is not waited for beyond its end", "[colcheck]") {
  Job job(shell("exit 0"));
  CHECK_FALSE(job.await(0, "nowhere"));
  CHECK_FALSE(job.await(0, "report"));
  CHECK_FALSE(job.await(0, "stopped"));
  CHECK(job.finish().ranks[0].ending.exit_code == 0);
}

TEST_CASE("fault job: a rank that stops itself is seen, and continued", "[colcheck]") {
  Job job(shell("kill -STOP $$; exit 3"));
  REQUIRE(job.await(0, "stopped"));
  const double stopped_at = job.now();
  job.pause(50ms);
  CHECK(job.now() - stopped_at >= 0.05);
  job.signal(0, SIGCONT);
  const JobEnd end = job.finish();
  CHECK(end.ranks[0].ending.exit_code == 3);
  CHECK(end.ranks[0].ended_at > stopped_at);
}

TEST_CASE("fault job: what a rank reports arrives as it was", "[colcheck]") {
  Report report;
  report.code = "peer_lost";
  report.error_rank = 2;
  report.message = "rank 2 was killed, it says \"no\"";
  report.doing = "call 2";
  report.seconds = 0.25;
  report.later = "aborted";
  report.at_ns = col::core::clock_ns() + 1'000'000'000'000;  // a thousand seconds, less what the start takes
  const RankEnd end = run_one(shell(fmt::format("echo words; cat >&0 <<'END'\n{}\nEND\nexit 1", encode(report))));
  REQUIRE(end.report);
  CHECK(encode(*end.report) == encode(report));
  CHECK(end.reported_at > 900);
  CHECK(end.reported_at < 1000);
  CHECK(end.ending.exit_code == 1);
  CHECK(end.output == "words\n");
}

TEST_CASE("fault job: half a report is none", "[colcheck]") {
  CHECK_FALSE(run_one(shell("printf '{\"code\":\"peer_' >&0")).report);
  CHECK_FALSE(run_one(shell("echo '{\"code\":\"peer_lost\"}' >&0")).report);
}

TEST_CASE("fault job: ranks see an environment of their own, whatever launcher started the caller", "[colcheck]") {
  const Setting settings[] = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"PMI_FD", "9"},
                              {"SLURM_PROCID", "1"},
                              {"COL_CONTROL", "/nowhere"},
                              {"COL_RANK", "77"},
                              {"COL_ERROR_FILE", "/nowhere"},
                              {"RANK", "1"},
                              {"LC_ALL", "C"}};
  JobSpec spec = shell("env; ls /proc/self/fd | tr '\\n' ' '; ulimit -c", 2);
  spec.environment = {"COL_FAULT=kill:rank=5", "COL_CHECK=strict"};
  spec.timeout = 1500ms;
  Job job(spec);
  const std::string store = "COL_STORE=file://" + job.store_directory() + "\n";
  const JobEnd end = job.finish();
  for (const char* foreign : {"OMPI_", "PMI_", "SLURM_", "COL_CONTROL", "COL_ERROR_FILE", "\nRANK=", "COL_RANK=77"}) {
    INFO(foreign << "\n" << end.ranks[1].output);
    CHECK(end.ranks[1].output.find(foreign) == std::string::npos);
  }
  for (const std::string& own :
       {std::string("COL_RANK=1\n"), std::string("COL_WORLD_SIZE=2\n"), store, std::string("COL_FAULT=kill:rank=5\n"),
        std::string("COL_CHECK=strict\n"), std::string("COL_TIMEOUT=1500ms\n"), std::string("LC_ALL=C\n")}) {
    INFO(own << end.ranks[1].output);
    CHECK(end.ranks[1].output.find(own) != std::string::npos);
  }
  // 0 to 2, and the one that ls reads the directory by; no core is written.
  CHECK(end.ranks[1].output.find("0 1 2 3 0\n") != std::string::npos);
}

TEST_CASE("fault job: a variable is there once, as the drill has it", "[colcheck]") {
  const Setting setting("COL_CMA", "off");
  const std::string all =
      run_one(
          {.ranks = 1, .program = "/usr/bin/env", .environment = {"COL_STORE=file:///dev/null/store", "COL_CMA=on"}})
          .output;
  INFO(all);
  for (const std::string& own : {std::string("COL_STORE=file:///dev/null/store\n"), std::string("COL_CMA=on\n")}) {
    CHECK(all.find(own) != std::string::npos);
    const std::string name = own.substr(0, own.find('=') + 1);
    CHECK(all.find(name) == all.rfind(name));
  }
}

TEST_CASE("fault job: it works for a caller that ignores SIGCHLD", "[colcheck]") {
  struct sigaction before {};
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignored, &before);
  const RankEnd end = run_one(shell("exit 7"));
  ::sigaction(SIGCHLD, &before, nullptr);
  CHECK(end.ending.exit_code == 7);
}

TEST_CASE("fault job: a program that is not there is a rank that says so", "[colcheck]") {
  const RankEnd end = run_one({.program = "/nowhere/colcheck"});
  CHECK(end.ending.exit_code == 127);
  CHECK(end.output.find("cannot execute the program: No such file or directory") != std::string::npos);
}

TEST_CASE("fault job: what other jobs have in /dev/shm is not left behind", "[colcheck]") {
  const std::string prefix = fmt::format("/dev/shm/col-other-{}-", ::getpid());
  // One that is in use all the time, and one after the other that is there for a moment, as before a rank opens it.
  const col::tools::UniqueFd used(::open((prefix + "used").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  REQUIRE(used);
  std::jthread others([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      const std::string momentary = prefix + std::to_string(i);
      ::close(::open(momentary.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
      ::unlink(momentary.c_str());
    }
  });
  CHECK(left("exit 0").empty());
  CHECK(left("touch $TMPDIR/forgotten") == "$TMPDIR/forgotten");
  others = {};
  std::filesystem::remove(prefix + "used");
}

TEST_CASE("fault job: what is left behind is found", "[colcheck]") {
  const std::string process = left("sleep 1000 & exit 0");
  REQUIRE(process.starts_with("process "));
  ::kill(std::stoi(process.substr(std::string("process ").size())), SIGKILL);
  CHECK(left("touch $TMPDIR/forgotten") == "$TMPDIR/forgotten");
  CHECK(left("touch ${TMPDIR%/*}x").find("/col-fault-") != std::string::npos);
  const std::string name = "col-left-" + std::to_string(::getpid());
  CHECK(left("touch /dev/shm/" + name) == "/dev/shm/" + name);
  std::filesystem::remove("/dev/shm/" + name);
  CHECK(left("exit 0").empty());
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    const std::string file = entry.path().filename();
    if (file.starts_with("col-fault-") && file.find(fmt::format("-{}-", ::getpid())) != file.npos &&
        file.ends_with("x"))
      std::filesystem::remove(entry.path());
  }
}

TEST_CASE("fault job: a /dev/shm of its own is as small as it was asked to be, and seen from outside", "[colcheck]") {
  std::unique_ptr<PrivateShm> shm;
  try {
    shm = std::make_unique<PrivateShm>(64 << 10);
  } catch (const std::exception& error) {
    WARN("not checked: " << error.what());
    return;
  }
  JobSpec spec = shell("head -c 100000 /dev/zero >/dev/shm/col-big; touch /dev/shm/col-x; exit 3");
  spec.shm = shm.get();
  const JobEnd all = Job(spec).finish();
  CHECK(all.left_behind.starts_with("/dev/shm/col-"));
  const RankEnd& end = all.ranks[0];
  CHECK(end.ending.exit_code == 3);
  INFO(end.output);
  CHECK(end.output.find("No space left on device") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists("/dev/shm/col-big"));
}

// ---- Drills that fail, by ranks that say what they should not: each must be reported.

namespace {

// A row in which rank 1 is the odd one, and what the engine finds when the ranks run `script`. `$(report CODE RANK)`
// says that the call has failed so.
std::string found(Way way, const std::string& script) {
  const Drill drill{.name = "planted", .summary = "", .ways = {std::move(way)}, .odd = [](const Case&) { return 1; }};
  Case c;
  c.property = drill.name;
  c.ranks = 3;
  const std::string functions =
      "report() { printf '{\"code\":\"%s\",\"rank\":%s,\"message\":\"\",\"doing\":\"call 2\",\"seconds\":0.1,"
      "\"later\":\"%s\",\"regrouped\":\"\",\"at_ns\":0}\\n' \"$1\" $2 \"$3\" >&0; }\n";
  return play(drill, c, {.program = "/bin/sh", .arguments = {"-c", functions + script}}).text;
}

Way names_the_odd_one() {
  return {.said = {.codes = any_of(col::ErrorCode::peer_lost), .names_odd = true},
          .odd = Said{.end = Said::End::leaves}};
}

bool has(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

const std::string kOthers = "[ $COL_RANK = 1 ] && exit 0; ";

}  // namespace

TEST_CASE("drills: one in which all is said passes", "[colcheck]") {
  CHECK(found(names_the_odd_one(), kOthers + "report peer_lost 1 aborted").empty());
  CHECK(found({}, "report '' -1").empty());
}

TEST_CASE("drills: one that says nothing has failed", "[colcheck]") {
  CHECK(has(found(names_the_odd_one(), "exit 0"),
            "rank 0 exited with 0 and reported nothing; expected peer_lost about rank 1"));
  CHECK(has(found(names_the_odd_one(), kOthers + "report '' -1"),
            "rank 0 noticed nothing; expected peer_lost about rank 1"));
  CHECK(
      has(found({.said = {.codes = kWell | kAnyError}, .somebody = true}, "report '' -1"), "no rank noticed anything"));
  CHECK(has(found({}, "kill -SEGV $$"), "rank 0 was killed by SIGSEGV; expected success"));
  CHECK(has(found({.limit = 200ms}, "exec sleep 1000"), "and was killed; expected success"));
}

TEST_CASE("drills: one that says something else has failed", "[colcheck]") {
  CHECK(
      has(found(names_the_odd_one(), kOthers + "report peer_lost 2"), "rank 0 got peer_lost (about rank 2) in call 2"));
  CHECK(has(found(names_the_odd_one(), kOthers + "report timeout 1"), "rank 0 got timeout (about rank 1)"));
  CHECK(has(found(names_the_odd_one(), kOthers + "report peer_lost 1 success"), "the next call ended with success"));
  CHECK(has(found(names_the_odd_one(), "report peer_lost 1"), "rank 1 got peer_lost"));
  Way prompt = names_the_odd_one();
  prompt.within = 0.05;
  CHECK(has(found(prompt, kOthers + "report peer_lost 1"), "at most 0.05 s are allowed"));
  Way patient = names_the_odd_one();
  patient.not_before = 0.2;
  CHECK(has(found(patient, kOthers + "report peer_lost 1"), "it gave up before 0.20 s had passed"));
}

TEST_CASE("drills: one that does not come to its points has failed", "[colcheck]") {
  CHECK(has(found({.script = {await(Who::odd, "away")}}, "report '' -1"), "rank 1 has not come to 'away'"));
  CHECK(found({.script = {await(Who::all, "call"), go_on(Who::all)}},
              "echo at call >&0; head -c 1 >/dev/null; report '' -1")
            .empty());
}

TEST_CASE("drills: one that leaves something behind has failed", "[colcheck]") {
  const std::string process = found({}, "report '' -1; sleep 1000 & exit 0");
  REQUIRE(has(process, "the job has left process "));
  for (int more = 0; more < 3; ++more) {  // of three ranks
    std::system(
        "for p in /proc/[0-9]*; do grep -qsz '^COL_JOB_ID=fault-' $p/environ && grep -qs sleep $p/comm && "
        "kill -9 ${p#/proc/} && break; done");
  }
  CHECK(has(found({}, "report '' -1; touch $TMPDIR/forgotten"), "the job has left $TMPDIR/forgotten behind"));
}

TEST_CASE("drills: each row can be found by its cases, and its ways begin with variant 0", "[colcheck]") {
  for (const col::colcheck::Drill& drill : drills()) {
    INFO(drill.name);
    REQUIRE_FALSE(drill.ways.empty());
    CHECK(drill.ways.front().variant == 0);
    CHECK(std::ranges::is_sorted(drill.ways, {}, &Way::variant));
    Case c;
    c.property = drill.name;
    CHECK(&drill_of(c) == &drill);
  }
  CHECK_THROWS_AS(drill_of(parse_token("exact,backend=shm,np=3,coll=barrier")), std::invalid_argument);
}
