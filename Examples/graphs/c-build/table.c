#include <stdio.h>
#include "table.h"
#include "log.h"
void row(const char *name, int value) {
    note("row");
    printf("%-8s %d\n", name, value);
}
