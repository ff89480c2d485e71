// How well are ranks told that they have made different calls?
//
//   mismatches [--seed N] [--first N] [--jobs N] [--backend shm|gloo] [--mode blocking|async|mixed] [--kind NAME]
//              [--groups 1|2] [--timeout SECONDS] [--require PERCENT]
//
// Random jobs of 2 to 9 processes. Each is a correct program but for one call of one rank. A job counts as found when
// every rank that was told anything was told `mismatch`, with the rank that is to blame, within a second of the begin
// of the call or wait that it was told in, at least one rank was told, and all others came to their end. Of two ranks,
// and where only two know of a difference, either may be named, or nobody.
//
// In two groups, a call that is skipped or made twice can make ranks wait for one another in different groups, which is
// a timeout: no rank can know that another has no second thread that would make the call.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>

#include "plan.hpp"
#include "support/fork.hpp"
#include "support/ranks.hpp"

namespace {

using mismatches::Job;
using mismatches::Told;

constexpr double kSoon = 1.0;  // seconds
constexpr int kLimits = 4;     // a job that takes as many timeouts is ended
constexpr std::size_t kMostRanks = 9;

struct Settings {
  std::uint64_t seed = std::random_device()();
  std::uint64_t first = 0, jobs = 100;
  double require = 0;
  col::Duration timeout = std::chrono::seconds(5);
  mismatches::Wishes wishes = {};
};

Settings settings_of(std::span<char*> arguments) {
  Settings settings;
  for (std::size_t i = 1; i < arguments.size(); i += 2) {
    const std::string option = arguments[i];
    if (i + 1 == arguments.size()) throw std::invalid_argument(option + " needs a value");
    const std::string value = arguments[i + 1];
    if (option == "--seed")
      settings.seed = std::stoull(value);
    else if (option == "--first")
      settings.first = std::stoull(value);
    else if (option == "--jobs")
      settings.jobs = std::stoull(value);
    else if (option == "--require")
      settings.require = std::stod(value);
    else if (option == "--timeout")
      settings.timeout = std::chrono::seconds(std::stoi(value));
    else if (option == "--groups")
      settings.wishes.groups = std::stoi(value);
    else if (option == "--backend")
      settings.wishes.backend = value;
    else if (option == "--mode")
      settings.wishes.mode = value;
    else if (option == "--kind")
      settings.wishes.kind = value;
    else
      throw std::invalid_argument("there is no option " + option);
  }
  return settings;
}

// What was wrong with how the ranks were told, in a word or two; empty: nothing. "refused": the job is no test.
std::string verdict(const Job& job, std::span<const Told> told) {
  const bool may_be_nobodys = job.ranks == 2 || job.is_between_two;
  bool any = false, late = false;
  for (const Told& one : told) {
    if (one.is_refused) return "refused";
  }
  for (const Told& one : told) {
    if (!one.has_ended) return "killed";
    if (!one.has_error) continue;
    any = true;
    if (one.code != col::ErrorCode::mismatch) return std::string(to_string(one.code));
    if (one.rank != job.culprit && !may_be_nobodys) return one.rank < 0 ? "no culprit" : "wrong culprit";
    late = late || one.seconds > kSoon;
  }
  return !any ? "unnoticed" : late ? "late" : "";
}

void show(const Job& job, std::span<const Told> told, const std::string& wrong, std::uint64_t seed) {
  std::printf("%s: %s\n  replay: --seed %llu --first %llu --jobs 1\n", wrong.c_str(), job.text().c_str(),
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(job.number));
  for (std::size_t r = 0; r < told.size(); ++r)
    std::printf("  rank %zu: %s after %.2f s in %s: %s\n", r, told[r].has_ended ? "ended" : "did not end",
                told[r].seconds, told[r].where.data(), told[r].has_error ? told[r].text.data() : "no error");
}

struct Tally {
  int jobs = 0, found = 0;
};

void show_table(const std::map<std::string, std::map<std::string, Tally>>& table) {
  std::map<std::string, Tally> totals;
  for (const auto& [kind, row] : table) {
    std::printf("%-10s", kind.c_str());
    for (const auto& [column, tally] : row) {
      std::printf("  %s %d/%d", column.c_str(), tally.found, tally.jobs);
      totals[column].jobs += tally.jobs;
      totals[column].found += tally.found;
    }
    std::printf("\n");
  }
  std::printf("%-10s", "all");
  for (const auto& [column, tally] : totals) std::printf("  %s %d/%d", column.c_str(), tally.found, tally.jobs);
  std::printf("\n");
}

int run(const Settings& settings) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(settings.seed));
  std::fflush(stdout);  // before the ranks are forked from here
  const col::test::SharedByForks<std::array<Told, kMostRanks>> told_by_all;
  std::map<std::string, std::map<std::string, Tally>> table;
  std::map<std::string, int> wrongs;
  Tally all;
  for (std::uint64_t k = settings.first; k < settings.first + settings.jobs; ++k) {
    const Job job = make_job(settings.seed, k, settings.wishes);
    told_by_all->fill({});
    const std::span told = std::span(*told_by_all).first(static_cast<std::size_t>(job.ranks));
    col::test::run_processes(
        job.ranks,
        [&](int rank, col::Context& context) { play(job, rank, context, told[static_cast<std::size_t>(rank)]); },
        {.timeout = settings.timeout}, kLimits * settings.timeout);
    const std::string wrong = verdict(job, told);
    if (wrong == "refused") continue;
    Tally& tally = table[std::string(mismatches::kKinds[static_cast<std::size_t>(job.kind)])]
                        [job.backend + " " + std::string(mismatches::kModes[static_cast<std::size_t>(job.mode)])];
    for (Tally* one : {&tally, &all}) {
      ++one->jobs;
      if (wrong.empty()) ++one->found;
    }
    if (wrong.empty()) continue;
    ++wrongs[wrong];
    show(job, told, wrong, settings.seed);
    std::fflush(stdout);
  }
  show_table(table);
  for (const auto& [wrong, times] : wrongs) std::printf("%s: %d\n", wrong.c_str(), times);
  const double percent = all.jobs == 0 ? 0 : 100.0 * all.found / all.jobs;
  std::printf("found %d of %d (%.1f %%)\n", all.found, all.jobs, percent);
  return percent >= settings.require ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(settings_of({argv, static_cast<std::size_t>(argc)}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mismatches: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
