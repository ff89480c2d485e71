// The export macro: everything else in libcol is hidden (-fvisibility=hidden).
//
// A class that is thrown or caught across the library border, or whose virtual functions are implemented outside of it,
// must carry COL_EXPORT, or its type information is duplicated and a catch clause in the program misses it.
#pragma once

#define COL_EXPORT __attribute__((visibility("default")))
