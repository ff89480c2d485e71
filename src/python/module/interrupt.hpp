// Ctrl-C, and other signals that Python handles, while a call waits.
#pragma once

namespace col::python {

// What every wait of libcol calls now and then, on the thread that waits, without the GIL: ContextSpec::interrupt. Runs
// the handlers of signals that have come, and throws what they raise.
void check_signals();

}  // namespace col::python
