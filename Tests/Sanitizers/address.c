// Linked into every program that `scripts/test-sanitized address` builds. Tests start programs with an
// environment of their own, and so do workers, so ASAN_OPTIONS would not reach them all. OPTIONS is
// the path of a file that has the options.
const char *__asan_default_options(void) { return "include=" OPTIONS; }
