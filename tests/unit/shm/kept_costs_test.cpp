// The file in the user's cache folder: what is believed of it, and what is not.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "backend/shm/calibration/kept_costs.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace col::shm_backend;
using col::test::TempDir;

namespace {

constexpr std::int64_t kNow = 1'764'141'234;

Costs some_costs() {
  Costs costs;
  costs.line = 1;
  costs.yield = 2;
  costs.look = 3;
  costs.slot_start = 4;
  costs.slot_kib = 5;
  costs.best_kib = 6;
  costs.kernel_start = 7;
  costs.kernel_kib = 8;
  costs.exchange_kib = 9;
  costs.step_kib = {10, 11, 12};
  return costs;
}

// A file of this machine, written now.
class Kept {
 public:
  Kept() : kept_(folder_ / "col", "a machine", kNow) {
    kept_.lock();  // makes the folder
    if (kept_.write(some_costs()) != "") throw std::runtime_error("cannot write it");
  }

  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(kept_.path()).rdbuf();
    return text.str();
  }
  void set_text(const std::string& text) const { std::ofstream(kept_.path(), std::ios::trunc) << text; }
  const std::string& path() const { return kept_.path(); }
  std::string folder() const { return folder_ / "col"; }
  // Why it is not believed; empty if it is.
  std::string refusal(std::int64_t now = kNow, const std::string& machine = "a machine") const {
    // Under the name of this machine's file, whatever it says inside.
    std::string why;
    KeptCosts reader(folder(), machine, now);
    if (reader.path() != path()) std::filesystem::copy_file(path(), reader.path());
    return reader.read(why) ? "" : why;
  }

 private:
  TempDir folder_;
  KeptCosts kept_;
};

}  // namespace

TEST_CASE("kept costs: what is written is read", "[shm]") {
  const Kept kept;
  std::string why;
  const auto read = KeptCosts(kept.folder(), "a machine", kNow).read(why);
  REQUIRE(read);
  const Costs costs = some_costs();
  CHECK(read->line == costs.line);
  CHECK(read->yield == costs.yield);
  CHECK(read->look == costs.look);
  CHECK(read->slot_start == costs.slot_start);
  CHECK(read->slot_kib == costs.slot_kib);
  CHECK(read->best_kib == costs.best_kib);
  CHECK(read->kernel_start == costs.kernel_start);
  CHECK(read->kernel_kib == costs.kernel_kib);
  CHECK(read->exchange_kib == costs.exchange_kib);
  CHECK(read->step_kib == costs.step_kib);
  struct stat status {};
  REQUIRE(::stat(kept.path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  REQUIRE(::stat(kept.folder().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  CHECK(std::distance(std::filesystem::directory_iterator(kept.folder()), {}) == 1);  // no draft is left
}

TEST_CASE("kept costs: it ages, and is of one machine", "[shm]") {
  const Kept kept;
  CHECK(kept.refusal(kNow + KeptCosts::kMostSeconds) == "");
  CHECK(kept.refusal(kNow + KeptCosts::kMostSeconds + 1) == "it is too old, or from the future");
  CHECK(kept.refusal(kNow - 1) == "it is too old, or from the future");
  CHECK(kept.refusal(kNow, "another machine") == "it is of another machine");
}

TEST_CASE("kept costs: any damage is noticed", "[shm]") {
  const Kept kept;
  const std::string whole = kept.text();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    kept.set_text(whole.substr(0, length));
    INFO(whole.substr(0, length));
    CHECK(kept.refusal() != "");
  }
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string text = whole;
    text.replace(text.find(before), before.size(), after);
    kept.set_text(text);
    return kept.refusal();
  };
  CHECK(with("calibration 3", "calibration 2") == "it is no calibration of this version");
  CHECK(with("yield 2", "yield -2") == "it is damaged");
  CHECK(with("yield 2", "yield two") == "it is damaged");
  CHECK(with("yield 2", "yield 2 ") == "it is damaged");
  CHECK(with("yield 2", "yields 2") == "it is damaged");
  CHECK(with("yield 2\n", "") == "it is damaged");
  CHECK(with("yield 2", "yield 1000000000001") == "it is damaged");
  CHECK(with("yield 2", "yield 99999999999999999999999") == "it is damaged");
  CHECK(with("end\n", "end\nend\n") == "it is damaged");
  CHECK(with("made 1764141234", "made 99999999999999999999") == "it is damaged");
  CHECK(with("made 1764141234", "made 18446744073709551615") == "it is too old, or from the future");
  CHECK(with("line 1", std::string("line 1\0", 7)) == "it is damaged");
  kept.set_text(std::string(100'000, 'x'));
  CHECK(kept.refusal() == "it is no calibration of this version");
  kept.set_text(whole);
  CHECK(kept.refusal() == "");
}

TEST_CASE("kept costs: what others may have written is not believed, and what is no file is not opened", "[shm]") {
  const Kept kept;
  ::chmod(kept.path().c_str(), 0620);
  CHECK(kept.refusal() == "others can have written it");
  ::chmod(kept.path().c_str(), 0602);
  CHECK(kept.refusal() == "others can have written it");
  ::chmod(kept.path().c_str(), 0644);
  CHECK(kept.refusal() == "");
  if (::geteuid() == 0) {
    REQUIRE(::chown(kept.path().c_str(), 12345, static_cast<gid_t>(-1)) == 0);
    CHECK(kept.refusal() == "others can have written it");
  }
  std::filesystem::remove(kept.path());
  CHECK(kept.refusal() == "No such file or directory");
  REQUIRE(::mkfifo(kept.path().c_str(), 0600) == 0);
  CHECK(kept.refusal() == "it is no file");
  std::filesystem::remove(kept.path());
  std::ofstream(kept.folder() + "/elsewhere") << "x";
  std::filesystem::create_symlink(kept.folder() + "/elsewhere", kept.path());
  CHECK(kept.refusal() != "");
}

TEST_CASE("kept costs: a folder that cannot be written is said, and nothing else fails", "[shm]") {
  CHECK(KeptCosts("", "a machine", kNow).write(some_costs()) == "there is no folder to keep it in");
  CHECK(KeptCosts("/proc/self/col", "a machine", kNow).write(some_costs()) != "");
  CHECK_FALSE(KeptCosts("/proc/self/col", "a machine", kNow).lock().is_taken);
  CHECK_FALSE(KeptCosts("", "a machine", kNow).lock().is_taken);
}

TEST_CASE("kept costs: one job at a time holds the lock, until it ends", "[shm]") {
  const TempDir folder;
  const KeptCosts kept(folder / "cache/col", "a machine", kNow);
  {
    const KeptCosts::Lock lock = kept.lock();
    CHECK(lock.folder);
    CHECK_FALSE(lock.is_taken);
    CHECK(kept.lock().is_taken);
  }
  CHECK_FALSE(kept.lock().is_taken);
}

TEST_CASE("kept costs: machines differ by processor, kernel and how full they are", "[shm]") {
  CHECK(machine_kind(1) == machine_kind(1));
  CHECK(machine_kind(1) != machine_kind(100'000));
  CHECK(machine_kind(1).find("1 rank a processor") != std::string::npos);
}
