#include <stdio.h>
#include "log.h"
void note(const char *text) { fprintf(stderr, "log: %s\n", text); }
