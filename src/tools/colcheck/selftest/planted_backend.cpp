#include "colcheck/selftest/planted_backend.hpp"

#include <fcntl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <col/channel.hpp>

#include "colcheck/selftest/planted_channel.hpp"

namespace col::colcheck {
namespace {

// The algorithm "" is for messages, and for what has no algorithm.
constexpr PlantedBug row(Bug bug, std::string_view name, std::string_view summary, std::string_view caught_by,
                         std::string_view algorithms = kPlantedAlgorithm) {
  return {bug, name, summary, caught_by, algorithms};
}
constexpr PlantedBug kBugs[] = {
    row(Bug::none, "none", "nothing is wrong, and everything passes", "", "planted,"),
    row(Bug::wrong_remainder_block, "wrong_remainder_block",
        "elements beyond a multiple of the number of ranks lack the last rank's contribution", "exact,counts"),
    row(Bug::dropped_last_element, "dropped_last_element", "the last element of each block is not written",
        "exact,counts"),
    row(Bug::uneven_blocks_cut, "uneven_blocks_cut", "no block is longer than the first", "exact,v_forms"),
    row(Bug::wrong_root, "wrong_root", "with more than two ranks, the next rank is taken for the root", "exact,roots"),
    row(Bug::output_cleared_first, "output_cleared_first",
        "the output is set to zero before the input in the same memory is read", "exact,in_place"),
    row(Bug::assumes_alignment, "assumes_alignment", "an input at an odd address is read from the even one before it",
        "unaligned"),
    row(Bug::stale_scratch, "stale_scratch", "a second call of one size works with this rank's input of the first",
        "refill"),
    row(Bug::unsynchronised_reuse, "unsynchronised_reuse", "a buffer is filled again before it has been sent",
        "exact,refill"),
    row(Bug::operands_swapped, "operands_swapped", "an operator that does not commute gets left and right exchanged",
        "exact"),
    row(Bug::arrival_order, "arrival_order", "contributions are combined in the order of their arrival",
        "exact,same_bits,repeatable"),
    row(Bug::one_ulp, "one_ulp", "one rank's copy of an allreduce is off by the lowest bit", "exact,same_bits"),
    row(Bug::rounds_every_hop, "rounds_every_hop", "partial sums of narrow floats are rounded on their way",
        "half_sums,rounding"),
    row(Bug::sums_in_float32, "sums_in_float32", "sums of float64 are made in float32", "rounding"),
    row(Bug::lost_nan, "lost_nan", "min and max drop a NaN that is not the first rank's", "special_values"),
    row(Bug::denormals_flushed, "denormals_flushed", "results too small to be normal numbers become zero",
        "special_values"),
    row(Bug::saturates, "saturates", "sums of integers stop at the ends of their type", "exact,wrap"),
    row(Bug::avg_floor, "avg_floor", "averages of integers round down, not toward zero", "wrap"),
    row(Bug::signed_compare, "signed_compare", "min and max compare unsigned integers as signed", "exact,wrap"),
    row(Bug::writes_past_end, "writes_past_end", "the byte after each block of the output is set to zero",
        "exact,guard_pages,untouched"),
    row(Bug::reads_past_end, "reads_past_end", "the byte after the input is read", "guard_pages"),
    row(Bug::input_overwritten, "input_overwritten", "the result is also written into the input", "exact,untouched"),
    row(Bug::non_root_output_touched, "non_root_output_touched", "where a rank is not the root, its output is scratch",
        "exact"),
    row(Bug::barrier_does_nothing, "barrier_does_nothing", "a barrier waits for nobody", "barrier"),
    row(Bug::swaps_equal_tags, "swaps_equal_tags", "of two receives with one tag, the later one gets the first message",
        "messages", ""),
    row(Bug::tree_over_ranks, "tree_over_ranks",
        "in the tree's order, each rank's contributions are combined first, and then those of the ranks", "any_ranks"),
    row(Bug::leaks_descriptors, "leaks_descriptors", "a descriptor stays open for each group", "churn", ""),
};

// The first backend that can be used here; null when none can.
BackendFactory* message_backend() {
  for (const Backend backend : {Backend::shm, Backend::gloo}) {
    BackendFactory* const factory = find_backend(to_string(backend));
    if (factory != nullptr && !factory->unavailable_reason()) return factory;
  }
  return nullptr;
}

class PlantedBackend final : public BackendFactory {
 public:
  PlantedBackend(const PlantedBug& bug, BackendFactory* inner) : bug_(bug.bug), name_(bug.backend()), inner_(inner) {}

  std::string_view name() const override { return name_; }
  std::optional<std::string> unavailable_reason() const override {
    if (inner_ != nullptr) return inner_->unavailable_reason();
    return "it sends its messages over shm or gloo, and neither can be used here";
  }
  std::unique_ptr<Channel> connect(const ConnectRequest& request, WaitContext& wait) override {
    if (bug_ == Bug::leaks_descriptors) static_cast<void>(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return std::make_unique<PlantedChannel>(bug_, inner_->connect(request, wait), request.rank, request.size);
  }
  std::string describe(const ConnectRequest& request) const override {
    return fmt::format("{}, over {}", name_, inner_->describe(request));
  }

 private:
  const Bug bug_;
  const std::string name_;
  BackendFactory* const inner_;
};

}  // namespace

std::string PlantedBug::backend() const {
  return "planted-" + std::string(name);
}

std::span<const PlantedBug> planted_bugs() {
  return kBugs;
}

void register_planted_backends() {
  static std::once_flag once;
  std::call_once(once, [] {
    BackendFactory* const inner = message_backend();
    for (const PlantedBug& bug : planted_bugs()) register_backend(std::make_unique<PlantedBackend>(bug, inner));
  });
}

}  // namespace col::colcheck
