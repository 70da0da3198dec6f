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
    static let priority: UInt64 = 5
    static let qualityOfService: UInt64 = 6
    static let timeout: UInt64 = 7
    static let retry: UInt64 = 8
    static let expectedDuration: UInt64 = 9
    static let exclusive: UInt64 = 10
    static let nothing: UInt64 = 11
    static let wait: UInt64 = 12
    static let command: UInt64 = 13
    static let registered: UInt64 = 14
    static let delay: UInt64 = 16
    static let notBefore: UInt64 = 17
    static let deadline: UInt64 = 18
    static let external: UInt64 = 19
    static let cancelSiblings: UInt64 = 20
    static let inFlight: UInt64 = 21
    static let workers: UInt64 = 27
    static let commandWithSecrets: UInt64 = 29
}

enum DependencyField {
    static let name: UInt64 = 1
    static let condition: UInt64 = 2
    static let elsewhere: UInt64 = 3
    static let takesElements: UInt64 = 4
}

enum PlaceField {
    static let graph: UInt64 = 1
    static let index: UInt64 = 2
}

enum RegisteredField {
    static let kind: UInt64 = 1
    static let input: UInt64 = 2
}

enum PayloadField {
    static let contentType: UInt64 = 1
    static let value: UInt64 = 2
}
