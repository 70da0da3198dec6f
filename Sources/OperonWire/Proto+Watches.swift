import OperonModel

// What is said about the sources of triggers that workers watch: conversion to the generated types,
// and back with every field checked.

// MARK: - From a coordinator

extension ProtoWatchOrders {
    init(_ orders: [WatchOrder]) {
        self.init()
        self.orders = orders.map { ProtoWatchOrder($0) }
    }

    var checked: [WatchOrder] {
        get throws(WireError) {
            guard !orders.isEmpty else { throw .invalid("watch.orders", "is empty") }
            return try orders.map { order throws(WireError) in try WatchOrder(order) }
        }
    }
}

extension ProtoWatchOrder {
    init(_ order: WatchOrder) {
        self.init()
        switch order {
        case .begin(let watch, let trigger, let source):
            begin = ProtoWatch(source)
            begin.watch = watch.rawValue
            begin.trigger = trigger.rawValue
        case .end(let watch): end = watch.rawValue
        case .taken(let watch, let identity):
            taken.watch = watch.rawValue
            taken.identity = identity
        case .again(let watch): again = watch.rawValue
        case .identify(let number, let process):
            identify.number = number
            identify.process = process
        }
    }
}

extension WatchOrder {
    init(_ proto: ProtoWatchOrder) throws(WireError) {
        switch proto.what {
        case .begin(let begin):
            self = .begin(
                try WatchID(begin.watch, "begin.watch"),
                TriggerID(rawValue: begin.trigger),
                // The other orders of the message count all the same.
                try? WatchedSource.read(begin)
            )
        case .end(let watch): self = .end(try WatchID(watch, "end"))
        case .taken(let taken):
            self = .taken(
                try WatchID(taken.watch, "taken.watch"),
                identity: try WatchCheck.identity(taken.identity, "taken.identity")
            )
        case .again(let watch): self = .again(try WatchID(watch, "again"))
        case .identify(let question):
            let number = try Check.ordinal(question.number, "identify.number")
            let process = try Check.ordinal(question.process, "identify.process")
            self = .identify(number, process: process)
        case nil: throw .missing("watch.what")
        }
    }
}

extension WatchID {
    fileprivate init(_ number: UInt64, _ field: String) throws(WireError) {
        guard number != 0 else { throw .invalid(field, "is 0, which is no watch") }
        self.init(rawValue: number)
    }
}

extension ProtoWatch {
    fileprivate init(_ source: WatchedSource?) {
        self.init()
        switch source {
        case .file(let source):
            file.path = source.path
            if let pattern = source.pattern { file.pattern = pattern }
            file.changes = FileSource.Change.allCases.enumerated()
                .filter { source.changes.contains($0.element) }
                .map { UInt32($0.offset) + 1 }
        case .pipe(let path): pipe = path
        case .program(let arguments): program.arguments = arguments
        case .signal(let name): signal = name
        case .process(.identity(let identity)): process = identity
        case .process(.file(let path)): pidFile = path
        // The first is told by its identity; only a coordinator watches the second.
        case .process(.number), .message, nil: break
        }
    }
}

extension WatchedSource {
    /// - Throws: An error that nobody reads: a later program may have sent what this one refuses.
    fileprivate static func read(_ proto: ProtoWatch) throws(WireError) -> WatchedSource {
        switch proto.source {
        case .file(let file): return .file(try FileSource(file))
        case .pipe(let path): return .pipe(try WatchCheck.path(path, "begin.pipe"))
        case .program(let program): return .program(try WatchCheck.program(program.arguments))
        case .signal(let name):
            guard WatchedSource.signals.contains(name) else {
                throw .invalid("begin.signal", "is not a signal that can be watched")
            }
            return .signal(name)
        case .process(let identity):
            return .process(.identity(try WatchCheck.process(identity, "begin.process")))
        case .pidFile(let path):
            return .process(.file(try WatchCheck.path(path, "begin.pid_file")))
        case nil: throw .missing("begin.source")
        }
    }
}

extension FileSource {
    init(_ proto: ProtoWatchedFile) throws(WireError) {
        self.init(path: try WatchCheck.path(proto.path, "begin.file.path"))
        if proto.hasPattern {
            if let problem = FileSource.problem(ofName: proto.pattern) {
                throw .invalid("begin.file.pattern", problem)
            }
            pattern = proto.pattern
        }
        guard !proto.changes.isEmpty else { throw .invalid("begin.file.changes", "is empty") }
        let all = FileSource.Change.allCases
        changes = Set(
            try proto.changes.map { number throws(WireError) in
                guard 1...all.count ~= Int(number) else {
                    throw .invalid("begin.file.changes", "has \(number)")
                }
                return all[Int(number) - 1]
            }
        )
    }
}

// MARK: - From a worker

extension ProtoWatchReports {
    init(_ reports: [WatchReport]) {
        self.init()
        self.reports = reports.map { ProtoWatchReport($0) }
    }

    var checked: [WatchReport] {
        get throws(WireError) {
            guard !reports.isEmpty else { throw .invalid("watched.reports", "is empty") }
            return try reports.map { report throws(WireError) in try WatchReport(report) }
        }
    }
}

extension ProtoWatchReport {
    init(_ report: WatchReport) {
        self.init()
        switch report {
        case .holds(let held):
            holds.watches = held.map { one in
                var proto = ProtoHeldWatch()
                proto.watch = one.watch.rawValue
                proto.trigger = one.trigger.rawValue
                proto.state = ProtoWatchState(one.state)
                proto.occurrence = one.occurrence ?? ""
                return proto
            }
        case .state(let watch, let state, let problem):
            self.watch = watch.rawValue
            self.state.state = ProtoWatchState(state)
            if let problem { self.state.problem = ProtoWatchProblem(problem) }
        case .refused(let watch, let count, let problem):
            self.watch = watch.rawValue
            refused.count = count
            refused.problem = ProtoWatchProblem(problem)
        case .occurred(let watch, let occurrence):
            self.watch = watch.rawValue
            occurred.identity = occurrence.identity
            occurred.event = byteString(occurrence.event)
        case .identified(let number, let identity):
            identified.number = number
            identified.identity = identity
        case .unidentified(let number, let problem):
            unidentified.number = number
            unidentified.problem = ProtoWatchProblem(problem)
        }
    }
}

extension WatchReport {
    init(_ proto: ProtoWatchReport) throws(WireError) {
        switch proto.what {
        case .holds(let held):
            guard held.watches.count <= Limits.watchesPerWorker else {
                let why = "lists \(held.watches.count) of at most \(Limits.watchesPerWorker)"
                throw .invalid("holds.watches", why)
            }
            self = .holds(
                try held.watches.map { watch throws(WireError) in try HeldWatch(watch) }
            )
        case .state(let report):
            self = .state(
                try WatchID(proto.watch, "watched.watch"),
                try WatchState(report.state, "watched.state"),
                problem: report.hasProblem ? try TriggerSourceError(report.problem) : nil
            )
        case .refused(let refused):
            self = .refused(
                try WatchID(proto.watch, "watched.watch"),
                count: try Check.ordinal(refused.count, "refused.count"),
                try TriggerSourceError(refused.problem)
            )
        case .occurred(let occurred):
            let watch = try WatchID(proto.watch, "watched.watch")
            let identity = try WatchCheck.identity(occurred.identity, "occurred.identity")
            guard let event = Occurrence(identity: identity, object: [UInt8](occurred.event)) else {
                throw .invalid(
                    "occurred.event",
                    "has \(occurred.event.count) bytes: it is a JSON object of up to "
                        + "\(Occurrence.eventBytesMax)"
                )
            }
            self = .occurred(watch, event)
        case .identified(let answer):
            let number = try Check.ordinal(answer.number, "identified.number")
            let identity = try WatchCheck.process(answer.identity, "identified.identity")
            self = .identified(number, identity)
        case .unidentified(let answer):
            let number = try Check.ordinal(answer.number, "unidentified.number")
            self = .unidentified(number, try TriggerSourceError(answer.problem))
        case nil: throw .missing("watched.what")
        }
    }
}

extension HeldWatch {
    fileprivate init(_ proto: ProtoHeldWatch) throws(WireError) {
        self.init(
            watch: try WatchID(proto.watch, "holds.watch"),
            trigger: TriggerID(rawValue: proto.trigger),
            state: try WatchState(proto.state, "holds.state"),
            occurrence: proto.occurrence.isEmpty
                ? nil : try WatchCheck.identity(proto.occurrence, "holds.occurrence")
        )
    }
}

extension ProtoWatchProblem {
    init(_ problem: TriggerSourceError) {
        self.init()
        code = UInt32(problem.code.rawValue)
        message = problem.message.prefix(bytes: Limits.watchProblemBytes)
    }
}

extension TriggerSourceError {
    init(_ proto: ProtoWatchProblem) throws(WireError) {
        let bytes = proto.message.utf8.count
        guard bytes <= Limits.watchProblemBytes else {
            let why = "has \(bytes) bytes: it may have \(Limits.watchProblemBytes)"
            throw .invalid("problem.message", why)
        }
        let code = UInt8(exactly: proto.code).flatMap { Code(rawValue: $0) } ?? .system
        // People read it in logs and on terminals.
        self.init(code, proto.message.withoutControls)
    }
}

extension ProtoWatchState {
    init(_ state: WatchState) {
        self =
            switch state {
            case .starting: .starting
            case .observing: .observing
            case .waiting: .waiting
            case .ended: .ended
            }
    }
}

extension WatchState {
    init(_ proto: ProtoWatchState, _ field: String) throws(WireError) {
        switch proto {
        case .starting: self = .starting
        case .observing: self = .observing
        case .waiting: self = .waiting
        case .ended: self = .ended
        case .unspecified, .UNRECOGNIZED: throw .missing(field)
        }
    }
}

private enum WatchCheck {
    static func identity(_ identity: String, _ field: String) throws(WireError) -> String {
        guard Occurrence.isIdentity(identity) else {
            throw .invalid(
                field,
                "has \(identity.utf8.count) bytes: an identity has 1 to "
                    + "\(Occurrence.identityBytesMax), printable ASCII without spaces"
            )
        }
        return identity
    }

    static func program(_ arguments: [String]) throws(WireError) -> [String] {
        let bytes = arguments.reduce(0) { $0 + $1.utf8.count + 1 }
        guard bytes <= Limits.watchedProgramBytes else {
            let why = "has \(bytes) bytes: it may have \(Limits.watchedProgramBytes)"
            throw .invalid("begin.program", why)
        }
        guard arguments.first?.isEmpty == false else {
            throw .invalid("begin.program", "names no program")
        }
        guard !arguments.contains(where: { $0.utf8.contains(0) }) else {
            throw .invalid("begin.program", "contains a NUL byte")
        }
        return arguments
    }

    static func process(_ identity: String, _ field: String) throws(WireError) -> String {
        let bytes = identity.utf8.count
        guard 1...Limits.processIdentityBytes ~= bytes else {
            let most = Limits.processIdentityBytes
            throw .invalid(field, "has \(bytes) bytes: an identity has 1 to \(most)")
        }
        return identity
    }

    static func path(_ path: String, _ field: String) throws(WireError) -> String {
        guard let problem = Limits.problem(ofWatchedPath: path) else { return path }
        throw .invalid(field, problem)
    }
}
