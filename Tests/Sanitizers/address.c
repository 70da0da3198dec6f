// Linked into every program that `scripts/test-sanitized address` builds. Tests start programs with an
// environment of their own, and so do workers, so ASAN_OPTIONS would not reach them all. OPTIONS is
// the path of a file that has the options.
const char *__asan_default_options(void) { return "include=" OPTIONS; }

// Each line needs a reason. XCTest, which starts the tests of Swift Testing, too, keeps what it has counted until
// the process ends.
const char *__lsan_default_suppressions(void) { return "leak:libXCTest.so\n"; }
