#include "table.h"
#include "version.h"
int main(void) {
    row(VERSION, words("the whale the sea"));
    return 0;
}
