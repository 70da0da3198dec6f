import COperonProcess

/// The version that every program's `--version` prints and that coordinators in programs report:
/// the only place that states it.
package enum Version {
    package static let text = "0.3.0"

    /// The version, and what it was built of: `0.3.0 (4f2a91c8d0b3, 2026-11-30)`. A build that is
    /// no release knows only the version.
    package static let full: String = {
        let build = unsafe String(cString: operon_build())
        return build.isEmpty ? text : "\(text) (\(build))"
    }()
}
