import OperonModel

// What coordinators and workers say of sources of triggers.
extension MessageGenerator {
    mutating func watchOrder() -> WatchOrder {
        switch below(5) {
        case 0: .begin(watch(), trigger(), below(8) == 0 ? nil : source())
        case 1: .end(watch())
        case 2: .taken(watch(), identity: "file:written:\(number())")
        case 3: .again(watch())
        default: .identify(positive(), process: Int32(1 + below(1 << 22)))
        }
    }

    mutating func watchReport() -> WatchReport {
        switch below(6) {
        case 0: .holds(list(0...4) { $0.heldWatch() })
        case 1: .state(watch(), watchState(), problem: below(2) == 0 ? nil : problem())
        case 2: .refused(watch(), count: max(1, small()), problem())
        case 3: .identified(positive(), "boot:1:\(number())")
        case 4: .unidentified(positive(), problem())
        default: .occurred(watch(), occurrence())
        }
    }

    private mutating func heldWatch() -> HeldWatch {
        HeldWatch(
            watch: watch(),
            trigger: trigger(),
            state: watchState(),
            occurrence: below(2) == 0 ? nil : "line:\(number())"
        )
    }

    private mutating func watch() -> WatchID { WatchID(rawValue: positive()) }

    private mutating func trigger() -> TriggerID { TriggerID(rawValue: number()) }

    private mutating func watchState() -> WatchState {
        WatchState.allCases[below(WatchState.allCases.count)]
    }

    private mutating func problem() -> TriggerSourceError {
        let codes = TriggerSourceError.Code.allCases
        // What a reader makes of control characters is another test.
        return TriggerSourceError(codes[below(codes.count)], text().withoutControls)
    }

    private mutating func occurrence() -> Occurrence {
        let event = Array("{\"line\":\(number())}".utf8)
        guard let made = Occurrence(identity: "line:\(number())", object: event) else {
            preconditionFailure("The identity and the event are within their bounds.")
        }
        return made
    }

    private mutating func source() -> WatchedSource {
        switch below(6) {
        case 0:
            let all = FileSource.Change.allCases
            let changes = Set(list(1...3) { all[$0.below(all.count)] })
            let pattern = below(2) == 0 ? nil : "*.csv"
            return .file(FileSource(path: "/in", pattern: pattern, changes: changes))
        case 1: return .pipe("/run/lines")
        case 2: return .program(["tail", "-F"] + list(0...3) { $0.text().withoutControls })
        case 3: return .signal(WatchedSource.signals[below(WatchedSource.signals.count)])
        case 4: return .process(.identity("boot:\(1 + below(9)):1"))
        default: return .process(.file("/run/d.pid"))
        }
    }
}
