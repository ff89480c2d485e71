// A rank that is on its control page without doing collectives: shows what colrun makes of the page.
//
//   control_page leave        joins, and returns 0 without having left in good order
//   control_page lose PEER    joins, waits until rank PEER's process is gone, says peer_lost and returns 3
//   control_page cause FILE   joins, creates FILE, waits until the job is aborted, prints why and returns 1
//
// Or what somebody else sees on the page of a job, by its COL_CONTROL and COL_JOB_ID:
//
//   control_page spins RANK   returns 0 if the rank is in a small call that it has made before, and has not begun to
//                             wait
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <thread>

#include <col/job.hpp>

namespace {

// Until `event` holds, or the job is aborted, or 20 s have passed; throws in both of these.
template <typename Event>
void wait_for(col::ControlPage& page, Event event) {
  col::WaitContext wait(col::Deadline::after(std::chrono::seconds(20)), &page);
  for (; !event(); std::this_thread::sleep_for(wait.slice())) wait.check();
}

// The record of such a call is one word, which leaves out the fingerprint.
bool spins(const col::RankActivity& activity) {
  return activity.state == col::RankActivity::State::running && !activity.op.empty() && activity.fingerprint == 0;
}

int run(const std::string& what, const std::string& argument) {
  const auto page = col::ControlPage::open(std::getenv("COL_CONTROL"), std::getenv("COL_JOB_ID"));
  if (what == "spins") return spins(page->record(std::atoi(argument.c_str())).read()) ? 0 : 1;
  const int rank = std::atoi(std::getenv("COL_RANK"));
  page->record(rank).join(rank);
  if (what == "leave") return 0;
  if (what == "lose") {
    const col::RankRecord& peer = page->record(std::atoi(argument.c_str()));
    wait_for(*page, [&] { return peer.lost(); });
    std::ofstream(std::getenv("COL_ERROR_FILE")) << R"({"code":"peer_lost","message":"lost rank )" << argument << "\"}";
    return 3;
  }
  if (what == "cause") {
    std::ofstream(argument) << rank;
    wait_for(*page, [] { return false; });
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
