#ifndef TABLE_H
#define TABLE_H
#include "text.h"
void row(const char *name, int value);
#endif
