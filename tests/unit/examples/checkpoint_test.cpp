#include "checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "text.hpp"

namespace {

constexpr digits::Shape kShape{.hidden = 3};

digits::TrainingState some_state() {
  auto state = digits::fresh_state(kShape, 11, 96, 0.05);
  state.epochs = 4;
  for (std::size_t i = 0; i < state.velocity.size(); ++i) state.velocity[i] = 0.001f * static_cast<float>(i);
  return state;
}

std::string read(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Why `bytes` are refused; empty when they are taken.
std::string refusal(const std::string& path, const digits::Shape& shape = kShape) {
  try {
    digits::load_checkpoint(path, shape);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("checkpoint: what is loaded is what was saved", "[examples]") {
  const col::test::TempDir directory;
  const auto state = some_state();
  digits::save_checkpoint(state, directory / "a.model");
  const auto loaded = digits::load_checkpoint(directory / "a.model", kShape);
  CHECK(loaded.shape == state.shape);
  CHECK(loaded.epochs == 4);
  CHECK(loaded.seed == 11);
  CHECK(loaded.batch == 96);
  CHECK(loaded.learning_rate == 0.05);
  CHECK(loaded.parameters == state.parameters);
  CHECK(loaded.velocity == state.velocity);
}

TEST_CASE("checkpoint: saving replaces the old file and leaves nothing beside it", "[examples]") {
  const col::test::TempDir directory;
  write(directory / "a.model", "old");
  digits::save_checkpoint(some_state(), directory / "a.model");
  CHECK(refusal(directory / "a.model").empty());
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("checkpoint: a file that cannot be written is named, and nothing is left", "[examples]") {
  const col::test::TempDir directory;
  std::filesystem::create_directory(directory / "taken");
  std::filesystem::create_directory(directory / "taken/full");  // rename cannot replace a folder that is not empty
  for (const std::string& path : {directory / "absent/a.model", directory / "taken"}) {
    std::string text;
    try {
      digits::save_checkpoint(some_state(), path);
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    CHECK(missing(text, {"'" + path + "'", "--model"}) == "");
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("checkpoint: a file cut short anywhere is refused", "[examples]") {
  const col::test::TempDir directory;
  digits::save_checkpoint(some_state(), directory / "a.model");
  const std::string bytes = read(directory / "a.model");
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    write(directory / "b.model", bytes.substr(0, size));
    const std::string text = refusal(directory / "b.model");
    REQUIRE(missing(text, {"b.model"}) == "");
    REQUIRE(missing(text, {size < 8 ? "is not a checkpoint" : "is cut short"}) == "");
  }
  write(directory / "b.model", bytes + "x");
  CHECK(missing(refusal(directory / "b.model"), {"is too long"}) == "");
}

TEST_CASE("checkpoint: a changed bit anywhere is refused", "[examples]") {
  const col::test::TempDir directory;
  digits::save_checkpoint(some_state(), directory / "a.model");
  const std::string bytes = read(directory / "a.model");
  for (std::size_t at = 0; at < bytes.size(); at += 5) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write(directory / "b.model", damaged);
    REQUIRE_FALSE(refusal(directory / "b.model").empty());
  }
}

TEST_CASE("checkpoint: what is no checkpoint of this program's model is refused with its reason", "[examples]") {
  const col::test::TempDir directory;
  write(directory / "text", "col is not a model\n");
  CHECK(missing(refusal(directory / "text"), {"is not a checkpoint of digits_trainer"}) == "");
  CHECK(missing(refusal(directory / "absent"), {"No such file"}) == "");
  CHECK(missing(refusal(directory.path()), {"is a directory"}) == "");

  digits::save_checkpoint(some_state(), directory / "a.model");
  CHECK(missing(refusal(directory / "a.model", {.hidden = 128}), {"64-3-10", "64-128-10"}) == "");

  std::string other_version = read(directory / "a.model");
  other_version[8] = 9;
  write(directory / "b.model", other_version);
  CHECK(missing(refusal(directory / "b.model"), {"format version 9"}) == "");
}
