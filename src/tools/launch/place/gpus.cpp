#include "core/clock/clock.hpp"
#include "launch/place/placement.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "common/exit_codes.hpp"
#include "common/numbers.hpp"
#include "common/unique_fd.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/job/small_file.hpp"

namespace col::launch {
namespace {

using Clock = core::Clock;

constexpr int kMaxGpus = 4096;
constexpr int kMaxNodeNumber = 65536;
constexpr std::chrono::seconds kKillWait{1};  // a process that the kernel holds fast is not waited for

bool is_uuid(std::string_view text) {
  return text.starts_with("GPU-") && text.find('?') == std::string_view::npos;
}

// `bus_id` in the driver's form, or in nvidia-smi's ("00000000:0A:00.0"). Machines with one node may say -1.
int node_of_bus(const GpuSources& sources, std::string_view bus_id) {
  constexpr std::size_t kShort = 12;  // of "0000:0a:00.0"
  while (bus_id.size() > kShort && bus_id.starts_with('0')) bus_id.remove_prefix(1);
  std::string name(bus_id);
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  const auto node = read_number(fmt::format("{}/bus/pci/devices/{}/numa_node", sources.sys, name));
  return node && *node >= 0 && *node < kMaxNodeNumber ? static_cast<int>(*node) : -1;
}

// Nothing when the driver's files do not tell: it writes question marks for a device that nobody has used yet.
std::optional<std::vector<Gpu>> from_driver_files(const GpuSources& sources) {
  const std::string path = sources.proc + "/driver/nvidia/gpus";
  const auto names = names_in(path);
  if (!names) return std::nullopt;
  std::vector<std::pair<std::string, std::string>> found;  // PCI bus id, UUID
  for (const std::string& name : *names) {
    const std::optional<std::string> text = read_small_file(fmt::format("{}/{}/information", path, name));
    if (!text) return std::nullopt;
    // A container may see the files of all devices and have been given some of them.
    const std::string_view minor = field(*text, "Device Minor");
    if (!minor.empty() && ::access(fmt::format("{}/nvidia{}", sources.dev, minor).c_str(), F_OK) != 0) continue;
    const std::string_view uuid = field(*text, "GPU UUID");
    if (!is_uuid(uuid)) return std::nullopt;
    found.emplace_back(name, uuid);
  }
  std::ranges::sort(found);
  std::vector<Gpu> gpus;
  for (auto& [bus_id, uuid] : found) gpus.push_back({std::move(uuid), node_of_bus(sources, bus_id)});
  return gpus;
}

// -1 when there is no such program. Its output goes to `output`.
pid_t start_query(const std::string& program, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::array<std::string, 3> words = {program, "--query-gpu=uuid,pci.bus_id", "--format=csv,noheader"};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, program.c_str(), &actions, &attributes, arguments.data(), ::environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

// All that comes until the writer is gone; nothing when that takes too long.
std::optional<std::string> read_until(int fd, Clock::time_point deadline) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::string text;
  std::array<char, 4096> buffer;
  while (text.size() < kMostBytes) {
    pollfd event{fd, POLLIN, 0};
    const int ready = core::poll_for({&event, 1}, deadline - Clock::now());
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    const ssize_t length = ::read(fd, buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::nullopt;
    if (length == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
  return std::nullopt;
}

// Its wait status; -1 when it has not ended by then.
int await_end(pid_t pid, Clock::time_point deadline) {
  int status = 0;
  // It has closed its output, or was killed: this takes no time. A pidfd may be refused.
  for (;; core::sleep_for(std::chrono::milliseconds(1))) {
    if (::waitpid(pid, &status, WNOHANG) == pid) return status;
    if (Clock::now() >= deadline) return -1;
  }
}

std::vector<Gpu> from_nvidia_smi(const GpuSources& sources) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const tools::UniqueFd output(ends[0]);
  tools::UniqueFd input(ends[1]);
  const pid_t pid = start_query(sources.nvidia_smi, input.get());
  input.reset();
  if (pid < 0) return {};
  const Clock::time_point deadline = Clock::now() + sources.limit;
  const std::optional<std::string> text = read_until(output.get(), deadline);
  if (!text) ::kill(-pid, SIGKILL);
  int status = await_end(pid, deadline);
  if (status < 0 && ::kill(-pid, SIGKILL) == 0) status = await_end(pid, Clock::now() + kKillWait);
  std::vector<Gpu> gpus;
  if (!text || status != 0) return gpus;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view line = take(rest, '\n');
    const std::string_view uuid = trimmed(take(line, ','));
    if (is_uuid(uuid)) gpus.push_back({std::string(uuid), node_of_bus(sources, trimmed(line))});
  }
  return gpus;
}

// The device that one entry of CUDA_VISIBLE_DEVICES names; empty: none.
std::string device_named(const std::vector<std::string>& uuids, std::string_view entry) {
  if (uuids.empty()) return {};
  if (entry.starts_with("MIG-")) return std::string(entry);
  if (const auto index = tools::parse_whole_number(entry, 0, kMaxGpus)) {
    const auto position = static_cast<std::size_t>(*index);
    return position < uuids.size() ? uuids[position] : std::string();
  }
  if (!entry.starts_with("GPU-")) return {};
  const auto is_meant = [&](const std::string& uuid) { return uuid.starts_with(entry); };
  const auto first = std::ranges::find_if(uuids, is_meant);
  const bool is_unique = first != uuids.end() && std::find_if(first + 1, uuids.end(), is_meant) == uuids.end();
  return is_unique ? *first : std::string();
}

}  // namespace

std::vector<Gpu> find_gpus(const GpuSources& sources) {
  if (std::optional<std::vector<Gpu>> gpus = from_driver_files(sources)) return *std::move(gpus);
  return from_nvidia_smi(sources);
}

std::vector<std::string> uuids_of(const std::vector<Gpu>& gpus) {
  std::vector<std::string> uuids;
  for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

std::vector<int> nodes_of_devices(const std::vector<std::string>& values, const std::vector<Gpu>& gpus) {
  std::vector<int> nodes;
  for (std::string_view rest : values) {
    std::optional<int> common;
    while (!rest.empty()) {
      const auto gpu = std::ranges::find(gpus, take(rest, ','), &Gpu::uuid);
      const int node = gpu != gpus.end() ? gpu->node : -1;
      common = common.value_or(node) == node ? node : -1;
    }
    nodes.push_back(common.value_or(-1));
  }
  return nodes;
}

std::vector<std::string> visible_gpus(const std::vector<std::string>& uuids, std::optional<std::string_view> visible) {
  if (!visible) return uuids;
  std::vector<std::string> gpus;
  for (std::string_view rest = *visible; !rest.empty();) {
    std::string device = device_named(uuids, trimmed(take(rest, ',')));
    // A device named twice is an error to CUDA, which then shows none.
    if (std::ranges::find(gpus, device) != gpus.end()) return {};
    if (device.empty()) break;
    gpus.push_back(std::move(device));
  }
  return gpus;
}

std::vector<std::string> assign_gpus(const std::vector<std::string>& gpus, int gpus_per_rank, int local_ranks) {
  std::vector<std::string> values;
  if (gpus_per_rank == 0) return values;
  const auto each = static_cast<std::size_t>(gpus_per_rank);
  const auto ranks = static_cast<std::size_t>(local_ranks);
  if (gpus.size() < each * ranks) {
    const auto named = [](std::size_t number, std::string_view noun) {
      return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
    };
    const std::string remedy =
        gpus.empty() ? "leave --gpus-per-rank out, or see whether nvidia-smi -L and CUDA_VISIBLE_DEVICES show some"
        : gpus.size() >= each ? fmt::format("start at most {}, or give them fewer", named(gpus.size() / each, "rank"))
                              : fmt::format("give a rank at most {}", gpus.size());
    throw LaunchError(
        tools::exit_code::kLauncher,
        fmt::format("{} with {} each need {}, but {} can be used here; {}", named(ranks, "rank"), named(each, "GPU"),
                    each * ranks, gpus.empty() ? "none" : std::to_string(gpus.size()), remedy));
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::string& value = values.emplace_back();
    for (std::size_t i = rank * each; i < (rank + 1) * each; ++i) value += (value.empty() ? "" : ",") + gpus[i];
  }
  return values;
}

}  // namespace col::launch
