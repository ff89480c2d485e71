// When a job ends, and how.
#include "colrun/option_groups.hpp"
#include "colrun/read_value.hpp"

namespace col::colrun {
namespace {

constexpr launch::Milliseconds kNone{0};
constexpr launch::Milliseconds kShortest{1};

}  // namespace

void read_lifecycle(const Values& values, launch::LifecycleSpec& lifecycle) {
  using launch::ExitPolicy;
  if (const Given* given = values.find(Option::timeout)) lifecycle.timeout = read_time(*given, kShortest);
  if (const Given* given = values.find(Option::start_timeout)) lifecycle.start_timeout = read_time(*given, kShortest);
  if (const Given* given = values.find(Option::exit_timeout)) lifecycle.exit_timeout = read_time(*given, kShortest);
  if (const Given* given = values.find(Option::grace)) lifecycle.grace = read_time(*given, kNone);
  if (const Given* given = values.find(Option::term_grace)) lifecycle.term_grace = read_time(*given, kNone);
  if (const Given* given = values.find(Option::max_restarts))
    lifecycle.max_restarts = read_number(*given, 0, 1'000'000);
  lifecycle.keep_going = values.is_on(Option::keep_going);
  if (const Given* given = values.find(Option::exit_policy))
    lifecycle.exit_policy = read_one_of<ExitPolicy>(
        *given, {{"first", ExitPolicy::first}, {"max", ExitPolicy::max}, {"rank0", ExitPolicy::rank0}});
}

}  // namespace col::colrun
