// <sys/time.h> comes first: <amqp.h> only forward-declares struct timeval, and without its
// definition the functions that take one cannot be called from Swift.
#include <sys/time.h>

#include <amqp.h>
#include <amqp_framing.h>
