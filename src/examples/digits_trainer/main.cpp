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
  if (options.resume.empty()) {
    state = fresh_state(defaults.shape, options.seed.value_or(defaults.seed), options.batch.value_or(defaults.batch),
                        options.learning_rate.value_or(defaults.learning_rate));
  } else {
    state = load_checkpoint(options.resume, defaults.shape);
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

// Returns an exit code, the same on every rank.
int train(col::Group& world, const TrainerOptions& options, Setup setup) {
  const bool speaker = world.rank() == 0;
  Trainer trainer(world, setup.dataset, std::move(setup.state));
  if (speaker) {
    const TrainingState state = trainer.state();
    std::printf("digits_trainer: %d %s over %s, %zu training and %zu test images of %s\n", world.size(),
                world.size() == 1 ? "rank" : "ranks", std::string(world.backend()).c_str(), setup.dataset.train.size(),
                setup.dataset.test.size(), setup.data.c_str());
    std::printf("%zu parameters, %llu images a step over all ranks, learning rate %g, seed %llu\n",
                state.shape.parameters(), static_cast<unsigned long long>(state.batch), state.learning_rate,
                static_cast<unsigned long long>(state.seed));
  }

  std::optional<EpochReport> last;
  for (std::uint64_t i = 0; i < options.epochs; ++i) {
    const EpochReport report = trainer.run_epoch();
    const auto epoch = static_cast<unsigned long long>(trainer.state().epochs);
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
    last = report;
  }

  const double accuracy = last ? last->test_accuracy : trainer.test_accuracy();
  Problem problem;
  if (speaker) {
    const TrainingState state = trainer.state();
    std::printf("test accuracy %.4f after %llu %s on %d %s\n", accuracy, static_cast<unsigned long long>(state.epochs),
                state.epochs == 1 ? "epoch" : "epochs", world.size(), world.size() == 1 ? "rank" : "ranks");
    if (options.save) {
      try {
        save_checkpoint(state, options.model);
        std::printf("model written to %s (--resume %s goes on from it)\n", options.model.c_str(),
                    options.model.c_str());
      } catch (const std::exception& error) {
        problem = {kExitFailure, error.what()};
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
  col::Group world = col::init();
  Problem problem;
  Setup setup;
  const auto* options = std::get_if<TrainerOptions>(&parsed);
  if (options == nullptr) {
    problem = std::get<Problem>(parsed);
  } else {
    try {
      setup = prepare(*options, world.rank());
    } catch (const std::exception& error) {
      problem = {kExitFailure, error.what()};
    }
  }
  int exit_code = agree(world, problem);
  if (exit_code == 0) exit_code = train(world, *options, std::move(setup));
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
