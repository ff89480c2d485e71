// A library that has the name of a module, and is none.
extern "C" __attribute__((visibility("default"))) int something_else() {
  return 0;
}
