#include "coljob/jobs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <col/error.hpp>

#include "common/command_line.hpp"
#include "launch/nodes/ask_desk.hpp"
#include "launch/processes/job_directory.hpp"
#include "launch/report/look.hpp"

namespace col::coljob {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "col-";

bool is_own(const fs::path& path, mode_t kind) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid() && (info.st_mode & S_IFMT) == kind;
}

std::vector<fs::path> own_directories(const fs::path& parent) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(parent, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (is_own(entry->path(), S_IFDIR)) found.push_back(entry->path());
  }
  std::ranges::sort(found);
  return found;
}

FoundJob look_at(std::string id, const fs::path& page) {
  FoundJob job{.id = std::move(id), .directory = page.parent_path()};
  try {
    job.page = ControlPage::look_at(page);
    if (!launch::lives(*job.page)) job.problem = "it has ended: none of its processes is left";
  } catch (const Error& error) {
    const std::string& message = error.message();
    job.problem = message.substr(0, message.rfind(';'));
  }
  return job;
}

std::vector<fs::path> places(const std::vector<std::string>& directories) {
  std::vector<fs::path> places(directories.begin(), directories.end());
  const char* const chosen = std::getenv("TMPDIR");
  places.emplace_back(chosen != nullptr && *chosen != '\0' ? chosen : "/tmp");
  return places;
}

bool has_pid(const FoundJob& job, std::string_view pid) {
  if (!job.page) return false;
  for (int i = 0; i < job.page->local_ranks(); ++i) {
    const RankRecord& record = job.page->record(i);
    const auto started = record.process();
    if ((started && fmt::to_string(started->pid) == pid) || fmt::to_string(record.read().pid) == pid) return true;
  }
  return fmt::to_string(job.page->maker()) == pid;
}

namespace fs = std::filesystem;

// As core::create_unnamed_page() calls it, and as the kernel shows that.
constexpr std::string_view kBefore = "/memfd:col-control:", kBehind = " (deleted)";

bool is_pid(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

// Pids in a page are those of its ranks' namespace.
bool shares_pids(const fs::path& process) {
  std::error_code failed;
  const fs::path own = fs::read_symlink("/proc/self/ns/pid", failed);
  return !failed && fs::read_symlink(process / "ns/pid", failed) == own && !failed;
}

// "run 17-0f3a…": a job's own words and a number, in one word.
std::string id_of(std::string_view link) {
  link.remove_prefix(kBefore.size());
  if (link.ends_with(kBehind)) link.remove_suffix(kBehind.size());
  std::string id(link);
  std::ranges::replace(id, ' ', '-');
  return id;
}

}  // namespace

std::vector<FoundJob> find_jobs(const std::vector<std::string>& directories) {
  std::vector<FoundJob> jobs;
  std::set<fs::path> seen;
  const std::string of_user = fmt::format("{}{}", kPrefix, ::geteuid());
  const auto add = [&](const fs::path& directory, const std::string& id) {
    std::error_code failed;
    const fs::path page = directory / launch::kControlPage;
    if (is_own(page, S_IFREG) && seen.insert(fs::canonical(page, failed)).second)
      return jobs.push_back(look_at(id, page));
    // A launcher that has no ranks on this host.
    const fs::path desk = directory / launch::kAskSocket;
    if (is_own(page, S_IFREG) || !is_own(desk, S_IFSOCK) || !seen.insert(fs::canonical(desk, failed)).second) return;
    const bool is_there = launch::AskingLauncher::can_ask(directory);
    jobs.push_back({.id = id, .directory = directory, .problem = is_there ? "" : "it has ended: its launcher is gone"});
  };
  for (const fs::path& place : places(directories)) {
    for (const fs::path& directory : own_directories(place)) {
      const std::string name = directory.filename();
      if (!name.starts_with(kPrefix)) continue;
      if (name != of_user) {
        add(directory, name.substr(kPrefix.size()));  // made by colrun
        continue;
      }
      // Ranks that something else has started.
      for (const fs::path& job : own_directories(directory)) add(job, job.filename());
    }
  }
  for (const UnnamedPage& page : find_unnamed_pages()) {
    FoundJob job = look_at(page.id, page.path);
    job.directory.clear();
    // A child of a rank that has ended may still have a descriptor.
    if (job.lives() || !job.page) jobs.push_back(std::move(job));
  }
  return jobs;
}

FoundJob choose_job(const std::vector<FoundJob>& jobs, const std::string& name) {
  std::vector<FoundJob> fitting;
  if (name.find('/') != std::string::npos && is_own(name, S_IFREG))
    fitting.push_back(look_at(name, name));
  else
    std::ranges::copy_if(jobs, std::back_inserter(fitting), [&](const FoundJob& job) {
      return name.empty() ? job.lives() : job.id.find(name) != std::string::npos || has_pid(job, name);
    });
  if (fitting.empty() && name.empty()) throw NoJob("no job of this user runs on this host; --dir names another TMPDIR");
  if (fitting.empty()) {
    std::error_code ignored;
    throw NoJob(fmt::format(
        "no job of this user on this host fits '{}'; {}", name,
        fs::exists(name, ignored) ? "coljob why reads files of coljob dump and colrun --json" : "see coljob ps"));
  }
  if (fitting.size() > 1) {
    std::string ids;
    for (const FoundJob& job : fitting) ids += (ids.empty() ? "" : ", ") + job.id;
    throw tools::UsageError("there are {} jobs{}: {}; name one", fitting.size(),
                            name.empty() ? "" : " that fit '" + name + "'", ids);
  }
  if (!fitting.front().page && !fitting.front().problem.empty())
    throw NoJob(fmt::format("job {} cannot be looked into: {}", fitting.front().id, fitting.front().problem));
  return fitting.front();
}

std::vector<UnnamedPage> find_unnamed_pages() {
  std::vector<UnnamedPage> pages;
  std::set<ino_t> seen;
  std::error_code failed;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end; process.increment(failed)) {
    struct stat info {};
    if (!is_pid(process->path().filename().native()) || ::stat(process->path().c_str(), &info) != 0 ||
        info.st_uid != ::geteuid() || !shares_pids(process->path()))
      continue;
    std::error_code gone;  // a process that ends meanwhile
    for (fs::directory_iterator file(process->path() / "fd", gone), last; !gone && file != last; file.increment(gone)) {
      std::error_code closed;
      const std::string link = fs::read_symlink(file->path(), closed);
      if (closed || !link.starts_with(kBefore) || ::stat(file->path().c_str(), &info) != 0) continue;
      if (seen.insert(info.st_ino).second) pages.push_back({id_of(link), file->path()});
    }
  }
  return pages;
}

}  // namespace col::coljob
