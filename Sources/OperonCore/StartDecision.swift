package import OperonModel

/// When a file was modified last, as exactly as the system says it.
package struct ModificationTime: Hashable, Sendable, Comparable {
    /// Seconds since 1970; negative before.
    package var seconds: Int64
    /// 0…999,999,999.
    package var nanoseconds: Int64

    package init(seconds: Int64, nanoseconds: Int64 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    package static func < (left: ModificationTime, right: ModificationTime) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}

/// A file that an operation produces or consumes, and what a look at it showed.
package struct ObservedFile: Hashable, Sendable {
    package enum Finding: Hashable, Sendable {
        case exists(modified: ModificationTime)
        case missing
        /// The system did not say, for this reason.
        case unknown(why: String)
    }

    /// As the operation names it.
    package var path: String
    package var finding: Finding

    package init(_ path: String, _ finding: Finding) {
        self.path = path
        self.finding = finding
    }

    fileprivate var modified: ModificationTime? {
        if case .exists(let modified) = finding { modified } else { nil }
    }

    /// Why an attempt fails whose process succeeded; `nil`: it produced all of these files.
    package static func missingProduct(among produced: [ObservedFile]) -> OperationError? {
        failure(produced, "produces", .succeeded)
    }

    /// The files that a process has written which did not succeed: nobody may take them for its
    /// products.
    ///
    /// - Parameters:
    ///   - before: The products before the process was started.
    ///   - after: The same files in the same order, after its end.
    /// - Returns: Their places in the list, ascending.
    package static func unfinished(before: [ObservedFile], after: [ObservedFile]) -> [Int] {
        zip(before, after).enumerated().compactMap { place, files in
            let (old, new) = files
            if case .unknown = old.finding { return nil }
            guard let modified = new.modified, modified != old.modified else { return nil }
            return place
        }
    }

    /// When the file was needed.
    fileprivate enum Moment {
        case start
        case succeeded
    }

    /// The failure that the first missing one of these files causes; `nil`: none is missing.
    fileprivate static func failure(
        _ files: [ObservedFile],
        _ verb: String,
        _ moment: Moment
    ) -> OperationError? {
        let missing = files.lazy.filter { $0.modified == nil }
        guard let first = missing.first else { return nil }
        var message = "the file “\(first.path)”, which it \(verb), "
        switch first.finding {
        case .unknown(let why): message += "cannot be looked at: \(why)"
        case .missing, .exists:
            message += moment == .start ? "does not exist" : "does not exist after its success"
        }
        let more = missing.dropFirst().count
        if more > 0 { message += " (and \(more) more of its files)" }
        return .thrown(type: verb, message: message, payload: [])
    }
}

/// What an attempt does at the moment when its process would start, decided from the files of its
/// operation as `make` decides it.
package enum StartDecision: Hashable, Sendable {
    case start
    /// The attempt succeeds without a process.
    case upToDate
    /// The attempt fails without a process.
    case fail(OperationError)

    /// - Parameters:
    ///   - produced: All files that the operation produces; only looked at if it skips.
    ///   - consumed: All files that it consumes. The attempt fails if one is missing.
    ///   - skipsIfUpToDate: Whether the process is not started while every product exists and none
    ///     is older than a consumed file. Equal times are up to date.
    ///   - isRepeat: Whether an earlier attempt may have started. What it left may be unfinished,
    ///     so it is not up to date.
    package init(
        produced: [ObservedFile],
        consumed: [ObservedFile],
        skipsIfUpToDate: Bool,
        isRepeat: Bool
    ) {
        if let error = ObservedFile.failure(consumed, "consumes", .start) {
            self = .fail(error)
            return
        }
        guard skipsIfUpToDate, !isRepeat, let oldest = produced.compactMap(\.modified).min(),
            produced.allSatisfy({ $0.modified != nil })
        else {
            self = .start
            return
        }
        let newest = consumed.compactMap(\.modified).max()
        self = newest.map { oldest < $0 } == true ? .start : .upToDate
    }
}
