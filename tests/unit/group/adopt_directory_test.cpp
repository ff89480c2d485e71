// Ranks that no launcher of ours has started meet in a directory, and leave nothing behind.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <col/error.hpp>

#include "core/unique_fd.hpp"
#include "group/adopt/job_directory.hpp"
#include "group/adopt/job_store.hpp"
#include "group/adopt/user_directory.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/temp_dir.hpp"

namespace fs = std::filesystem;
using col::ErrorCode;
using col::test::expect;
using col::test::TempDir;
using namespace col::group::adopt;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 20s;

JobKey key(int rank, int world_size, const std::string& job = "test-0123456789abcdef") {
  return {job, rank, world_size};
}

// A rank that has entered.
std::unique_ptr<JobDirectory> enter(const TempDir& parent, const JobKey& who) {
  auto directory = std::make_unique<JobDirectory>(who, parent.path());
  directory->enter(kPatience);
  return directory;
}

std::optional<col::Error> why_apart(const JobDirectory& rank, bool is_last_look = false) {
  return rank.why_apart(rank.path(), kPatience, is_last_look);
}

// A process of its own that enters, and stays until the object ends.
class OtherRank {
 public:
  OtherRank(const TempDir& parent, const JobKey& who) {
    int entered[2], stays[2];
    REQUIRE(pipe2(entered, O_CLOEXEC) == 0);
    REQUIRE(pipe2(stays, O_CLOEXEC) == 0);
    const col::core::UniqueFd has_entered(entered[0]), is_let_go(stays[0]);
    col::core::UniqueFd says_so(entered[1]);
    stays_.reset(stays[1]);
    pid_ = fork();
    if (pid_ == 0) {
      stays_.reset();
      char c = 0;
      try {
        const auto directory = enter(parent, who);
        [[maybe_unused]] auto ended = write(says_so.get(), &c, 1);
        ended = read(is_let_go.get(), &c, 1);
      } catch (...) {  // then the test hears the end of the pipe
      }
      _exit(0);
    }
    says_so.reset();
    char c = 0;
    REQUIRE(read(has_entered.get(), &c, 1) == 1);
  }
  ~OtherRank() {
    stays_.reset();
    waitpid(pid_, nullptr, 0);
  }
  OtherRank(const OtherRank&) = delete;
  OtherRank& operator=(const OtherRank&) = delete;
  pid_t pid() const { return pid_; }

 private:
  col::core::UniqueFd stays_;
  pid_t pid_ = 0;
};

bool exists(const std::string& path) {
  return fs::exists(fs::symlink_status(path));
}

std::string user_path(const TempDir& parent) {
  return parent / fmt::format("col-{}", geteuid());
}

col::Error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const col::Error& error) {
    return error;
  }
  FAIL("no error");
  return col::Error(ErrorCode::internal, "");
}

// Ranks that enter and are killed.
void leave_a_crash(const TempDir& parent, int ranks, int world_size) {
  const auto outcomes = col::test::run_processes(ranks, [&](int rank, col::Context&) {
    enter(parent, key(rank, world_size)).release();
    kill(getpid(), SIGKILL);
  });
  for (const auto& outcome : outcomes) REQUIRE(outcome.signal == SIGKILL);
}

}  // namespace

TEST_CASE("job directory: the ranks of a job meet in one of mode 0700, and the last removes it", "[adopt]") {
  const TempDir parent;
  constexpr int kRanks = 8;
  std::vector<std::unique_ptr<JobDirectory>> ranks(kRanks);
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < kRanks; ++r)
      threads.emplace_back([&, r] { ranks[static_cast<std::size_t>(r)] = enter(parent, key(r, kRanks)); });
  }
  std::set<std::string> paths;
  for (const auto& rank : ranks) paths.insert(rank->path());
  REQUIRE(paths.size() == 1);
  const std::string path = *paths.begin();
  struct stat status {};
  REQUIRE(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  REQUIRE(stat(user_path(parent).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(read_members(path)->complete());
  {
    std::vector<std::jthread> threads;
    for (int r = 1; r < kRanks; ++r) threads.emplace_back([&, r] { ranks[static_cast<std::size_t>(r)]->leave(); });
  }
  CHECK(exists(path));
  ranks[0]->leave();
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("job directory: processes meet in a store there, and nothing is left of it", "[adopt]") {
  const TempDir parent;
  constexpr int kRanks = 5;
  const auto outcomes = col::test::run_processes(kRanks, [&](int rank, col::Context&) {
    JobStore store(key(rank, kRanks), parent.path(), kPatience);
    if (store.add("here", 1) == kRanks) store.set("all", store.enter());
    expect(store.wait_for("all", kPatience) == store.enter(), "another directory");
    store.leave();
  });
  INFO(col::test::show(outcomes));
  CHECK(col::test::all_good(outcomes));
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("job directory: tidying up late does not bring a rank back, anything else does", "[adopt]") {
  const TempDir parent;
  JobStore store(key(0, 2), parent.path(), kPatience);
  store.set("k", "v");
  CHECK(store.erase("k"));
  store.set("k", "v");
  store.leave();
  CHECK_FALSE(store.erase("k"));
  CHECK(fs::is_empty(parent.path()));
  CHECK(store.num_keys() == 0);
  CHECK_FALSE(fs::is_empty(parent.path()));
  store.leave();
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("job directory: what a killed job of the same name has left is removed, and never joined", "[adopt]") {
  const TempDir parent;
  leave_a_crash(parent, 2, 4);  // ranks 2 and 3 never came, so their lines are free
  std::string left;
  for (const auto& entry : fs::directory_iterator(user_path(parent))) left = entry.path().string();
  REQUIRE(exists(left));
  const auto rank = enter(parent, key(3, 4));
  CHECK(rank->path() != left);
  CHECK_FALSE(exists(left));
  CHECK(read_members(rank->path())->ranks == std::vector<int>{3});
}

TEST_CASE("job directory: the first rank of any other job removes it too", "[adopt]") {
  const TempDir parent;
  leave_a_crash(parent, 3, 3);
  fs::create_directory(user_path(parent) + "/test-0123456789abcdef.0123456789abcdef");  // killed while it made it
  enter(parent, key(0, 2, "other-0123456789abcdef"))->leave();
  CHECK(fs::is_empty(parent.path()));
}

TEST_CASE("job directory: that of a living earlier job of the same name is not joined", "[adopt]") {
  const TempDir parent;
  const auto old0 = enter(parent, key(0, 2)), old1 = enter(parent, key(1, 2));
  const auto new1 = enter(parent, key(1, 2));
  CHECK(old0->path() == old1->path());
  CHECK(new1->path() != old0->path());
  old0->leave();
  CHECK(enter(parent, key(0, 2))->path() == new1->path());
  // Of two that wait for somebody, the newer.
  const auto newer = enter(parent, key(1, 2));
  CHECK(newer->path() != new1->path());
  CHECK(enter(parent, key(0, 2))->path() == newer->path());
}

TEST_CASE("job directory: worlds of other sizes and other jobs stay apart", "[adopt]") {
  const TempDir parent;
  const auto a = enter(parent, key(0, 3)), b = enter(parent, key(1, 2)),
             c = enter(parent, key(2, 3, "test-fedcba9876543210"));
  CHECK(a->path() != b->path());
  CHECK(a->path() != c->path());
  CHECK(enter(parent, key(1, 3))->path() == a->path());
}

TEST_CASE("job directory: who waits in vain is told of another world size, and so are those of the other one",
          "[adopt]") {
  const TempDir parent;
  const auto two = enter(parent, key(0, 2));
  CHECK_FALSE(why_apart(*two));  // it may still come
  const auto three1 = enter(parent, key(1, 3)), three2 = enter(parent, key(2, 3));
  const auto why = why_apart(*three1);
  REQUIRE(why);
  CHECK(why->code() == ErrorCode::mismatch);
  CHECK(why->rank() == 0);  // the odd one
  CHECK(why->message().find("ranks 1, 2 say 3, and rank 0 says 2") != std::string::npos);
  three1->leave();  // who has told the others may go
  for (const auto* rank : {two.get(), three2.get()}) CHECK(why_apart(*rank)->message() == why->message());
  const auto last = enter(parent, key(1, 2));
  REQUIRE(last->path() == two->path());
  CHECK_FALSE(why_apart(*two));  // nobody is missing there any more
  CHECK_FALSE(why_apart(*enter(parent, key(0, 3, "other-0123456789abcdef"))));
}

TEST_CASE("job directory: a rank that was started twice is told so, and those who wait for others with it", "[adopt]") {
  const TempDir parent;
  const auto zero = enter(parent, key(0, 3));
  const OtherRank twin(parent, key(1, 3));
  const auto one = enter(parent, key(1, 3));
  CHECK(one->path() != zero->path());
  const auto why = why_apart(*one);
  REQUIRE(why);
  CHECK(why->code() == ErrorCode::already_initialized);
  CHECK(why->rank() == 1);
  CHECK(why->message().find(fmt::format("processes {} and {}", twin.pid(), getpid())) != std::string::npos);
  CHECK(why_apart(*zero)->message() == why->message());
}

TEST_CASE("job directory: another job of that name that is complete is told of only at the end", "[adopt]") {
  const TempDir parent;
  const OtherRank first(parent, key(0, 2)), second(parent, key(1, 2));
  const auto same = enter(parent, key(0, 2)), larger = enter(parent, key(0, 3));
  for (const auto* rank : {same.get(), larger.get()}) {
    CHECK_FALSE(why_apart(*rank));
    const auto why = why_apart(*rank, true);
    REQUIRE(why);
    CHECK(why->code() == ErrorCode::already_initialized);
    CHECK(why->message().find(fmt::format("rank 0 was started twice: processes {}", first.pid())) != std::string::npos);
    CHECK_FALSE(why_apart(*rank));  // others of that job may still come
  }
  const auto odd = enter(parent, key(5, 6));  // no rank of a job of three, or two
  CHECK(why_apart(*odd)->code() == ErrorCode::mismatch);
}

TEST_CASE("job directory: the dead of an earlier run are no reason, whatever they have left running", "[adopt]") {
  const TempDir parent;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  col::core::UniqueFd orphan_reads(ends[0]), writer(ends[1]);
  for (const int rank : {0, 1}) {
    const pid_t process = fork();
    if (process == 0) {
      enter(parent, key(rank + 1, 3)).release();
      if (rank == 0 && fork() == 0) {  // which has the lock, too
        writer.reset();
        setsid();
        char c = 0;
        [[maybe_unused]] const auto end = read(orphan_reads.get(), &c, 1);
        _exit(0);
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(waitpid(process, &status, 0) == process);
    REQUIRE(WIFSIGNALED(status));
  }
  const auto zero = enter(parent, key(0, 2));
  CHECK(std::distance(fs::directory_iterator(user_path(parent)), {}) >= 2);
  CHECK_FALSE(why_apart(*zero));
  CHECK_FALSE(why_apart(*zero, true));
  writer.reset();
}

TEST_CASE("job directory: a process that has left, or ended, is no twin, nor is one of a job that is complete told",
          "[adopt]") {
  const TempDir parent;
  const auto zero = enter(parent, key(0, 2)), one = enter(parent, key(1, 2));
  const auto newer = enter(parent, key(0, 2));
  CHECK_FALSE(why_apart(*newer));  // the same process
  zero->leave();
  CHECK(read_members(one->path())->process_of(0).nobody());
  zero->enter(kPatience);
  CHECK(read_members(one->path())->process_of(0) == col::core::ProcessId::self());
  const auto odd = enter(parent, key(2, 3));
  CHECK(why_apart(*odd)->code() == ErrorCode::mismatch);
  CHECK_FALSE(why_apart(*one));  // nobody is missing there
}

TEST_CASE("job directory: a rank that comes back finds the others", "[adopt]") {
  const TempDir parent;
  const auto a = enter(parent, key(0, 2)), b = enter(parent, key(1, 2));
  const std::string first = a->path();
  a->leave();
  a->enter(kPatience);
  CHECK(a->path() == first);
  a->leave();
  a->leave();
  b->leave();
  CHECK(fs::is_empty(parent.path()));
  b->enter(kPatience);
  a->enter(kPatience);
  CHECK(a->path() == b->path());
  CHECK(a->path() != first);
}

TEST_CASE("job directory: a forked process neither keeps nor ends its parent's stay", "[adopt]") {
  const TempDir parent;
  auto rank = enter(parent, key(0, 2));
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const col::core::UniqueFd reader(ends[0]);
  col::core::UniqueFd writer(ends[1]);
  const pid_t child = fork();
  if (child == 0) {
    rank->leave();
    bool refused = false;
    try {
      rank->enter(kPatience);
    } catch (const col::Error& error) {
      refused = error.code() == ErrorCode::not_initialized;
    }
    const bool kept = exists(rank->path()) && !is_left_over(rank->path());
    char c = kept && refused ? 'y' : 'n';
    if (write(ends[1], &c, 1) != 1) _exit(1);
    pause();  // holds what it has inherited
    _exit(0);
  }
  char answer = 0;
  CHECK(read(reader.get(), &answer, 1) == 1);
  CHECK(answer == 'y');
  rank->leave();
  CHECK(fs::is_empty(parent.path()));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_CASE("job directory: what somebody else has put there is refused, and what is not a job's left alone", "[adopt]") {
  const TempDir parent;
  const std::string path = user_path(parent);
  const auto refusal = [&] {
    const col::Error error = error_of([&] { enter(parent, key(0, 2)); });
    CHECK(error.code() == ErrorCode::io);
    CHECK(error.message().find(path) != std::string::npos);
    CHECK(error.message().find("TMPDIR") != std::string::npos);
    return error.message();
  };
  fs::create_directory(parent / "elsewhere");
  fs::create_symlink(parent / "elsewhere", path);
  CHECK(refusal().find("is no directory") != std::string::npos);
  fs::remove(path);
  std::ofstream(path) << "a file";
  CHECK(refusal().find("is no directory") != std::string::npos);
  fs::remove(path);
  REQUIRE(mkdir(path.c_str(), 0700) == 0);
  for (const mode_t mode : {0755, 0770, 0701}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CHECK(refusal().find(fmt::format("has mode {:04o}", mode)) != std::string::npos);
  }
  REQUIRE(chmod(path.c_str(), 0700) == 0);
  if (geteuid() == 0) {  // nobody else may give a directory away
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK(refusal().find("belongs to user id 12345") != std::string::npos);
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
  }
  fs::create_directory(path + "/mine");
  std::ofstream(path + "/notes.2026") << "mine";
  enter(parent, key(0, 2))->leave();
  CHECK(exists(path + "/mine"));
  CHECK(exists(path + "/notes.2026"));
}

TEST_CASE("job directory: a TMPDIR that is not there is an error that names it", "[adopt]") {
  JobDirectory directory(key(0, 2), "/no/such/directory");
  const col::Error error = error_of([&] { directory.enter(kPatience); });
  CHECK(error.code() == ErrorCode::io);
  CHECK(error.message().find("/no/such/directory/col-") != std::string::npos);
  CHECK(error.message().find("TMPDIR") != std::string::npos);
}

TEST_CASE("job directory: a lock that is not given back ends the wait, and a leaving rank does not wait long",
          "[adopt][rest]") {
  const TempDir parent;
  auto first = enter(parent, key(0, 2));
  const std::string left = first->path();
  const col::core::UniqueFd held(open(user_path(parent).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(flock(held.get(), LOCK_EX | LOCK_NB) == 0);
  JobDirectory second(key(1, 2), parent.path());
  const col::Error error = error_of([&] { second.enter(50ms); });
  CHECK(error.code() == ErrorCode::timeout);
  CHECK(error.message().find("fuser") != std::string::npos);
  const auto start = std::chrono::steady_clock::now();
  first->leave();
  CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  CHECK(exists(left));
  REQUIRE(flock(held.get(), LOCK_UN) == 0);
  second.enter(kPatience);
  CHECK_FALSE(exists(left));
}

TEST_CASE("job directory: a list of members that is damaged is none", "[adopt]") {
  Members members{.world_size = 3, .made_ns = 7};
  for (const int rank : {2, 0}) members.enter(rank, col::core::ProcessId(4711, 5));
  members.enter(2, {});  // has left
  const std::string text = members.encode();
  const auto read = Members::decode(text);
  REQUIRE(read);
  CHECK((read->world_size == 3 && read->made_ns == 7 && read->ranks == members.ranks));
  CHECK((read->has(2) && !read->has(1) && !read->complete()));
  CHECK((read->process_of(0).pid() == 4711 && read->process_of(2).nobody() && read->process_of(1).nobody()));
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    INFO(cut);
    const auto part = Members::decode(text.substr(0, cut));
    CHECK((!part || part->ranks.size() < 2));
  }
  for (const char* other : {"", "\n", "col members 1 3 7\n", "col members 2 x 7\n", "col members 2 3 7\n1\n",
                            "col members 2 3 7\n1 5\nx\n"})
    CHECK_FALSE(Members::decode(other).has_value());
}
