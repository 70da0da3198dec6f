package import OperonModel

extension RandomID {
    /// A random id. It is never 0, which means “not known yet”.
    package static func drawn() -> Self {
        var generator = SystemRandomNumberGenerator()
        return Self(rawValue: UInt64.random(in: 1...UInt64.max, using: &generator))
    }
}
