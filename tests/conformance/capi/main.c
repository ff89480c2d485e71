/* The C interface from C: every function of <col/col.h>, on one to three ranks. */
#include <stdio.h>

#include "ranks.h"

int main(void) {
  const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {
      {"renewal", test_renewal}, /* the first: it forks */
      {"abi", test_abi},
      {"tables", test_tables},
      {"arguments", test_arguments},
      {"collectives", test_collectives},
      {"failures", test_failures},
      {"groups", test_groups},
      {"messages", test_messages},
      {"operators", test_operators},
      {"prepared", test_prepared},
      {"works", test_works},
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
    printf("%s\n", tests[i].name);
    fflush(stdout);
    tests[i].run();
  }
  return 0;
}
