// The conversation with hydra, against a launcher that answers well, badly, or not at all.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <col/error.hpp>

#include "core/unique_fd.hpp"
#include "group/adopt/pmi.hpp"
#include "support/catch.hpp"
#include "support/prompt.hpp"

using col::ErrorCode;
using col::core::UniqueFd;
using col::group::adopt::ask_pmi_for_job;
using col::group::adopt::ask_pmi_for_meeting;
using namespace std::chrono_literals;

namespace {

constexpr auto kPmiPatience = 20s;

// Answers each line with the next of `answers`; then closes its end, or stays silent until the other side is closed.
class Launcher {
 public:
  enum class End { close, stay };

  explicit Launcher(std::vector<std::string> answers, End end = End::close) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    client_.reset(ends[0]);
    server_.reset(ends[1]);
    thread_ = std::thread([this, answers = std::move(answers), end] { serve(answers, end); });
  }
  ~Launcher() { finish(); }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  int fd() const { return client_.get(); }
  // Everything that was said to it.
  const std::vector<std::string>& heard() {
    finish();
    return heard_;
  }

 private:
  void serve(const std::vector<std::string>& answers, End end) {
    for (const std::string& answer : answers) {
      if (!hear()) return;
      for (const char c : answer) {  // in the smallest of pieces
        if (send(server_.get(), &c, 1, MSG_NOSIGNAL) != 1) return;
      }
    }
    while (end == End::stay && hear()) {
    }
    server_.reset();
  }
  bool hear() {
    std::string line;
    for (char c = 0; c != '\n'; line += c) {
      if (recv(server_.get(), &c, 1, 0) != 1) return false;
    }
    heard_.push_back(line);
    return true;
  }
  void finish() {
    client_.reset();
    if (thread_.joinable()) thread_.join();
  }

  UniqueFd client_, server_;
  std::vector<std::string> heard_;
  std::thread thread_;
};

const std::string kInit = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
const std::string kName = "cmd=my_kvsname kvsname=kvs_25029_0_752621491_vm\n";
const std::string kEnd = "cmd=finalize_ack\n";

struct Refusal {
  ErrorCode code = ErrorCode::internal;
  std::string text;
};

Refusal refusal(int fd, col::Duration timeout = kPmiPatience) {
  try {
    const std::string job = ask_pmi_for_job(fd, timeout);
    FAIL("got the job " << job);
  } catch (const col::Error& error) {
    return {error.code(), error.message()};
  }
  return {};
}

Refusal refusal(std::vector<std::string> answers) {
  Launcher launcher(std::move(answers));
  return refusal(launcher.fd());
}

}  // namespace

TEST_CASE("pmi: the job's name is asked for, and the conversation ended properly", "[adopt]") {
  Launcher launcher({kInit, kName, kEnd});
  CHECK(ask_pmi_for_job(launcher.fd(), kPmiPatience) == "kvs_25029_0_752621491_vm");
  CHECK(launcher.heard() == std::vector<std::string>{"cmd=init pmi_version=1 pmi_subversion=1\n",
                                                     "cmd=get_my_kvsname\n", "cmd=finalize\n"});
}

TEST_CASE("pmi: over several hosts, rank 0 says where it is, and all wait for it", "[adopt]") {
  const std::string out = "cmd=barrier_out\n", got = "cmd=get_result rc=0 msg=success value=n1.cluster\n";
  Launcher zero({kInit, kName, "cmd=put_result rc=0 msg=success\n", out, got, kEnd});
  auto job = ask_pmi_for_meeting(zero.fd(), 0, "n1.cluster", kPmiPatience);
  CHECK((job.name == "kvs_25029_0_752621491_vm" && job.first_host == "n1.cluster"));
  CHECK(zero.heard()[2] == "cmd=put kvsname=kvs_25029_0_752621491_vm key=col-rank0 value=n1.cluster\n");
  CHECK(zero.heard()[3] == "cmd=barrier_in\n");
  CHECK(zero.heard()[4] == "cmd=get kvsname=kvs_25029_0_752621491_vm key=col-rank0\n");
  Launcher one({kInit, kName, out, got, kEnd});
  CHECK(ask_pmi_for_meeting(one.fd(), 1, "n2", kPmiPatience).first_host == "n1.cluster");
  CHECK(one.heard().size() == 5);

  const auto said = [](std::vector<std::string> answers, const std::string& host, col::Duration timeout) {
    Launcher launcher(std::move(answers), Launcher::End::stay);
    try {
      return "found " + ask_pmi_for_meeting(launcher.fd(), 1, host, timeout).first_host;
    } catch (const col::Error& error) {
      return error.message();
    }
  };
  CHECK(said({kInit, kName}, "n2", 1s).find("not all ranks have come") == 0);
  CHECK(said({kInit, kName, out, "cmd=get_result rc=-1 msg=no\n"}, "n2", kPmiPatience).find("to cmd=get") !=
        std::string::npos);
  CHECK(said({kInit, kName, out, "cmd=get_result rc=0\n"}, "n2", kPmiPatience).find("without a value") !=
        std::string::npos);
  for (const char* host : {"", "n 2", "a=b", "n\n2"}) {
    INFO(host);
    CHECK(said({}, host, kPmiPatience).find("COL_RDZV_ENDPOINT") != std::string::npos);
  }
}

TEST_CASE("pmi: newer launchers add a code to every answer", "[adopt]") {
  Launcher launcher({kInit, "cmd=my_kvsname kvsname=kvs_1 rc=0\n", "cmd=finalize_ack rc=0\n"});
  CHECK(ask_pmi_for_job(launcher.fd(), kPmiPatience) == "kvs_1");
}

TEST_CASE("pmi: an answer that is none is refused, and shown", "[adopt]") {
  for (const char* answer : {"cmd=response_to_init rc=-1\n", "cmd=something_else rc=0\n", "hello\n", "\n", "cmd\n",
                             "cmdx=response_to_init\n", "\x01\xff cmd=\n"}) {
    const Refusal refused = refusal({answer});
    INFO(refused.text);
    CHECK(refused.code == ErrorCode::unavailable);
    CHECK(refused.text.find("to cmd=init") != std::string::npos);
    CHECK(refused.text.find("COL_STORE") != std::string::npos);
    CHECK(refused.text.find_first_of("\n\x01\xff") == std::string::npos);
  }
  CHECK(refusal({kInit, "cmd=my_kvsname\n"}).text.find("without a name") != std::string::npos);
  CHECK(refusal({kInit, "cmd=my_kvsname kvsname=\n"}).code == ErrorCode::unavailable);
  CHECK(refusal({kInit, kName, "cmd=barrier_out\n"}).text.find("to cmd=finalize") != std::string::npos);
  CHECK(refusal({std::string(10000, 'x')}).text.find("without an end") != std::string::npos);
}

TEST_CASE("pmi: a launcher that closes its end is an error at once, and no signal", "[adopt]") {
  for (const auto& answers : {std::vector<std::string>{}, {kInit}, {kInit, "cmd=my_kv"}, {kInit, kName}}) {
    const Refusal refused = refusal(answers);
    INFO(refused.text);
    CHECK(refused.code == ErrorCode::unavailable);
    CHECK(refused.text.find("closed it") != std::string::npos);
  }
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd client(ends[0]);
  UniqueFd(ends[1]).reset();
  CHECK(refusal(client.get()).code == ErrorCode::unavailable);  // SIGPIPE would have ended the test
}

TEST_CASE("pmi: silence is a timeout that names the command", "[adopt]") {
  for (const auto& answers : {std::vector<std::string>{}, {kInit}, {kInit, "cmd=my_kvsname kvs"}}) {
    Launcher launcher(answers, Launcher::End::stay);
    const auto start = std::chrono::steady_clock::now();
    const Refusal refused = refusal(launcher.fd(), 1s);
    INFO(refused.text);
    CHECK(refused.code == ErrorCode::timeout);
    CHECK(refused.text.find(answers.empty() ? "cmd=init" : "cmd=get_my_kvsname") != std::string::npos);
    CHECK(refused.text.find("1s") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - start < col::test::kPrompt);
  }
}

TEST_CASE("pmi: nothing is written into what is not the launcher's socket", "[adopt]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
  const UniqueFd reader(ends[0]), writer(ends[1]);
  CHECK(refusal(writer.get()).code == ErrorCode::unavailable);
  char c = 0;
  CHECK(read(reader.get(), &c, 1) == -1);
  const int closed = dup(reader.get());
  close(closed);
  CHECK(refusal(closed).text.find("is not the launcher's socket") != std::string::npos);
}
