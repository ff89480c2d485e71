// What the environment says, and what is wrong with it.
#include <cstdlib>
#include <map>
#include <string>

#include <col/group.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace {

// Sets variables for the length of a test; the program has no other threads then.
class OwnEnvironment {
 public:
  explicit OwnEnvironment(const std::map<std::string, std::string>& values) : values_(values) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~OwnEnvironment() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  OwnEnvironment(const OwnEnvironment&) = delete;
  OwnEnvironment& operator=(const OwnEnvironment&) = delete;

 private:
  std::map<std::string, std::string> values_;
};

std::string message(const std::map<std::string, std::string>& values) {
  const OwnEnvironment environment(values);
  try {
    col::ContextSpec::from_environment();
  } catch (const col::Error& error) {
    CHECK(error.code() == col::ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.message();
  }
  return "";
}

bool mentions(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("environment: nothing set is a world of one", "[group]") {
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.rank == 0);
  CHECK(spec.world_size == 1);
  CHECK(spec.store == nullptr);
}

TEST_CASE("environment: a rank outside its world is refused", "[group]") {
  CHECK(mentions(message({{"COL_RANK", "9"}, {"COL_WORLD_SIZE", "4"}}), "COL_RANK=9 is not below COL_WORLD_SIZE=4"));
  const auto contradicting = [&](const std::string& name, const std::string& value, const std::string& words) {
    return mentions(message({{"COL_RANK", "1"},
                             {"COL_WORLD_SIZE", "4"},
                             {"COL_LOCAL_WORLD_SIZE", "2"},
                             {"COL_NNODES", name == "COL_NNODES" ? value : "2"},
                             {name == "COL_NNODES" ? "COL_LOCAL_RANK" : name, name == "COL_NNODES" ? "1" : value}}),
                    words);
  };
  CHECK(contradicting("COL_LOCAL_RANK", "2", "COL_LOCAL_RANK=2 is not below COL_LOCAL_WORLD_SIZE=2"));
  CHECK(contradicting("COL_NODE_RANK", "2", "COL_NODE_RANK=2 is not below COL_NNODES=2"));
  CHECK(contradicting("COL_NNODES", "5", "COL_NNODES=5 is above COL_WORLD_SIZE=4"));
  CHECK(mentions(message({{"COL_RANK", "1"}, {"COL_WORLD_SIZE", "4"}, {"COL_LOCAL_WORLD_SIZE", "5"}}),
                 "COL_LOCAL_WORLD_SIZE=5 is above COL_WORLD_SIZE=4"));
}

TEST_CASE("environment: half a description is refused", "[group]") {
  CHECK(mentions(message({{"COL_RANK", "0"}}), "COL_WORLD_SIZE is not"));
  CHECK(mentions(message({{"COL_WORLD_SIZE", "2"}}), "COL_RANK is not"));
  CHECK(mentions(message({{"COL_RANK", "0"}, {"COL_WORLD_SIZE", "2"}}), "COL_STORE is not set"));
}

TEST_CASE("environment: values that are no numbers, stores or durations are refused by name", "[group]") {
  CHECK(mentions(message({{"COL_RANK", "two"}, {"COL_WORLD_SIZE", "4"}}), "COL_RANK"));
  CHECK(mentions(message({{"COL_RANK", "0"}, {"COL_WORLD_SIZE", "0"}}), "COL_WORLD_SIZE"));
  CHECK(mentions(message({{"COL_TIMEOUT", "soon"}}), "COL_TIMEOUT"));
  CHECK(mentions(message({{"COL_RANK", "0"}, {"COL_WORLD_SIZE", "2"}, {"COL_STORE", "ftp://x"}}), "file:///"));
}

TEST_CASE("environment: a complete description is taken, with a control page made when none is given", "[group]") {
  const col::test::TempDir dir;
  const OwnEnvironment environment({{"COL_RANK", "1"},
                                    {"COL_WORLD_SIZE", "2"},
                                    {"COL_STORE", "file://" + dir / "store"},
                                    {"COL_JOB_ID", "j"},
                                    {"COL_TIMEOUT", "7s"}});
  const col::ContextSpec spec = col::ContextSpec::from_environment();
  CHECK(spec.rank == 1);
  CHECK(spec.world_size == 2);
  CHECK(spec.local_rank == 1);
  CHECK(spec.timeout == std::chrono::seconds(7));
  CHECK(spec.job_id == "j");
  REQUIRE(spec.store != nullptr);
  REQUIRE(spec.control != nullptr);
  CHECK(spec.control->local_ranks() == 2);
  CHECK(spec.store->num_keys() == 0);  // the page lies beside the keys and is none
  const col::ContextSpec other = col::ContextSpec::from_environment();
  spec.control->abort({col::ErrorCode::aborted, 0, "x"});
  CHECK(other.control->aborted());
}

TEST_CASE("environment: a spare has a number that no rank has, and a place behind those of the ranks", "[group]") {
  const col::test::TempDir folder;
  const std::string store = "file://" + folder.path();
  std::map<std::string, std::string> values = {
      {"COL_SPARE", "5"},      {"COL_WORLD_SIZE", "4"}, {"COL_LOCAL_WORLD_SIZE", "4"},
      {"COL_LOCAL_RANK", "5"}, {"COL_JOB_ID", "job"},   {"COL_STORE", store}};
  {
    col::ControlPage::create(folder / "page", 6, "job");
    auto with_page = values;
    with_page["COL_CONTROL"] = folder / "page";
    const OwnEnvironment environment(with_page);
    const col::ContextSpec spec = col::ContextSpec::from_environment();
    CHECK((spec.is_spare && spec.rank == 5 && spec.world_size == 4 && spec.local_rank == 5));
    CHECK((spec.store && spec.control && spec.launcher == "colrun"));
  }
  values["COL_RANK"] = "1";
  CHECK(mentions(message(values), "COL_RANK=1 and COL_SPARE=5 are both set"));
  values.erase("COL_RANK");
  values.erase("COL_STORE");
  CHECK(mentions(message(values), "COL_STORE is not set"));
  values.erase("COL_WORLD_SIZE");
  CHECK(mentions(message(values), "COL_SPARE is set but COL_WORLD_SIZE is not"));
}
