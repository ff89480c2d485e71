#include "dataset.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace digits {
namespace {

constexpr int kMaxPixel = 16;
constexpr std::size_t kTestEvery = 5;

[[noreturn]] void reject(std::string_view name, std::size_t line, const std::string& why) {
  throw std::runtime_error(std::string(name) + ":" + std::to_string(line) + ": " + why);
}

// A whole number in [0, most], -1 when `text` is anything else.
int parse_number(std::string_view text, int most) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value <= most ? value : -1;
}

Image parse_line(std::string_view line, std::string_view name, std::size_t number) {
  Image image{};
  std::string_view rest = line;
  for (int column = 0; column <= kPixels; ++column) {
    const std::size_t comma = rest.find(',');
    const bool last = column == kPixels;
    if (last != (comma == std::string_view::npos)) {
      reject(name, number,
             "expected 65 values (64 pixels 0..16 and a label 0..9), found " +
                 (last ? "more" : std::to_string(column + 1)));
    }
    const std::string_view field = rest.substr(0, comma);
    const int most = last ? kClasses - 1 : kMaxPixel;
    const int value = parse_number(field, most);
    if (value < 0) {
      reject(name, number,
             "value " + std::to_string(column + 1) + " is '" + std::string(field.substr(0, 20)) +
                 "', expected a whole number 0.." + std::to_string(most));
    }
    if (last) {
      image.label = value;
    } else {
      image.pixels[static_cast<std::size_t>(column)] = static_cast<float>(2 * value - kMaxPixel) / kMaxPixel;
      rest.remove_prefix(comma + 1);
    }
  }
  return image;
}

}  // namespace

std::vector<Image> read_images(std::istream& stream, std::string_view name) {
  std::vector<Image> images;
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    images.push_back(parse_line(line, name, number));
  }
  if (stream.bad()) throw std::runtime_error(std::string(name) + ": cannot be read: " + std::strerror(errno));
  if (images.empty()) {
    throw std::runtime_error(std::string(name) + ": holds no image; --data takes a CSV file with 65 values a line");
  }
  return images;
}

std::vector<Image> load_images(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw std::runtime_error("data file '" + path.string() + "' is a directory; --data takes a CSV file");
  }
  std::ifstream stream(path);
  if (!stream) {
    throw std::runtime_error("data file '" + path.string() + "' cannot be opened: " + std::strerror(errno) +
                             "; --data takes a CSV file");
  }
  return read_images(stream, path.string());
}

Dataset split(const std::vector<Image>& images) {
  if (images.size() < kTestEvery) {
    throw std::runtime_error("the data has " + std::to_string(images.size()) + " images; at least " +
                             std::to_string(kTestEvery) + " are needed for a training and a test set");
  }
  Dataset dataset;
  for (std::size_t i = 0; i < images.size(); ++i) {
    (i % kTestEvery == kTestEvery - 1 ? dataset.test : dataset.train).push_back(images[i]);
  }
  return dataset;
}

std::filesystem::path find_data() {
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  // Installed in PREFIX/libexec/col, or unpacked in some folder's bin.
  auto installed = executable;
  for (auto folder = executable.parent_path(); !error && folder != folder.root_path(); folder = folder.parent_path()) {
    installed = folder / "share" / "col" / "digits.csv";
    if (std::filesystem::exists(installed, error)) return installed;
  }
  const std::filesystem::path source = DIGITS_SOURCE_DATA;  // for runs from the build directory
  if (std::filesystem::exists(source, error)) return source;
  throw std::runtime_error("no share/col/digits.csv beside or above '" + executable.string() + "', and no '" +
                           source.string() + "'; name one with --data FILE");
}

Shard shard(std::size_t count, int rank, int size) {
  const auto r = static_cast<std::size_t>(rank);
  const auto n = static_cast<std::size_t>(size);
  const std::size_t base = count / n;
  const std::size_t longer = count % n;  // the first `longer` ranks take one more
  const std::size_t begin = r * base + (r < longer ? r : longer);
  return {begin, begin + base + (r < longer ? 1 : 0)};
}

std::vector<std::span<const std::uint32_t>> batches(std::span<const std::uint32_t> order, std::size_t size) {
  std::vector<std::span<const std::uint32_t>> cut;
  for (std::size_t begin = 0; begin < order.size(); begin += cut.back().size()) {
    cut.push_back(order.subspan(begin, std::min(size, order.size() - begin)));
  }
  return cut;
}

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  // The engine and seed_seq are fixed by the standard; std::shuffle is not, so the swaps are spelled out.
  std::seed_seq words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(epoch >> 32)};
  std::mt19937_64 engine(words);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[engine() % left]);
  return order;
}

}  // namespace digits
