
#include "colbench/report/reports.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "colbench/report/figure.hpp"
#include "colbench/report/memory_file.hpp"
#include "colbench/report/plot_script.hpp"
#include "common/command_line.hpp"
#include "common/text.hpp"
#include "common/write_file.hpp"
#include "core/clock/clock.hpp"
#include "launch/job/launch_error.hpp"
#include "launch/processes/program.hpp"

namespace col::colbench {
namespace {

// A child that is killed, if it still runs, and reaped by the destructor.
class Child {
 public:
  Child(const std::string& program, int input, int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    // -d: no settings of the user or of the machine.
    std::string name = "gnuplot", settings = "-d";
    char* const arguments[] = {name.data(), settings.data(), nullptr};
    const int error = ::posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments, environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::system_error(error, std::generic_category(), "cannot start gnuplot");
  }
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Whether it ended before the deadline, and how.
  bool wait(core::Clock::time_point deadline, int& status) {
    // A pidfd, which would tell at once, may be refused.
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (core::Clock::now() >= deadline) return false;
      core::sleep_for(std::chrono::milliseconds(2));
    }
    pid_ = -1;
    return true;
  }

 private:
  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

  pid_t pid_ = -1;
};

// Nothing if it is not installed.
std::optional<std::string> path_of_gnuplot() {
  try {
    return launch::resolve_program("gnuplot");
  } catch (const launch::LaunchError&) {
    return std::nullopt;
  }
}

PlotFormat format_of(const std::string& path) {
  if (path.ends_with(".svg")) return PlotFormat::svg;
  if (path.ends_with(".png")) return PlotFormat::png;
  throw tools::UsageError("--plot: '{}' is no name for a drawing; end it with .svg or .png", tools::one_line(path));
}

std::string draw(const Results& results, PlotFormat format) {
  const Figure figure = figure_of(results);
  if (figure.panels.empty()) {
    throw tools::UsageError("there is nothing to draw: no operation with a size was measured and found good");
  }
  return run_gnuplot(plot_script(figure, format));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// gnuplot's SVG knows no bold letters, no second choice of a font, and one title.
std::string corrected(std::string svg, std::string_view title) {
  constexpr std::string_view kFonts = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";
  replace_all(svg, fmt::format("font-family=\"{}:Bold\"", kPlotFont),
              fmt::format("font-family=\"{}\" font-weight=\"bold\"", kFonts));
  replace_all(svg, fmt::format("font-family=\"{}\"", kPlotFont), fmt::format("font-family=\"{}\"", kFonts));
  replace_all(svg, "<title>Gnuplot</title>", title);
  return svg;
}

}  // namespace

bool has_gnuplot() {
  return path_of_gnuplot().has_value();
}

std::string no_gnuplot_text() {
  return "there is no gnuplot on PATH; install it (Debian and Ubuntu: apt-get install gnuplot-nox)";
}

std::string run_gnuplot(std::string_view script, std::chrono::milliseconds deadline) {
  const std::optional<std::string> program = path_of_gnuplot();
  if (!program) throw tools::UsageError(no_gnuplot_text());
  const MemoryFile input("plot", MFD_CLOEXEC), output("drawing", MFD_CLOEXEC), errors("messages", MFD_CLOEXEC);
  input.write(script);
  int status = 0;
  {
    Child child(*program, input.fd(), output.fd(), errors.fd());
    if (!child.wait(core::Clock::now() + deadline, status)) {
      throw tools::WriteError(
          fmt::format("gnuplot has not finished after {} s", static_cast<double>(deadline.count()) / 1000));
    }
  }
  std::string drawing = output.read();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawing.empty()) {
    const std::string message = tools::one_line(errors.read());
    throw tools::WriteError(fmt::format("gnuplot failed: {}", message.empty() ? "it does not say why" : message));
  }
  return drawing;
}

std::string plot_svg(const Results& results) {
  return corrected(draw(results, PlotFormat::svg), "<title>colbench: time and bus bandwidth over size</title>");
}

void write_plot(const Results& results, const std::string& path) {
  const PlotFormat format = format_of(path);
  tools::write_file(path, format == PlotFormat::svg ? plot_svg(results) : draw(results, format));
}

void check_plot(const std::string& path) {
  format_of(path);
  if (!has_gnuplot()) throw tools::UsageError("--plot: " + no_gnuplot_text());
  tools::check_writable(path);
}

}  // namespace col::colbench
