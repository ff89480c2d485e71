// A driver for fuzz targets where the compiler has no libFuzzer: tries the corpus, then mutations of it.
//
// usage: TARGET SECONDS SEED PATH…     SEED 0: a random one. PATH: a file, or a folder of files. Prints the seed; a
// failure prints the input, too.
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "target.hpp"

namespace {

using Random = std::mt19937_64;

constexpr std::size_t kLongest = 65536;

// What breaks readers of JSON, and words of our formats.
constexpr std::array kTokens = {"0",
                                "1",
                                "-1",
                                "2",
                                "65536",
                                "4294967296",
                                "9007199254740992",
                                "9007199254740993",
                                "1e999",
                                "0.5",
                                "true",
                                "null",
                                "[",
                                "]",
                                "{",
                                "}",
                                ",",
                                ":",
                                "\"",
                                "\\u0000",
                                "\xff",
                                "[]",
                                "{}",
                                "\"input\"",
                                "\"output\"",
                                "\"scratch\"",
                                "\"wide\"",
                                "\"send\"",
                                "\"recv\"",
                                "\"to\"",
                                "\"from\"",
                                "\"into\"",
                                "\"chunks\"",
                                "\"elements\"",
                                "\"count\"",
                                "\"counts\"",
                                "\"root\"",
                                "\"ranks\"",
                                "\"in_place\"",
                                "\"widens\"",
                                "\"barrier\"",
                                "\"alltoallv\"",
                                "\"64K\"",
                                "radix=",
                                "segment=",
                                "allreduce:",
                                "file:"};

std::string current;  // for the report of a crash

void report(int signal) {
  // Only what may be called in a handler.
  constexpr std::string_view kBefore = "\nfuzz: the input was\n";
  (void)!::write(STDERR_FILENO, kBefore.data(), kBefore.size());
  (void)!::write(STDERR_FILENO, current.data(), current.size());
  (void)!::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, Random& random) : corpus_(corpus), random_(random) {}

  std::string next() {
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) change(text);
    if (text.size() > kLongest) text.resize(kLongest);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change(std::string& text) {
    const std::size_t at = below(text.size() + 1);
    const std::size_t length = std::min(text.size() - at, 1 + below(8) * below(8));
    switch (below(9)) {
      case 0:
        text.insert(at, kTokens[below(kTokens.size())]);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(below(text.size() + 1), std::string(text, at, length));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 4:
        replace_word(text, at);
        break;
      case 5:
        replace_number(text, at);
        break;
      case 6:
      case 7:
        replace_everywhere(text, at);
        break;
      default: {
        const std::string& other = corpus_[below(corpus_.size())];
        text.replace(at, length, other, below(other.size()), 1 + below(40));
      }
    }
  }
  // The next run of digits becomes another small number, which keeps most files readable, or one at some limit.
  void replace_number(std::string& text, std::size_t at) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    const std::uint64_t number = below(4) == 0 ? (std::uint64_t{1} << below(64)) - below(3) : below(8);
    text.replace(begin, end - begin, std::to_string(number));
  }
  // A short piece that ends in a digit becomes another one wherever it is: an offset, a rank, in all its uses.
  void replace_everywhere(std::string& text, std::size_t at) {
    const std::size_t digit = text.find_first_of("0123456789", at);
    if (digit == std::string::npos) return;
    const std::size_t begin = digit - std::min(digit, 2 + below(14));
    const std::string piece(text, begin, digit + 1 - begin);
    std::string other = piece;
    other.back() = static_cast<char>('0' + below(7));
    for (std::size_t i = text.find(piece); i != std::string::npos; i = text.find(piece, i + other.size()))
      text.replace(i, piece.size(), other);
  }
  // The next quoted word becomes a known one.
  void replace_word(std::string& text, std::size_t at) {
    const std::size_t begin = text.find('"', at);
    const std::size_t end = begin == std::string::npos ? begin : text.find('"', begin + 1);
    if (end != std::string::npos) text.replace(begin, end + 1 - begin, kTokens[below(kTokens.size())]);
  }

  const std::vector<std::string>& corpus_;
  Random& random_;
};

void read_corpus(const std::filesystem::path& path, std::vector<std::string>& corpus) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
    std::sort(files.begin(),
              files.end());  // the order of a directory is nobody's: a seed must mean the same everywhere
  } else {
    files.push_back(path);
  }
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
}

void try_input(std::string text) {
  current = std::move(text);
  (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(current.data()), current.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s SECONDS SEED PATH...\n", argv[0]);
    return 2;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::strtoul(argv[1], nullptr, 10));
  std::uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  if (seed == 0) seed = std::random_device{}() | 1u;
  std::vector<std::string> corpus;
  for (int i = 3; i < argc; ++i) read_corpus(argv[i], corpus);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: the corpus is empty\n", argv[0]);
    return 2;
  }
  std::printf("%zu files, seed %llu\n", corpus.size(), static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, report);
  Random random(seed);
  Mutator mutator(corpus, random);
  for (const std::string& text : corpus) try_input(text);
  std::size_t tried = 0;
  for (; std::chrono::steady_clock::now() < end; ++tried) try_input(mutator.next());
  std::printf("%zu mutations tried\n", tried);
}
