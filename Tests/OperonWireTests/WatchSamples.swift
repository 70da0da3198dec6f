import OperonModel

extension Samples {
    private static let watch = WatchID(rawValue: 0x5F0E_6C9A_7B1D_2C34)
    private static let trigger = TriggerID(epoch: Epoch(rawValue: 3), number: 7)

    /// Every order about watches, and every source.
    static let watchOrders: [WatchOrder] = [
        .begin(
            watch,
            trigger,
            .file(FileSource(path: "/in", pattern: "*.csv", changes: [.created, .renamed]))
        ),
        .begin(watch, trigger, .file(FileSource(path: "/in/ready", changes: [.attributes]))),
        .begin(watch, trigger, .pipe("/run/lines")),
        .begin(watch, trigger, .program(["tail", "-F", "log"])),
        .begin(watch, trigger, .signal("SIGUSR1")),
        .begin(watch, trigger, .process(.identity("5f0e:4711:99"))),
        .begin(watch, trigger, .process(.file("/run/d.pid"))),
        .end(watch),
        .taken(watch, identity: "file:written:1:2.3:4"),
        .again(WatchID(rawValue: .max)),
        .identify(1, process: 4_711),
    ]

    /// Every report about watches.
    static let watchReports: [WatchReport] =
        [
            .holds([
                HeldWatch(watch: watch, trigger: trigger, state: .starting, occurrence: "line:1"),
                HeldWatch(watch: watch, trigger: TriggerID(rawValue: .max), state: .ended),
            ]),
            .holds([]),
            .state(watch, .observing, problem: nil),
            .state(watch, .waiting, problem: TriggerSourceError(.absent, "“/in” does not exist")),
            .state(watch, .ended, problem: nil),
            .refused(watch, count: 2, TriggerSourceError(.limitExceeded, "a line is too long")),
            .identified(1, "5f0e:4711:99"),
            .unidentified(2, TriggerSourceError(.absent, "there is no process 4711")),
        ] + occurred

    private static let occurred: [WatchReport] = {
        let event = Array(#"{"line":"a"}"#.utf8)
        return Occurrence(identity: "line:00ff", object: event).map { [.occurred(watch, $0)] }
            ?? []
    }()
}
