#include <sqlite3.h>

// sqlite3_db_config(3) takes any number of arguments, which Swift cannot call.

/// Has the last connection leave the log as it is when it is closed.
static inline int operon_sqlite_keep_log(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
