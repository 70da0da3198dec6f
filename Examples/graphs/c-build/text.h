#ifndef TEXT_H
#define TEXT_H
int words(const char *text);
#endif
