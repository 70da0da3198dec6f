import ArgumentParser
import OperonGraphFile
import OperonModel
import OperonRuntime

/// A duration on the command line, in the format of graph files: `30s`, `1h30m`, or seconds.
struct DurationArgument: ExpressibleByArgument {
    let duration: Duration

    init?(argument: String) {
        guard let duration = Duration(graphFileText: argument), duration > .zero else { return nil }
        self.duration = duration
    }

    static let example = "for example 30s, 5m or 1h30m"
}

/// A date that has passed: a date with a time and a zone, or how long ago it was.
struct PastMomentArgument: ExpressibleByArgument {
    let time: WallTime

    init?(argument: String) {
        if let time = DateText.moment(argument) {
            self.time = time
        } else if let duration = DurationArgument(argument: argument)?.duration {
            time = SystemClock.wall() + (.zero - duration)
        } else {
            return nil
        }
    }
}

/// A date on the command line: a date with a time and a zone, or a duration from now.
struct MomentArgument: ExpressibleByArgument {
    let time: WallTime

    init?(argument: String) {
        if let time = DateText.moment(argument) {
            self.time = time
        } else if let duration = DurationArgument(argument: argument)?.duration {
            time = SystemClock.wall() + duration
        } else {
            return nil
        }
    }
}
