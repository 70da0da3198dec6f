extension FuzzTarget {
    /// All of them, in the order of the documentation.
    package static let all: [FuzzTarget] =
        [yaml, json, jsonLines, trigger, coordinator, worker, seals, text, timeZone]
        + inside

    #if DEBUG || OPERON_FUZZER
    private static let inside = [amqp, http, contents, journal]
    #else
    private static let inside: [FuzzTarget] = []
    #endif

    /// The target of this name; `nil`: there is none.
    package static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}
