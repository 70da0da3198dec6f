public import OperonModel
internal import OperonRuntime

extension WallTime {
    /// What this machine's calendar says: `options.deadline = .now + .seconds(3600)`.
    ///
    /// A cluster with a clock of its own, as the manual one of OperonTesting, has another now.
    public static var now: WallTime { SystemClock.wall() }
}
