import OperonModel

/// The tables, as a list of steps that only grows. A store records how many of the steps it has
/// had.
enum StoreSchema {
    /// “OPRN”: distinguishes a store from the databases of other programs.
    static let applicationID: Int64 = 0x4F50_524E

    static var version: Int64 { Int64(steps.count) }

    /// Never change a released step; add another one.
    private static let steps: [String] = [
        first, keys, workers, rates, triggers, journal, noEvents, ranges,
        cutLogs, triggerEvents, noEventIndex,
    ]
    /// The index of the step that makes the journal.
    private static let journalStep = 5

    /// Applies the steps that a store has not had yet, within the caller's transaction.
    static func migrate(_ database: Database, from version: Int64) throws {
        for (index, step) in steps.enumerated().dropFirst(Int(version)) {
            try database.execute(step)
            guard index == journalStep else { continue }
            try StoreTables(database, limits: Limits()).beginJournal()
        }
        try database.execute("PRAGMA user_version = \(StoreSchema.version)")
    }

    /// SQLite's definitions of the tables, sorted. If they differ from what these steps create,
    /// another program has changed the store, or it is damaged.
    static func description(_ database: Database) throws -> [String] {
        let sql = """
            SELECT type || ' ' || name || ': ' || coalesce(sql, '') FROM sqlite_schema
            WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name
            """
        return try database.texts(sql)
    }

    /// The `description` of an intact store.
    static func expected() throws -> [String] {
        let database = try Database(path: ":memory:")
        for step in steps { try database.execute(step) }
        return try description(database)
    }

    /// Nothing changes but the number, so that earlier versions refuse the store: they cannot read
    /// events of triggers.
    private static let triggerEvents = "-- events of triggers"

    /// The numbers of events grow with the rows of the journal, so that a search finds an event.
    /// The index took half of the bytes that a small commit wrote.
    private static let noEventIndex = "DROP INDEX journal_events;"

    /// What each commit has changed, in order, with its events: see `StoreTables`.
    private static let journal = """
        CREATE TABLE journal (
          id INTEGER PRIMARY KEY, -- without gaps
          epoch INTEGER NOT NULL,
          wall INTEGER NOT NULL,
          first_event INTEGER NOT NULL,
          last_event INTEGER NOT NULL, -- below first_event: none
          records BLOB NOT NULL,
          events BLOB NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE INDEX journal_events ON journal (last_event);

        CREATE TABLE projection (
          id INTEGER PRIMARY KEY CHECK (id = 1),
          journal INTEGER NOT NULL, -- the other tables have everything up to this row
          first_event INTEGER NOT NULL, -- the oldest event that was not dropped
          sum INTEGER NOT NULL
        ) STRICT;
        """

    /// Logs of which a part between their first and their last bytes was not kept.
    private static let cutLogs = """
        CREATE TABLE cut_logs (
          operation INTEGER NOT NULL,
          epoch INTEGER NOT NULL,
          number INTEGER NOT NULL,
          head BLOB NOT NULL,
          missing INTEGER NOT NULL, -- unsigned: bytes between head and tail
          tail BLOB NOT NULL,
          sum INTEGER NOT NULL,
          PRIMARY KEY (operation, epoch, number)
        ) STRICT, WITHOUT ROWID;
        """

    /// The events are in the journal.
    private static let noEvents = "DROP TABLE events"

    /// Operations that finished together, unless they have rows of their own.
    private static let ranges = """
        CREATE TABLE finished_ranges (
          graph INTEGER NOT NULL,
          first INTEGER NOT NULL,
          count INTEGER NOT NULL,
          outcome INTEGER NOT NULL, -- as in operations
          detail TEXT,
          finished_at INTEGER NOT NULL,
          sum INTEGER NOT NULL,
          PRIMARY KEY (graph, first)
        ) STRICT, WITHOUT ROWID;

        CREATE VIEW readable_ranges AS SELECT
          graph || '/' || first || ' to ' || graph || '/' || (first + count - 1) AS operations,
          CASE outcome WHEN 0 THEN 'succeeded' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled'
            WHEN 3 THEN 'skipped' END AS outcome,
          detail, datetime(finished_at / 1000000000, 'unixepoch') AS finished_at
          FROM finished_ranges;
        """

    /// The limits of keys.
    private static let keys = """
        CREATE TABLE keys (
          name TEXT PRIMARY KEY,
          maximum INTEGER NOT NULL,
          was_set INTEGER NOT NULL, -- by a command
          sum INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    /// The rates of queues and keys, apart from their rows: each start changes the time.
    private static let rates = """
        CREATE TABLE rates (
          is_key INTEGER NOT NULL, -- 0: the rate of a queue
          name TEXT NOT NULL,
          count INTEGER NOT NULL,
          period INTEGER NOT NULL,
          burst INTEGER NOT NULL,
          full_at INTEGER,
          sum INTEGER NOT NULL,
          PRIMARY KEY (is_key, name)
        ) STRICT, WITHOUT ROWID;
        """

    /// Triggers, what has changed about each, and their firings. The number of a trigger is its
    /// epoch × 2³² + its number in that epoch.
    private static let triggers = """
        CREATE TABLE triggers (
          id INTEGER PRIMARY KEY,
          name TEXT NOT NULL,
          added_at INTEGER NOT NULL,
          added_by TEXT NOT NULL,
          body BLOB NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE trigger_states (
          id INTEGER PRIMARY KEY,
          position INTEGER NOT NULL, -- ticks up to here were decided on
          suspended_by TEXT, suspended_reason TEXT, suspended_until INTEGER,
          is_removed INTEGER NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE firings (
          trigger_id INTEGER NOT NULL,
          number INTEGER NOT NULL,
          identity TEXT NOT NULL,
          planned_at INTEGER,
          occurred_at INTEGER NOT NULL,
          ordinal INTEGER NOT NULL,
          floor INTEGER,
          status INTEGER NOT NULL, -- 0 waiting 1 merged 2 accepted 3 submitted 4 ended 5 skipped
                                   -- 6 dropped 7 refused
          other INTEGER, -- the firing that it was merged into
          graph INTEGER,
          outcome INTEGER,
          occurrences INTEGER NOT NULL,
          data TEXT NOT NULL,
          reason TEXT NOT NULL,
          sum INTEGER NOT NULL,
          PRIMARY KEY (trigger_id, number)
        ) STRICT, WITHOUT ROWID;

        CREATE VIEW readable_firings AS SELECT
          (SELECT name FROM triggers WHERE id = trigger_id) AS name, number, identity,
          datetime(occurred_at / 1000000000, 'unixepoch') AS occurred_at,
          CASE status WHEN 0 THEN 'waiting' WHEN 1 THEN 'merged' WHEN 2 THEN 'accepted'
            WHEN 3 THEN 'submitted' WHEN 4 THEN 'ended' WHEN 5 THEN 'skipped'
            WHEN 6 THEN 'dropped' WHEN 7 THEN 'refused' END AS status,
          graph, occurrences, reason
          FROM firings;
        """

    /// The names of workers that have stored attempts or connected recently.
    private static let workers = """
        CREATE TABLE workers (
          id INTEGER PRIMARY KEY,
          name TEXT NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        DROP VIEW readable_attempts;

        CREATE VIEW readable_attempts AS SELECT
          (operation >> 32) || '/' || (operation & 4294967295) AS operation,
          epoch || '.' || number AS attempt,
          coalesce((SELECT name FROM workers WHERE id = worker), printf('%016x', worker)) AS worker,
          datetime(granted_at / 1000000000, 'unixepoch') AS granted_at,
          datetime(started_at / 1000000000, 'unixepoch') AS started_at,
          datetime(ended_at / 1000000000, 'unixepoch') AS ended_at,
          CASE ending WHEN 0 THEN 'succeeded' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled'
            WHEN 3 THEN 'returned' WHEN 4 THEN 'lost' WHEN 5 THEN 'crashed' END AS ending, error
          FROM attempts
          UNION ALL SELECT (operation >> 32) || '/' || (operation & 4294967295),
          epoch || '.' || number,
          coalesce((SELECT name FROM workers WHERE id = worker), printf('%016x', worker)),
          datetime(granted_at / 1000000000, 'unixepoch'),
          datetime(started_at / 1000000000, 'unixepoch'), NULL, NULL, NULL
          FROM attempts_in_flight;
        """

    /// Times are nanoseconds since 1970. An operation is one number, graph × 2³² + index: this
    /// is the smallest possible key and gives the order in which operations are read.
    private static let first = """
        CREATE TABLE meta (
          id INTEGER PRIMARY KEY CHECK (id = 1),
          reign TEXT NOT NULL,
          epoch INTEGER NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE graphs (
          id INTEGER PRIMARY KEY,
          name TEXT NOT NULL,
          submitted_at INTEGER NOT NULL,
          finished_at INTEGER,
          is_open INTEGER NOT NULL,
          tombstone INTEGER NOT NULL, -- 1: its rows are being deleted, 2: they are deleted
          suspended_by TEXT, suspended_reason TEXT, suspended_until INTEGER,
          cancel_reason TEXT,
          operation_count INTEGER NOT NULL,
          finished_count INTEGER NOT NULL,
          needs TEXT NOT NULL, -- other graphs that it depends on
          outcomes TEXT NOT NULL, -- of a tombstone: s9 f1 means nine succeeded, one failed
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE contents (
          id INTEGER PRIMARY KEY,
          graph INTEGER NOT NULL,
          name TEXT NOT NULL,
          submitter TEXT NOT NULL,
          is_open INTEGER NOT NULL,
          idempotency_key TEXT NOT NULL,
          trace_parent TEXT NOT NULL,
          first INTEGER NOT NULL,
          operation_count INTEGER NOT NULL,
          needs TEXT NOT NULL,
          bytes INTEGER NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE pieces (
          id INTEGER PRIMARY KEY, -- contents × 65536 + number
          body BLOB NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE operations (
          id INTEGER PRIMARY KEY,
          outcome INTEGER, -- 0 succeeded, 1 failed, 2 cancelled, 3 skipped
          detail TEXT, -- the error, the reason or the cause
          finished_at INTEGER,
          round INTEGER NOT NULL,
          attempts INTEGER NOT NULL,
          retries INTEGER NOT NULL,
          workers_lost INTEGER NOT NULL,
          crashes INTEGER NOT NULL,
          priority INTEGER,
          suspended_by TEXT, suspended_reason TEXT, suspended_until INTEGER,
          cancel_reason TEXT,
          retry_at INTEGER,
          comes_back INTEGER NOT NULL,
          deadline_passed INTEGER NOT NULL,
          has_output INTEGER NOT NULL,
          sum INTEGER NOT NULL,
          graph INTEGER GENERATED ALWAYS AS (id >> 32) VIRTUAL,
          number INTEGER GENERATED ALWAYS AS (id & 4294967295) VIRTUAL
        ) STRICT;

        CREATE TABLE attempts (
          operation INTEGER NOT NULL,
          epoch INTEGER NOT NULL,
          number INTEGER NOT NULL,
          ordinal INTEGER NOT NULL,
          worker INTEGER NOT NULL,
          granted_at INTEGER NOT NULL,
          started_at INTEGER,
          ended_at INTEGER,
          ending INTEGER, -- 0 succeeded 1 failed 2 cancelled 3 returned 4 lost 5 crashed
          error TEXT,
          sum INTEGER NOT NULL,
          PRIMARY KEY (operation, epoch, number)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE attempts_in_flight (
          operation INTEGER PRIMARY KEY,
          epoch INTEGER NOT NULL,
          number INTEGER NOT NULL,
          ordinal INTEGER NOT NULL,
          worker INTEGER NOT NULL,
          granted_at INTEGER NOT NULL,
          started_at INTEGER,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE outputs (
          operation INTEGER PRIMARY KEY,
          content_type TEXT NOT NULL,
          body BLOB NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE logs (
          operation INTEGER NOT NULL,
          epoch INTEGER NOT NULL,
          number INTEGER NOT NULL,
          tail BLOB NOT NULL,
          sum INTEGER NOT NULL,
          PRIMARY KEY (operation, epoch, number)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE queues (
          name TEXT PRIMARY KEY,
          maximum INTEGER,
          priority INTEGER NOT NULL,
          suspended_by TEXT, suspended_reason TEXT, suspended_until INTEGER,
          was_set INTEGER NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE dependency_changes (
          id INTEGER PRIMARY KEY,
          operation INTEGER NOT NULL,
          depends_on INTEGER NOT NULL,
          condition INTEGER, -- NULL: removed
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE TABLE events (
          sequence INTEGER PRIMARY KEY,
          body BLOB NOT NULL,
          sum INTEGER NOT NULL
        ) STRICT;

        CREATE VIEW readable_operations AS SELECT
          graph || '/' || number AS operation,
          CASE outcome WHEN 0 THEN 'succeeded' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled'
            WHEN 3 THEN 'skipped' END AS outcome,
          detail, datetime(finished_at / 1000000000, 'unixepoch') AS finished_at, attempts, round
          FROM operations;

        CREATE VIEW readable_attempts AS SELECT
          (operation >> 32) || '/' || (operation & 4294967295) AS operation,
          epoch || '.' || number AS attempt, printf('%016x', worker) AS worker,
          datetime(granted_at / 1000000000, 'unixepoch') AS granted_at,
          datetime(started_at / 1000000000, 'unixepoch') AS started_at,
          datetime(ended_at / 1000000000, 'unixepoch') AS ended_at,
          CASE ending WHEN 0 THEN 'succeeded' WHEN 1 THEN 'failed' WHEN 2 THEN 'cancelled'
            WHEN 3 THEN 'returned' WHEN 4 THEN 'lost' WHEN 5 THEN 'crashed' END AS ending, error
          FROM attempts
          UNION ALL SELECT (operation >> 32) || '/' || (operation & 4294967295),
          epoch || '.' || number, printf('%016x', worker),
          datetime(granted_at / 1000000000, 'unixepoch'),
          datetime(started_at / 1000000000, 'unixepoch'), NULL, NULL, NULL
          FROM attempts_in_flight;
        """
}
