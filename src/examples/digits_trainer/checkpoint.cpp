// Layout, in the byte order of the machine: 8 bytes of magic; format version, inputs, hidden, classes (32 bits each);
// epochs, seed, batch (64 bits each); learning rate (a double); parameters and velocities (floats); a 64-bit checksum
// of all before it.
#include "checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace digits {
namespace {

constexpr std::string_view kMagic = "coldigit";
constexpr std::uint32_t kVersion = 1;

// FNV-1a: enough to notice damage.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  return hash;
}

template <class T>
void put(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& bytes, const std::vector<float>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// Requires: enough bytes are left.
template <class T>
void take(std::string_view& bytes, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
}

void take(std::string_view& bytes, std::vector<float>& values) {
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  bytes.remove_prefix(values.size() * sizeof(float));
}

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw std::runtime_error("model file '" + path.string() + "' " + why);
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  fail(path, why + "; --resume takes a file that --model has written");
}

constexpr int kMaxLinks = 40;  // as many as the kernel follows

// The end of a chain of links, whether it exists or not.
std::filesystem::path follow_links(const std::filesystem::path& path) {
  std::filesystem::path end = path;
  std::error_code ignored;
  for (int links = 0; links < kMaxLinks && std::filesystem::is_symlink(end, ignored); ++links) {
    end = end.parent_path() / std::filesystem::read_symlink(end);
  }
  return end;
}

// A file that is removed again unless it was committed under its final name.
class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path target)
      : target_(std::move(target)),
        temporary_(target_.string() + ".part-" + std::to_string(::getpid())),
        fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail_errno("cannot be created");
  }
  ~PendingFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!committed_) ::unlink(temporary_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_errno("cannot be written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void commit() {
    if (::fsync(fd_) != 0) fail_errno("cannot be written");  // or a power cut could leave the name without the bytes
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno("cannot be put in place");
    committed_ = true;
  }

 private:
  [[noreturn]] void fail_errno(const std::string& what) const {
    fail(target_, what + ": " + std::strerror(errno) + "; name another with --model FILE");
  }

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int fd_;
  bool committed_ = false;
};

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse(path, "is a directory");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse(path, std::string("cannot be opened: ") + std::strerror(errno));
  std::string bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (stream.bad()) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  return bytes;
}

constexpr std::size_t kHeaderBytes = 8 + 4 * sizeof(std::uint32_t) + 3 * sizeof(std::uint64_t) + sizeof(double);

std::string describe(const Shape& shape) {
  return std::to_string(shape.inputs) + "-" + std::to_string(shape.hidden) + "-" + std::to_string(shape.classes);
}

}  // namespace

TrainingState fresh_state(const Shape& shape, std::uint64_t seed, std::uint64_t batch, double learning_rate) {
  Model model(shape);
  model.initialize(seed);
  const auto parameters = model.parameters();
  return {.shape = shape,
          .epochs = 0,
          .seed = seed,
          .batch = batch,
          .learning_rate = learning_rate,
          .parameters = {parameters.begin(), parameters.end()},
          .velocity = std::vector<float>(parameters.size())};
}

std::filesystem::path checkpoint_target(const std::filesystem::path& path) {
  const std::string advice = "; name another with --model FILE";
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) fail(path, "is a directory; name a file with --model FILE");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    fail(path, "exists and is not a regular file" + advice + ", or write none with --no-save");
  }
  if (!std::filesystem::status_known(status)) fail(path, "cannot be written: " + error.message() + advice);

  const std::filesystem::path target = follow_links(path);
  const auto folder = target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, error)) {
    fail(path, "cannot be written: there is no folder '" + folder.string() + "'; create it, or name another with " +
                   "--model FILE");
  }
  return target;
}

void save_checkpoint(const TrainingState& state, const std::filesystem::path& path) {
  std::string bytes(kMagic);
  put(bytes, kVersion);
  put(bytes, state.shape.inputs);
  put(bytes, state.shape.hidden);
  put(bytes, state.shape.classes);
  put(bytes, state.epochs);
  put(bytes, state.seed);
  put(bytes, state.batch);
  put(bytes, state.learning_rate);
  put(bytes, state.parameters);
  put(bytes, state.velocity);
  put(bytes, checksum(bytes));

  PendingFile file(checkpoint_target(path));
  file.write(bytes);
  file.commit();
}

TrainingState load_checkpoint(const std::filesystem::path& path, const Shape& expected) {
  const std::string bytes = read_file(path);
  std::string_view rest = bytes;
  if (!rest.starts_with(kMagic)) refuse(path, "is not a checkpoint of digits_trainer");
  if (rest.size() < kHeaderBytes) refuse(path, "is cut short: " + std::to_string(rest.size()) + " bytes");
  rest.remove_prefix(kMagic.size());

  std::uint32_t version = 0;
  TrainingState state;
  take(rest, version);
  if (version != kVersion) {
    refuse(path, "has format version " + std::to_string(version) + ", this program reads version " +
                     std::to_string(kVersion));
  }
  take(rest, state.shape.inputs);
  take(rest, state.shape.hidden);
  take(rest, state.shape.classes);
  if (state.shape != expected) {
    refuse(path, "holds a model of shape " + describe(state.shape) + ", this program trains " + describe(expected));
  }
  take(rest, state.epochs);
  take(rest, state.seed);
  take(rest, state.batch);
  take(rest, state.learning_rate);

  const std::size_t body = 2 * expected.parameters() * sizeof(float) + sizeof(std::uint64_t);
  if (rest.size() != body) {
    refuse(path, (rest.size() < body ? "is cut short: " : "is too long: ") + std::to_string(bytes.size()) +
                     " bytes instead of " + std::to_string(kHeaderBytes + body));
  }
  state.parameters.resize(expected.parameters());
  state.velocity.resize(expected.parameters());
  take(rest, state.parameters);
  take(rest, state.velocity);
  std::uint64_t stored = 0;
  take(rest, stored);
  if (stored != checksum(std::string_view(bytes).substr(0, bytes.size() - sizeof stored))) {
    refuse(path, "is damaged: its checksum does not match");
  }
  if (state.batch == 0) refuse(path, "is damaged: its batch size is zero");
  return state;
}

}  // namespace digits
