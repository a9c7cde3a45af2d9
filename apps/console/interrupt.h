// Ctrl-C and SIGTERM as a flag that long work asks between its pieces, so that destructors run and nothing is
// left behind.
#pragma once

namespace plow {

// From here on the first SIGINT or SIGTERM sets the flag; a second one ends the process at once.
void catch_interrupts();

// The number of the signal that came, or 0.
int interrupted();

// Takes the flag back: `plowrt chat` goes on after Ctrl-C.
void clear_interrupt();

}  // namespace plow
