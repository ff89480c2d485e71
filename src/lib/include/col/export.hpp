// The export macro. Everything in libcol that does not have it is hidden (-fvisibility=hidden).
//
// These classes must have COL_EXPORT: classes that are thrown or caught across the border of the library, and classes
// whose virtual functions are implemented outside of it. Otherwise their type information exists twice, and a catch
// clause in the program misses them.
#pragma once

#define COL_EXPORT __attribute__((visibility("default")))
