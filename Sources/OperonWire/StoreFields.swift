// Numbers of the fields in store.proto that are read without decoding the rest.
enum GraphField {
    static let name: UInt64 = 1
    static let queues: UInt64 = 2
    static let operations: UInt64 = 3
    static let failFast: UInt64 = 4
    static let parent: UInt64 = 5
    static let keys: UInt64 = 6
    static let inOrderOfSubmission: UInt64 = 7
}

enum OperationField {
    static let name: UInt64 = 1
    static let summary: UInt64 = 2
    static let dependencies: UInt64 = 3
    static let queue: UInt64 = 4
    static let command: UInt64 = 13
    static let registered: UInt64 = 14
    static let external: UInt64 = 19
}

enum DependencyField {
    static let name: UInt64 = 1
    static let condition: UInt64 = 2
    static let elsewhere: UInt64 = 3
}

enum PlaceField {
    static let graph: UInt64 = 1
    static let index: UInt64 = 2
}

enum RegisteredField {
    static let kind: UInt64 = 1
}
