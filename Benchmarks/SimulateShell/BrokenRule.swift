import ArgumentParser
import OperonCore
import OperonRuntime

/// A rule that is broken on purpose.
enum BrokenRule: Sendable, ExpressibleByArgument {
    case ofService(ShellViolation)
    /// Of the scheduler within it, for what only the bytes of a hostile worker break.
    case ofScheduler(PlantedViolation)

    static let all =
        ShellViolation.allCases.map { BrokenRule.ofService($0) }
        + [.believesStrangers, .addsForStrangers, .servesStrangers].map { .ofScheduler($0) }

    var name: String {
        switch self {
        case .ofService(let violation): violation.rawValue
        case .ofScheduler(let violation): violation.rawValue
        }
    }

    init?(argument: String) {
        guard let rule = Self.all.first(where: { $0.name == argument }) else { return nil }
        self = rule
    }

    static var allValueStrings: [String] { all.map(\.name) }

    var service: ShellViolation? {
        if case .ofService(let violation) = self { violation } else { nil }
    }

    var scheduler: PlantedViolation? {
        if case .ofScheduler(let violation) = self { violation } else { nil }
    }
}
