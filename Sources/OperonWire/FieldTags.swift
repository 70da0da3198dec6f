// Tags of the fields of operon.proto that are written and read without generated types. A tag is
// the number of the field, followed by three bits for the form of its value: 0 is a varint, 1 is
// eight bytes, 2 is a length and that many bytes.

enum EnvelopeTag {
    static let schemaMajor: UInt64 = 1 << 3
    static let schemaMinor: UInt64 = 2 << 3
    static let reign: UInt64 = 3 << 3 | 1
    static let epoch: UInt64 = 4 << 3
    static let sequence: UInt64 = 5 << 3
    static let sender: UInt64 = 6 << 3 | 2
    static let dispatch: UInt64 = 7 << 3 | 2
    static let events: UInt64 = 9 << 3 | 2
}

enum SenderTag {
    static let name: UInt64 = 1 << 3 | 2
    static let incarnation: UInt64 = 2 << 3 | 1
    static let connection: UInt64 = 3 << 3
}

enum HeldAttemptTag {
    static let epoch: UInt64 = 1 << 3
    static let number: UInt64 = 2 << 3
    static let graph: UInt64 = 3 << 3
    static let index: UInt64 = 4 << 3
}

enum PayloadTag {
    static let contentType: UInt64 = 1 << 3 | 2
    static let value: UInt64 = 2 << 3 | 2
}

enum DispatchTag {
    static let acknowledged: UInt64 = 1 << 3
    static let operations: UInt64 = 2 << 3 | 2
}

enum DispatchedOperationTag {
    static let held: UInt64 = 1 << 3 | 2
    static let ordinal: UInt64 = 2 << 3
    static let graphName: UInt64 = 3 << 3 | 2
    static let name: UInt64 = 4 << 3 | 2
    static let queue: UInt64 = 5 << 3 | 2
    static let priority: UInt64 = 6 << 3
    static let rank: UInt64 = 7 << 3
    static let timeout: UInt64 = 8 << 3
    static let qualityOfService: UInt64 = 9 << 3
    static let inputs: UInt64 = 10 << 3 | 2
    static let nothing: UInt64 = 11 << 3 | 2
    static let wait: UInt64 = 12 << 3
    static let command: UInt64 = 13 << 3 | 2
    static let registered: UInt64 = 14 << 3 | 2
    static let exclusiveLease: UInt64 = 16 << 3
    static let isIsolated: UInt64 = 17 << 3
    static let announcesStart: UInt64 = 18 << 3
    static let isRepeat: UInt64 = 19 << 3
    static let resources: UInt64 = 24 << 3 | 2
    static let isEnforced: UInt64 = 25 << 3
    static let traceParent: UInt64 = 28 << 3 | 2
    static let withoutOutput: UInt64 = 29 << 3 | 2
    static let commandWithSecrets: UInt64 = 32 << 3 | 2
}

enum RegisteredTag {
    static let kind: UInt64 = 1 << 3 | 2
    static let input: UInt64 = 2 << 3 | 2
}

enum NamedInputTag {
    static let name: UInt64 = 1 << 3 | 2
    static let output: UInt64 = 2 << 3 | 2
    static let reference: UInt64 = 3 << 3 | 2
    static let dropped: UInt64 = 4 << 3
}

enum ResourceAmountTag {
    static let name: UInt64 = 1 << 3 | 2
    static let amount: UInt64 = 2 << 3
}

enum EventBatchTag {
    static let firstNumber: UInt64 = 1 << 3
    static let sentAt: UInt64 = 2 << 3
    static let events: UInt64 = 3 << 3 | 2
}

enum WorkerEventTag {
    static let held: UInt64 = 1 << 3 | 2
    static let started: UInt64 = 2 << 3
    static let finished: UInt64 = 3 << 3 | 2
    static let returned: UInt64 = 4 << 3 | 2
    static let added: UInt64 = 5 << 3 | 2
    static let yielded: UInt64 = 6 << 3 | 2
    static let read: UInt64 = 7 << 3 | 2
}

enum AttemptResultTag {
    static let succeeded: UInt64 = 1 << 3 | 2
    static let failed: UInt64 = 2 << 3 | 2
    static let cancelled: UInt64 = 3 << 3 | 2
    static let startedAt: UInt64 = 4 << 3
    static let endedAt: UInt64 = 5 << 3
    static let output: UInt64 = 6 << 3 | 2
    static let logTail: UInt64 = 7 << 3 | 2
    static let logBytesDropped: UInt64 = 8 << 3
    static let crashed: UInt64 = 11 << 3 | 2
    static let notYet: UInt64 = 12 << 3
    static let upToDate: UInt64 = 13 << 3
    static let logHead: UInt64 = 14 << 3 | 2
}
