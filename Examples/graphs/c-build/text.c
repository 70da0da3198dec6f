#include "text.h"
int words(const char *text) {
    int count = 0, inside = 0;
    for (; *text; text++) {
        int letter = *text != ' ';
        count += letter && !inside;
        inside = letter;
    }
    return count;
}
