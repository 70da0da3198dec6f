#include "operon_process.h"

// Package.swift defines it from the variable of this name.
#ifndef OPERON_BUILD
#define OPERON_BUILD ""
#endif

const char *operon_build(void) { return OPERON_BUILD; }
