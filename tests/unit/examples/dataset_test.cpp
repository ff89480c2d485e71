#include "dataset.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "text.hpp"

namespace {

std::string row(int pixel, const std::string& label) {
  std::string line;
  for (int i = 0; i < digits::kPixels; ++i) line += std::to_string(pixel) + ",";
  return line + label;
}

// What the parser says about `text`; empty when it takes it.
std::string complaint(const std::string& text) {
  std::istringstream stream(text);
  try {
    digits::read_images(stream, "digits.csv");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

std::string complaint_about_file(const std::string& path) {
  try {
    digits::load_images(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("dataset: the committed data has 1,797 images and every digit", "[examples]") {
  const auto images = digits::load_images(DIGITS_SOURCE_DATA);
  REQUIRE(images.size() == 1797);
  std::map<int, int> per_label;
  for (const auto& image : images) {
    ++per_label[image.label];
    for (const float pixel : image.pixels) REQUIRE((pixel >= -1.0f && pixel <= 1.0f));
  }
  REQUIRE(per_label.size() == 10);
  for (const auto& [label, count] : per_label) CHECK((label >= 0 && label <= 9 && count >= 174 && count <= 183));
}

TEST_CASE("dataset: every image is in exactly one of the training and the test set", "[examples]") {
  const auto images = digits::load_images(DIGITS_SOURCE_DATA);
  const auto dataset = digits::split(images);
  CHECK(dataset.train.size() == 1438);
  CHECK(dataset.test.size() == 359);
  CHECK(dataset.test[0].pixels == images[4].pixels);
  CHECK(dataset.train[4].pixels == images[5].pixels);
}

TEST_CASE("dataset: pixels are scaled to -1..1, with and without a carriage return", "[examples]") {
  std::istringstream stream(row(0, "7") + "\r\n" + row(16, "0"));
  const auto images = digits::read_images(stream, "digits.csv");
  REQUIRE(images.size() == 2);
  CHECK(images[0].pixels[63] == -1.0f);
  CHECK(images[0].label == 7);
  CHECK(images[1].pixels[0] == 1.0f);
  CHECK(images[1].label == 0);
}

TEST_CASE("dataset: a malformed row names the line and what was expected", "[examples]") {
  const std::string good = row(8, "3") + "\n";
  CHECK(complaint(good).empty());
  CHECK(complaint("") == "digits.csv: holds no image; --data takes a CSV file with 65 values a line");
  CHECK(complaint(good + "1,2\n") == "digits.csv:2: expected 65 values (64 pixels 0..16 and a label 0..9), found 2");
  CHECK(complaint(good + good + row(8, "3,1")) ==
        "digits.csv:3: expected 65 values (64 pixels 0..16 and a label 0..9), found more");
  CHECK(complaint(good + "\n" + good) ==
        "digits.csv:2: expected 65 values (64 pixels 0..16 and a label 0..9), found 1");
  CHECK(complaint(row(17, "3")) == "digits.csv:1: value 1 is '17', expected a whole number 0..16");
  CHECK(complaint(row(-1, "3")) == "digits.csv:1: value 1 is '-1', expected a whole number 0..16");
  CHECK(complaint(row(8, "10")) == "digits.csv:1: value 65 is '10', expected a whole number 0..9");
  CHECK(complaint(row(8, "")) == "digits.csv:1: value 65 is '', expected a whole number 0..9");
  CHECK(complaint(row(8, "3.5")) == "digits.csv:1: value 65 is '3.5', expected a whole number 0..9");
  CHECK(complaint(row(8, "three")) == "digits.csv:1: value 65 is 'three', expected a whole number 0..9");
  CHECK(complaint(row(8, " 3")) == "digits.csv:1: value 65 is ' 3', expected a whole number 0..9");
}

TEST_CASE("dataset: a file that cannot be read is named", "[examples]") {
  const col::test::TempDir directory;
  CHECK(missing(complaint_about_file(directory / "absent.csv"), {"absent.csv", "No such file", "--data"}) == "");
  CHECK(missing(complaint_about_file(directory.path()), {directory.path(), "is a directory"}) == "");
}

TEST_CASE("dataset: too few images to split are refused", "[examples]") {
  std::vector<digits::Image> images(4);
  CHECK_THROWS_AS(digits::split(images), std::runtime_error);
  images.resize(5);
  CHECK(digits::split(images).test.size() == 1);
}

TEST_CASE("dataset: a program that is not installed finds the data in the source tree", "[examples]") {
  CHECK(std::filesystem::equivalent(digits::find_data(), DIGITS_SOURCE_DATA));
}

TEST_CASE("sampling: the shards of 1 to 17 ranks cover each image once", "[examples]") {
  for (int size = 1; size <= 17; ++size) {
    for (const std::size_t count : {0u, 1u, 5u, 16u, 17u, 30u, 127u, 128u}) {
      INFO("ranks " << size << ", images " << count);
      std::size_t next = 0;
      std::size_t shortest = count;
      std::size_t longest = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto range = digits::shard(count, rank, size);
        REQUIRE(range.begin == next);
        REQUIRE(range.end >= range.begin);
        shortest = std::min(shortest, range.end - range.begin);
        longest = std::max(longest, range.end - range.begin);
        next = range.end;
      }
      CHECK(next == count);
      CHECK(longest - shortest <= 1);
    }
  }
}

TEST_CASE("sampling: an epoch visits every image once", "[examples]") {
  for (const std::size_t count : {0u, 1u, 2u, 1438u}) {
    auto order = digits::epoch_order(1, 0, count);
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), 0u);
    CHECK(order == all);
  }
}

TEST_CASE("sampling: the order depends on seed and epoch, and on nothing else", "[examples]") {
  const auto order = digits::epoch_order(1, 0, 100);
  CHECK(order == digits::epoch_order(1, 0, 100));
  CHECK(order != digits::epoch_order(1, 1, 100));
  CHECK(order != digits::epoch_order(2, 0, 100));
  CHECK(order != digits::epoch_order(std::uint64_t{1} << 32, 0, 100));
}

TEST_CASE("sampling: the order is the same on every machine", "[examples]") {
  CHECK(digits::epoch_order(1, 0, 8) == std::vector<std::uint32_t>{7, 6, 0, 5, 2, 3, 1, 4});
}

TEST_CASE("sampling: batches cover the order, and only the last is shorter", "[examples]") {
  const auto order = digits::epoch_order(1, 0, 7);
  for (const std::size_t size : {1u, 3u, 7u, 100u}) {
    std::vector<std::uint32_t> joined;
    const auto cut = digits::batches(order, size);
    for (std::size_t i = 0; i < cut.size(); ++i) {
      CHECK(cut[i].size() == (i + 1 < cut.size() ? size : order.size() - i * size));
      joined.insert(joined.end(), cut[i].begin(), cut[i].end());
    }
    CHECK(joined == order);
  }
  CHECK(digits::batches({}, 3).empty());
}
