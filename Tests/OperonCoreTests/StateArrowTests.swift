import Foundation
import OperonCore
import OperonModel
import Testing

/// The arrows between the states of an operation, in the code and in `docs/STATES.md`.
@Suite struct StateArrowTests {
    struct Arrow: Hashable {
        let from: OperationState
        let to: OperationState
    }

    /// Arrows that the picture has and that are two moves within one event: by `ready`.
    private static let byReady: Set<Arrow> = [
        Arrow(from: .dispatched, to: .pending), Arrow(from: .executing, to: .pending),
    ]

    @Test func `the code has the arrows of the picture`() throws {
        var drawn: Set<Arrow> = []
        for match in try Self.picture().matches(of: #/(\w+) --> (\w+):/#) {
            let from = try #require(Self.state(match.1), "\(match.0)")
            drawn.insert(Arrow(from: from, to: try #require(Self.state(match.2), "\(match.0)")))
        }
        #expect(drawn.isSuperset(of: Self.byReady))
        var coded: Set<Arrow> = []
        for from in OperationState.allCases {
            for to in OperationState.allCases where from.mayBecome(to) {
                coded.insert(Arrow(from: from, to: to))
            }
        }
        #expect(coded == drawn.subtracting(Self.byReady))
    }

    /// The first diagram of the document.
    private static func picture() throws -> String {
        let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: "docs/STATES.md"), encoding: .utf8)
        return try #require(text.firstMatch(of: #/```mermaid(?<body>[^`]*)```/#)).body.description
    }

    private static func state(_ name: Substring) -> OperationState? {
        OperationState.allCases.first { "\($0)" == name }
    }
}
