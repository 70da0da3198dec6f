import FoundationEssentials
import OperonModel

/// How the output of a command gets to `operon map`.
enum MapDelivery: Sendable {
    /// Through files, for commands on this machine.
    case files(MapFiles)
    /// Through the log, for commands on workers: first the standard output, then standard error,
    /// then a line with the size of both. `marker` begins that line.
    case log(marker: String)

    /// A delivery through logs with a marker that no command prints by chance.
    static func throughLog() -> MapDelivery {
        .log(marker: "operon map \(UUID().uuidString.prefix(8).lowercased()):")
    }

    /// A script that runs its first argument as a command. Its second argument is `argument`.
    var script: String {
        switch self {
        case .files:
            // An attempt begins the files anew.
            #"exec /bin/sh -c -- "$1" >"$2/$OPERON_OPERATION.out" 2>"$2/$OPERON_OPERATION.err""#
        case .log:
            // A command that is stopped still delivers its output: the signal goes to its process,
            // too. The two streams of a log have no order, so only one is used.
            #"""
            d=$(mktemp -d "${TMPDIR:-/tmp}/operon-map.XXXXXXXX") || exit 127
            trap : TERM
            /bin/sh -c -- "$1" >"$d/out" 2>"$d/err"
            s=$?
            cat "$d/out"
            [ ! -s "$d/err" ] || { printf '\n%s errors\n' "$2"; cat "$d/err"; }
            printf '\n%s %d %d\n' "$2" "$(wc -c <"$d/out")" "$(wc -c <"$d/err")"
            rm -rf "$d"
            exit $s
            """#
        }
    }

    var argument: String {
        switch self {
        case .files(let files): files.directory
        case .log(let marker): marker
        }
    }
}

/// The two streams of a command, as its log delivers them.
struct MapLog {
    private(set) var output: ArraySlice<UInt8>
    private(set) var errors: ArraySlice<UInt8> = []
    /// Whether the beginning of the log was not kept.
    private(set) var isCut = false

    /// - Parameters:
    ///   - log: the last bytes of the log.
    ///   - marker: that of the delivery.
    ///   - bytesMax: how many bytes of a log are kept.
    init(_ log: [UInt8], marker: String, bytesMax: Int = Limits().logBytes) {
        output = log[...]
        let begin = Array("\n\(marker) ".utf8)
        // Without the last line, the command was killed; what there is belongs to its output.
        guard let last = log.lastRange(of: begin) else { return }
        let sizes = String(decoding: log[last.upperBound...], as: UTF8.self)
            .split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        guard sizes.count == 2 else { return }
        output = log[..<last.lowerBound]
        let middle = Array("\n\(marker) errors\n".utf8)
        if sizes[1] > 0, let place = output.lastRange(of: middle) {
            errors = output[place.upperBound...]
            output = output[..<place.lowerBound]
        } else if sizes[1] > 0 {
            errors = output
            output = []
        }
        let (sum, overflow) = sizes[0].addingReportingOverflow(sizes[1])
        isCut = overflow || sum > bytesMax - log[last.lowerBound...].count - middle.count
    }
}

extension Collection where Element == UInt8, Index == Int, SubSequence == ArraySlice<UInt8> {
    /// The last place of these bytes.
    fileprivate func lastRange(of bytes: [UInt8]) -> Range<Int>? {
        guard let first = bytes.first, count >= bytes.count else { return nil }
        var place = endIndex - bytes.count
        while place >= startIndex {
            if self[place] == first, self[place..<place + bytes.count].elementsEqual(bytes) {
                return place..<place + bytes.count
            }
            place -= 1
        }
        return nil
    }
}
