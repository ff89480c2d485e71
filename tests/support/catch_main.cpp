// main() of every Catch2 program of the suite.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include <iostream>
#include <sstream>

#include "support/catch.hpp"

namespace {

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif
// bool before Catch2 3, void since.
using Ended = decltype(std::declval<Listener&>().assertionEnded(std::declval<const Catch::AssertionStats&>()));

// Says all that failed once more at the end: who shows the last lines alone would see what the program logged after it.
struct Failures : Listener {
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo& info) override { case_ = info.name; }

  Ended assertionEnded(const Catch::AssertionStats& stats) override {
    const auto& result = stats.assertionResult;
    if (!result.isOk()) {
      said_ << case_ << "\n  " << result.getSourceInfo() << ": " << result.getExpressionInMacro() << '\n';
      if (result.hasExpandedExpression()) said_ << "  with: " << result.getExpandedExpression() << '\n';
      for (const auto& info : stats.infoMessages) said_ << "  " << info.message << '\n';
    }
    return Ended(true);
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    if (stats.totals.assertions.failed > 0) std::cerr << "\nOnce more, what failed:\n" << said_.str() << std::flush;
  }

 private:
  std::string case_;
  std::ostringstream said_;
};

CATCH_REGISTER_LISTENER(Failures)

}  // namespace

int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
