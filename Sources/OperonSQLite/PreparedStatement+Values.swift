import OperonModel

// Values that take several columns.
extension PreparedStatement {
    func bind(_ flag: Bool) throws { try bind(flag ? 1 as Int64 : 0) }

    func bind(_ suspension: Suspension?) throws {
        try bind(suspension?.by)
        try bind(suspension?.reason)
        try bind(suspension?.until?.nanosecondsSince1970)
    }

    func bind(_ attempt: AttemptID) throws {
        try bind(Int64(attempt.epoch.rawValue))
        try bind(Int64(bitPattern: attempt.number))
    }

    func bind(start attempt: StoredAttempt) throws {
        try bind(attempt.id)
        try bind(Int64(attempt.ordinal))
        try bind(attempt.worker.key)
        try bind(attempt.grantedAt.nanosecondsSince1970)
        try bind(attempt.startedAt?.nanosecondsSince1970)
    }

    /// The detail of a success says whether it was up to date.
    func bind(_ outcome: Outcome?, isUpToDate: Bool) throws {
        try bind(outcome.map { Int64($0.kind.rawValue) })
        switch outcome {
        case nil: try bind(String?.none)
        case .succeeded: try bind(isUpToDate ? RowText.upToDate : nil)
        case .failed(let error): try bind(RowText.text(error))
        case .cancelled(let reason): try bind(reason)
        case .skipped(let cause): try bind(cause.description)
        }
    }

    func bind(_ ending: AttemptEnding?) throws {
        switch ending {
        case nil: try bind(Int64?.none)
        case .succeeded: try bind(0 as Int64)
        case .failed: try bind(1 as Int64)
        case .cancelled: try bind(2 as Int64)
        case .returned: try bind(3 as Int64)
        case .lost: try bind(4 as Int64)
        case .crashed: try bind(5 as Int64)
        }
        if case .failed(let error) = ending {
            try bind(RowText.text(error))
        } else {
            try bind(String?.none)
        }
    }
}
