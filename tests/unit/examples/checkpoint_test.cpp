#include "checkpoint.hpp"

#include <sys/stat.h>

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

// Why no model is written to `path`, asked before and while saving; empty when one is.
std::string refusal_to_write(const std::string& path) {
  std::string asked;
  std::string saving;
  try {
    digits::checkpoint_target(path);
  } catch (const std::runtime_error& error) {
    asked = error.what();
  }
  try {
    digits::save_checkpoint(some_state(), path);
  } catch (const std::runtime_error& error) {
    saving = error.what();
  }
  CHECK(asked == saving);
  return saving;
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
  std::filesystem::create_symlink("absent/a.model", directory / "homeless");
  std::filesystem::create_symlink("loop", directory / "loop");
  for (const std::string& path :
       {directory / "absent/a.model", directory / "taken", directory / "homeless", directory / "loop"}) {
    CHECK(missing(refusal_to_write(path), {"'" + path + "'", "--model"}) == "");
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 3);
}

TEST_CASE("checkpoint: what is no regular file is refused and stays what it is", "[examples]") {
  const col::test::TempDir directory;
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("pipe", directory / "link");
  for (const std::string& path : {directory / "pipe", directory / "link"}) {
    CHECK(missing(refusal_to_write(path),
                  {"'" + path + "' exists and is not a regular file", "--model", "--no-save"}) == "");
  }
  CHECK(std::filesystem::is_fifo(std::filesystem::symlink_status(directory / "pipe")));
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 2);
}

TEST_CASE("checkpoint: saving through links writes what they point to and keeps them", "[examples]") {
  const col::test::TempDir directory;
  std::filesystem::create_directory(directory / "folder");
  std::filesystem::create_symlink("second", directory / "first");
  std::filesystem::create_symlink(directory / "folder/a.model", directory / "second");
  for (const std::string before : {"nothing", "a file"}) {
    INFO("the links point to " << before);
    digits::save_checkpoint(some_state(), directory / "first");
    CHECK(std::filesystem::is_symlink(directory / "first"));
    CHECK(std::filesystem::is_symlink(directory / "second"));
    CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(directory / "folder/a.model")));
    CHECK(refusal(directory / "folder/a.model").empty());
    write(directory / "folder/a.model", "old");
  }
  CHECK(std::distance(std::filesystem::directory_iterator(directory / "folder"), {}) == 1);
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
  CHECK(missing(refusal(directory / "text"), {"is not a checkpoint of digits_trainer; --resume"}) == "");
  CHECK(missing(refusal(directory / "absent"), {"No such file"}) == "");
  CHECK(missing(refusal(directory.path()), {"is a directory"}) == "");

  digits::save_checkpoint(some_state(), directory / "a.model");
  CHECK(missing(refusal(directory / "a.model", {.hidden = 128}), {"64-3-10", "64-128-10"}) == "");

  std::string other_version = read(directory / "a.model");
  other_version[8] = 9;
  write(directory / "b.model", other_version);
  CHECK(missing(refusal(directory / "b.model"), {"format version 9"}) == "");
}
