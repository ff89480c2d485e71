// digits_trainer: data-parallel training of a digit classifier over col. Start reading here, then trainer.cpp.
#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <col/col.hpp>

#include "agreement.hpp"
#include "checkpoint.hpp"
#include "dataset.hpp"
#include "gpu.hpp"
#include "options.hpp"
#include "trainer.hpp"

namespace {

using namespace digits;

// Without a standard output, the first socket or file to be opened would take its number, and what is printed would go
// there. Nothing can be written to what takes it here.
void hold_standard_output() {
  if (::fcntl(STDOUT_FILENO, F_GETFD) >= 0) return;
  const int fd = ::open("/dev/null", O_RDONLY);
  if (fd < 0 || fd == STDOUT_FILENO) return;
  ::dup2(fd, STDOUT_FILENO);
  ::close(fd);
}

// A problem when anything that was printed until now has been lost.
Problem lost_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return {kExitFailure, "standard output cannot be written; send it to a file on a disk with room, or to /dev/null"};
}

// What a rank needs before the first step.
struct Setup {
  std::filesystem::path data;
  Dataset dataset;
  TrainingState state;
};

TrainingState starting_state(const TrainerOptions& options) {
  const TrainingState defaults;
  TrainingState state;
  const bool found = options.go_on && std::filesystem::exists(options.model);
  const std::filesystem::path& from = found ? options.model : options.resume;
  if (from.empty()) {
    state = fresh_state(defaults.shape, options.seed.value_or(defaults.seed), options.batch.value_or(defaults.batch),
                        options.learning_rate.value_or(defaults.learning_rate));
  } else {
    state = load_checkpoint(from, defaults.shape);
    state.seed = options.seed.value_or(state.seed);
    state.batch = options.batch.value_or(state.batch);
    state.learning_rate = options.learning_rate.value_or(state.learning_rate);
  }
  return state;
}

// Every rank reads the images; only rank 0 needs the files that it alone reads and writes.
Setup prepare(const TrainerOptions& options, int rank) {
  Setup setup;
  setup.data = options.data.empty() ? find_data() : options.data;
  setup.dataset = split(load_images(setup.data));
  if (rank == 0) {
    setup.state = starting_state(options);
    if (options.save) checkpoint_target(options.model);  // throws now, not after the training
  }
  return setup;
}

Problem save(const TrainingState& state, const TrainerOptions& options) {
  try {
    save_checkpoint(state, options.model);
    return {};
  } catch (const std::exception& error) {
    return {kExitFailure, error.what()};
  }
}

// How many epochs are left for this run.
std::uint64_t epochs_to_train(const TrainerOptions& options, const Trainer& trainer) {
  const std::uint64_t trained = trainer.settings().epochs;
  const std::uint64_t last = options.epochs + (options.go_on ? 0 : trainer.first_epoch());
  return last > trained ? last - trained : 0;
}

// Returns an exit code, the same on every rank.
int train(const col::Group& all, const TrainerOptions& options, Setup setup, const Gpu* gpu) {
  Trainer trainer(all, setup.dataset, std::move(setup.state), gpu, options.survives);
  col::Group& world = trainer.world();  // who is left of them
  if (world.rank() == 0 && world.epoch() == 0) {
    const TrainingState& state = trainer.settings();
    std::printf("digits_trainer: %d %s over %s, %zu training and %zu test images of %s\n", world.size(),
                world.size() == 1 ? "rank" : "ranks", std::string(world.backend()).c_str(), setup.dataset.train.size(),
                setup.dataset.test.size(), setup.data.c_str());
    std::printf("%zu parameters, %llu images a step over all ranks, learning rate %g, seed %llu\n",
                state.shape.parameters(), static_cast<unsigned long long>(state.batch), state.learning_rate,
                static_cast<unsigned long long>(state.seed));
    if (gpu != nullptr) std::printf("gradients are reduced on GPUs; rank 0 has %s\n", gpu->text().c_str());
  }

  const std::uint64_t epochs = epochs_to_train(options, trainer);
  for (std::uint64_t i = 0; i < epochs; ++i) {
    const EpochReport report = trainer.run_epoch();
    const bool speaker = world.rank() == 0;
    const auto epoch = static_cast<unsigned long long>(trainer.settings().epochs);
    if (!std::isfinite(report.loss)) {  // the same on every rank
      return agree(world, {kExitFailure, "the loss is not a number any more after epoch " + std::to_string(epoch) +
                                             "; try a smaller --lr"});
    }
    if (speaker) {
      std::printf("epoch %3llu  loss %.6f  test accuracy %.4f  %.0f images/s  %.0f%% of the time in communication\n",
                  epoch, report.loss, report.test_accuracy,
                  static_cast<double>(setup.dataset.train.size()) / report.seconds,
                  100 * report.communication_seconds / report.seconds);
    }
    if (!options.go_on) continue;
    const TrainingState state = trainer.state();
    const int exit_code = agree(world, speaker ? save(state, options) : Problem{});
    if (exit_code != 0) return exit_code;
  }

  trainer.finish();
  const std::optional<double> last = trainer.last_accuracy();
  const double accuracy = last ? *last : trainer.test_accuracy();
  const TrainingState state = trainer.state();
  Problem problem;
  if (world.rank() == 0) {
    std::printf("test accuracy %.4f after %llu %s on %d %s\n", accuracy, static_cast<unsigned long long>(state.epochs),
                state.epochs == 1 ? "epoch" : "epochs", world.size(), world.size() == 1 ? "rank" : "ranks");
    if (options.save) {
      problem = save(state, options);
      if (problem.exit_code == 0) {
        std::printf("model written to %s (--resume %s goes on from it)\n", options.model.c_str(),
                    options.model.c_str());
      }
    }
    if (problem.exit_code == 0) problem = lost_output();
  }
  return agree(world, problem);
}

int run(int argc, char** argv) {
  auto parsed = parse_options(argc, argv);
  if (const auto* information = std::get_if<Information>(&parsed)) {
    std::printf("%s", information->text.c_str());
    const Problem problem = lost_output();
    if (problem.exit_code != 0) print_problem(problem.message);
    return problem.exit_code;
  }

  // A bad option is reported after joining, too: one line in all, not one from each rank.
  const auto* options = std::get_if<TrainerOptions>(&parsed);
  std::optional<Gpu> gpu;
  if (options != nullptr && options->on_gpu) gpu.emplace(col::Context::current().spec());
  col::Group world = col::init();
  Problem problem;
  Setup setup;
  if (options == nullptr) {
    problem = std::get<Problem>(parsed);
  } else {
    try {
      setup = prepare(*options, world.rank());
    } catch (const std::exception& error) {
      problem = {kExitFailure, error.what()};
    }
  }
  // One that joins the others later has nobody to agree with: they train already.
  if (world.epoch() > 0 && problem.exit_code != 0) {
    print_problem(problem.message);
    return problem.exit_code;
  }
  int exit_code = world.epoch() > 0 ? 0 : agree(world, problem);
  if (exit_code == 0) exit_code = train(world, *options, std::move(setup), gpu ? &*gpu : nullptr);
  col::finalize();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_output();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // under a launcher stdout is a pipe: show each line as it comes
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // col::Error is one, and its text says which rank and what to do
    print_problem(error.what());
    return kExitFailure;
  }
}
