import OperonModel

// The settings of queues and keys.
extension StoreTables {
    func write(_ queue: StoredQueue) throws {
        if queue.hasNoSettings {
            let delete = try statement("DELETE FROM queues WHERE name = ?")
            try delete.bind(queue.name)
            return try delete.execute()
        }
        let insert = try statement("INSERT OR REPLACE INTO queues VALUES (?,?,?,?,?,?,?,?)")
        try insert.bind(queue.name)
        try insert.bind(queue.maximum.map(Int64.init))
        try insert.bind(Int64(queue.priority.rawValue))
        try insert.bind(queue.suspension)
        try insert.bind(Int64(queue.commanded.rawValue))
        try insert.bindSum()
        try insert.execute()
    }

    func write(_ key: StoredKey) throws {
        if key.hasNoSettings {
            let delete = try statement("DELETE FROM keys WHERE name = ?")
            try delete.bind(key.settings.name)
            return try delete.execute()
        }
        let insert = try statement("INSERT OR REPLACE INTO keys VALUES (?,?,?,?)")
        try insert.bind(key.settings.name)
        try insert.bind(Int64(key.settings.limit))
        try insert.bind(key.isCommanded)
        try insert.bindSum()
        try insert.execute()
    }

    func write(_ stored: StoredRate) throws {
        let (isKey, name) = stored.scope.row
        guard let rate = stored.rate else {
            let delete = try statement("DELETE FROM rates WHERE is_key = ? AND name = ?")
            try delete.bind(isKey)
            try delete.bind(name)
            return try delete.execute()
        }
        let insert = try statement("INSERT OR REPLACE INTO rates VALUES (?,?,?,?,?,?,?)")
        try insert.bind(isKey)
        try insert.bind(name)
        try insert.bind(Int64(rate.count))
        try insert.bind(rate.period.nanoseconds)
        try insert.bind(Int64(rate.burst))
        try insert.bind(stored.fullAt?.nanosecondsSince1970)
        try insert.bindSum()
        try insert.execute()
    }
}
