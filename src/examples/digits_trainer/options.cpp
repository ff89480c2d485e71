#include "options.hpp"

#include <charconv>
#include <limits>
#include <string>
#include <system_error>

#include <CLI/CLI.hpp>
#include <col/col.hpp>

#include "gpu.hpp"

namespace digits {
namespace {

constexpr const char* kDescription =
    "Trains a small neural network on images of handwritten digits, data-parallel over all ranks:\n"
    "  colrun -n 8 digits_trainer";

constexpr double kMaxLearningRate = 1e30;

// The whole of `text` as a T, without a sign; nothing otherwise.
template <class T>
std::optional<T> parse(const std::string& text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || text.starts_with('-')) return std::nullopt;
  return value;
}

CLI::Validator learning_rate() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        const std::optional<double> value = parse<double>(text);
        if (value && *value > 0 && *value <= kMaxLearningRate) return {};
        return "must be a number above 0 and at most 1e30, not '" + text + "'";
      },
      "");
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const std::string range = std::to_string(least) + ".." + std::to_string(most);
  return CLI::Validator(
      [=](const std::string& text) -> std::string {
        const std::optional<std::uint64_t> value = parse<std::uint64_t>(text);
        if (value && *value >= least && *value <= most) return {};
        return "must be a whole number " + range + ", not '" + text + "'";
      },
      "");
}

Problem usage_problem(const std::string& what) {
  return {kExitUsage, what + "; digits_trainer --help lists the options"};
}

}  // namespace

std::variant<TrainerOptions, Information, Problem> parse_options(int argc, const char* const* argv) {
  TrainerOptions options;
  std::string device = "cpu";
  std::string gone;
  bool no_save = false;

  CLI::App app(kDescription, "digits_trainer");
  app.set_version_flag("--version", "digits_trainer " + std::string(col::version()));
  app.add_option("--epochs", options.epochs, "Passes over the training images in this run (default 15)")
      ->check(whole_number(0, 1'000'000))
      ->type_name("N");
  app.add_option("--batch", options.batch, "Images a step, over all ranks (default 128)")
      ->check(whole_number(1, 1'000'000))
      ->type_name("N");
  app.add_option("--lr", options.learning_rate, "Learning rate (default 0.1)")->check(learning_rate())->type_name("X");
  app.add_option("--seed", options.seed, "Decides the first weights and the order of the images (default 1)")
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  app.add_option("--data", options.data, "Images as CSV (default: the ones that come with col)")->type_name("FILE");
  app.add_option("--model", options.model, "Where to write the trained model (default digits.model)")
      ->type_name("FILE");
  app.add_flag("--no-save", no_save, "Write no model");
  app.add_option("--resume", options.resume, "Go on from this model file; batch, lr and seed come from it unless given")
      ->type_name("FILE");
  app.add_flag("--continue", options.go_on,
               "For jobs that are restarted: write the model after every epoch, go on from it where it exists, and end "
               "at N epochs in all");
  app.add_flag("--survive", options.survives,
               "Go on with the other ranks when one is lost, from the last step that all have (colrun --keep-going)");
  app.add_option("--device", device, "Where gradients are reduced: cpu (default) or cuda")->type_name("DEVICE");
  for (const char* const name : {"--strategy", "--staleness"}) app.add_option(name, gone)->group("");  // not in --help

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Information{app.help()};
  } catch (const CLI::CallForVersion& version) {
    return Information{std::string(version.what()) + "\n"};
  } catch (const CLI::ParseError& error) {
    return usage_problem(error.what());
  }
  options.save = !no_save;
  for (const char* const name : {"--strategy", "--staleness"}) {
    if (app.count(name) > 0)
      return usage_problem(std::string(name) +
                           ": this trainer is data-parallel; src/examples/python/strategies.py trains the same network "
                           "with zero, a parameter server or a pipeline");
  }
  if (device != "cpu" && device != "cuda") return usage_problem("--device: must be cpu or cuda, not '" + device + "'");
  options.on_gpu = device == "cuda";
  if (options.on_gpu) {
    const std::string reason = why_no_gpu();
    if (!reason.empty())
      return Problem{kExitFailure, "--device cuda is not available: " + reason + "; leave it out, or say --device cpu"};
  }
  if (options.survives && (options.on_gpu || options.go_on))
    return usage_problem("--survive: does not go with --device cuda or --continue");
  if (options.go_on && no_save) return usage_problem("--continue: needs the model that --no-save does not write");
  if (options.go_on && !options.resume.empty())
    return usage_problem("--continue: goes on from --model, not from --resume; leave one out");
  if (options.save && options.model.empty()) return usage_problem("--model: is empty; --no-save writes none");
  return options;
}

}  // namespace digits
