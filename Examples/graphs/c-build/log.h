#ifndef LOG_H
#define LOG_H
void note(const char *text);
#endif
