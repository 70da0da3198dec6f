public import OperonModel
internal import OperonRuntime

extension WallTime {
    /// The current time of this machine: `options.deadline = .now + .seconds(3600)`.
    ///
    /// A cluster with its own clock, such as the manual clock of OperonTesting, has another time.
    public static var now: WallTime { SystemClock.wall() }
}
