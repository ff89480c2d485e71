#include "launch/report/stacks.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "launch/job/small_file.hpp"

namespace col::launch {
namespace {

constexpr std::size_t kMaxColumns = 400;

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}
bool is_hexadecimal(char letter) {
  return std::isxdigit(static_cast<unsigned char>(letter)) != 0;
}

bool is_frame(std::string_view line) {
  return line.size() > 1 && line[0] == '#' && is_digit(line[1]);
}
bool is_thread(std::string_view line) {
  return line.starts_with("Thread ") || line.starts_with("TID ");
}

// How many letters of `text` an address at its begin takes.
std::size_t address_length(std::string_view text) {
  if (!text.starts_with("0x")) return 0;
  std::size_t length = 2;
  while (length < text.size() && is_hexadecimal(text[length])) ++length;
  return length;
}

// "#1  0x00007f84fd553e53 in nanosleep ()" without its address; a frame that has no name keeps it.
std::string without_address(std::string_view frame) {
  const std::size_t number = frame.find(' ');
  const std::size_t begin = number == std::string_view::npos ? number : frame.find_first_not_of(' ', number);
  if (begin == std::string_view::npos) return std::string(frame);
  std::string_view rest = frame.substr(begin);
  rest.remove_prefix(address_length(rest));
  if (rest.starts_with(" in ")) rest.remove_prefix(3);
  if (!rest.starts_with(' ') || rest.starts_with(" ??") || rest.size() < 2) return std::string(frame);
  return std::string(frame.substr(0, begin)) + std::string(rest.substr(1));
}

constexpr std::size_t kMaxKernelFrames = 8;

// "" when it cannot be read.
std::string read_text(const std::string& path) {
  return read_small_file(path).value_or("");
}

std::string_view state_in_words(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "waits in the kernel, out of reach of signals,";
    case 'T':
      return "is stopped by a signal";
    case 't':
      return "is stopped by a debugger";
    default:
      return "is about to end";
  }
}

// Those that processes wait in. Others are shown by number.
std::string system_call_name(long number) {
  static constexpr std::pair<long, std::string_view> kNames[] = {
#ifdef SYS_poll  // not everywhere: newer machines have only the general ones
      {SYS_poll, "poll"},
      {SYS_select, "select"},
      {SYS_epoll_wait, "epoll_wait"},
      {SYS_pause, "pause"},
#endif
      {SYS_read, "read"},
      {SYS_readv, "readv"},
      {SYS_pread64, "pread64"},
      {SYS_write, "write"},
      {SYS_writev, "writev"},
      {SYS_pwrite64, "pwrite64"},
      {SYS_openat, "openat"},
      {SYS_close, "close"},
      {SYS_ioctl, "ioctl"},
      {SYS_fcntl, "fcntl"},
      {SYS_flock, "flock"},
      {SYS_fsync, "fsync"},
      {SYS_fdatasync, "fdatasync"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_futex, "futex"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_sched_yield, "sched_yield"},
      {SYS_restart_syscall, "restart_syscall"},
      {SYS_rt_sigsuspend, "sigsuspend"},
      {SYS_rt_sigtimedwait, "sigtimedwait"},
      {SYS_wait4, "wait4"},
      {SYS_waitid, "waitid"},
      {SYS_connect, "connect"},
      {SYS_accept, "accept"},
      {SYS_accept4, "accept4"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_sendto, "sendto"},
      {SYS_sendmsg, "sendmsg"},
      {SYS_mmap, "mmap"},
      {SYS_munmap, "munmap"},
      {SYS_madvise, "madvise"},
      {SYS_execve, "execve"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == number) return std::string(name);
  }
  return fmt::format("system call {}", number);
}

// " in futex", or nothing where it cannot be read, or the thread is in none.
std::string describe_system_call(const std::string& folder) {
  const std::string text = read_text(folder + "/syscall");
  long number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? " in " + system_call_name(number) : "";
}

// " (the kernel waits in futex_wait_queue)", or nothing.
std::string describe_wait_channel(const std::string& folder) {
  const std::string channel = tools::one_line(read_text(folder + "/wchan"));
  return channel.empty() || channel == "0" ? "" : fmt::format(" (the kernel waits in {})", channel);
}

// "[<0>] nfs_wait_bit_killable+0x11/0x50" becomes "  nfs_wait_bit_killable".
void add_kernel_frames(const std::string& folder, std::vector<std::string>& lines) {
  const std::string text = read_text(folder + "/stack");
  std::string_view rest = text;
  for (std::size_t frames = 0; !rest.empty() && frames < kMaxKernelFrames; ++frames) {
    std::string_view line = take(rest, '\n');
    if (const std::size_t name = line.find("] "); name != std::string_view::npos) line.remove_prefix(name + 2);
    line = line.substr(0, line.find('+'));
    if (!line.empty()) lines.push_back("  " + tools::one_line(line));
  }
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  for (const std::string& name : names_in(fmt::format("/proc/{}/task", pid)).value_or(std::vector<std::string>{}))
    threads.push_back(std::atoi(name.c_str()));
  std::ranges::sort(threads);  // the first one is the main thread
  return threads;
}

}  // namespace

std::vector<std::string> trim_stack(std::string_view output, std::size_t most_lines) {
  std::vector<std::string> lines;
  std::size_t left_out = 0;
  bool has_frames = false;
  while (!output.empty()) {
    const std::string_view line = take(output, '\n');
    if (!is_frame(line) && !is_thread(line)) continue;
    has_frames = has_frames || is_frame(line);
    if (lines.size() == most_lines) {
      ++left_out;
      continue;
    }
    const std::string shown = tools::clean(is_frame(line) ? without_address(line) : std::string(line));
    lines.emplace_back(tools::cut(shown, kMaxColumns));
  }
  if (!has_frames) return {};
  // The last line makes room for the word about those that are missing.
  if (left_out > 0 && !lines.empty()) lines.back() = fmt::format("({} more lines)", left_out + 1);
  return lines;
}

std::string stack_key(const std::vector<std::string>& lines) {
  constexpr std::array<std::string_view, 4> kBeforeNumber = {"LWP ", "TID ", "process ", "thread "};
  std::string key;
  for (std::string_view line : lines) {
    while (!line.empty()) {
      if (const std::size_t length = address_length(line); length > 0) {
        key += "0x";
        line.remove_prefix(length);
        continue;
      }
      const auto word =
          std::ranges::find_if(kBeforeNumber, [&](std::string_view before) { return line.starts_with(before); });
      if (word == kBeforeNumber.end()) {
        key += line.front();
        line.remove_prefix(1);
        continue;
      }
      key += *word;
      line.remove_prefix(word->size());
      while (!line.empty() && is_digit(line.front())) line.remove_prefix(1);
    }
    key += '\n';
  }
  return key;
}

std::vector<std::string> proc_stack(pid_t pid, std::size_t most_lines) {
  std::vector<std::string> lines;
  const std::vector<pid_t> threads = threads_of(pid);
  std::size_t shown = 0;
  for (; shown < threads.size() && lines.size() < most_lines; ++shown) {
    const std::string folder = fmt::format("/proc/{}/task/{}", pid, threads[shown]);
    const std::string status = read_text(folder + "/status");
    const std::string_view state = field(status, "State");
    if (state.empty() || state[0] == 'Z' || state[0] == 'X') continue;
    lines.push_back(fmt::format("thread {} \"{}\" {}{}{}", threads[shown], tools::one_line(field(status, "Name")),
                                state_in_words(state[0]), describe_system_call(folder), describe_wait_channel(folder)));
    if (state[0] == 'D') add_kernel_frames(folder, lines);
  }
  if (lines.size() > most_lines) lines.resize(most_lines);
  if (shown < threads.size() && !lines.empty())
    lines.back() = fmt::format("({} more threads)", threads.size() - shown + 1);
  return lines;
}

}  // namespace col::launch
