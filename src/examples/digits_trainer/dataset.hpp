// The labelled images: reading them, finding the file, the fixed split into training and test images, the order of an
// epoch, and each rank's part of a batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <span>
#include <string_view>
#include <vector>

namespace digits {

inline constexpr int kPixels = 64;  // 8 x 8
inline constexpr int kClasses = 10;

struct Image {
  std::array<float, kPixels> pixels;  // -1 (white) to 1 (black): centred inputs train better
  int label;                          // 0 to 9
};

struct Dataset {
  std::vector<Image> train;
  std::vector<Image> test;
};

// Reads "64 pixels 0..16, label 0..9" per line, separated by commas. Throws std::runtime_error: "NAME:LINE: what was
// expected and what was found".
std::vector<Image> read_images(std::istream& stream, std::string_view name);
// The same from a file; also throws when it cannot be read.
std::vector<Image> load_images(const std::filesystem::path& path);

// Every fifth image is for testing, the others for training: the same split for every seed and number of ranks. Throws
// std::runtime_error when there are too few images for one of either.
Dataset split(const std::vector<Image>& images);

// Where the data file is when the user does not say: ../share/col/digits.csv from this executable, else in the source
// tree. Throws std::runtime_error naming both when neither is there.
std::filesystem::path find_data();

// The rest are pure functions of what all ranks know, so that nothing has to be exchanged to agree on them.

struct Shard {
  std::size_t begin;
  std::size_t end;
};

// The part of [0, count) that `rank` of `size` ranks works on: contiguous, in rank order, of sizes that differ by one
// at most. Together they cover each index once; with fewer indices than ranks some are empty.
Shard shard(std::size_t count, int rank, int size);

// `order` cut into runs of `size`; the last may be shorter. Requires: size > 0; `order` outlives the result.
std::vector<std::span<const std::uint32_t>> batches(std::span<const std::uint32_t> order, std::size_t size);

// A permutation of [0, count) that depends on seed and epoch alone, on every machine.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::size_t count);

}  // namespace digits
