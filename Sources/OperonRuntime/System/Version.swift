/// The version that every program's `--version` prints and that coordinators in programs report:
/// the only place that states it.
package enum Version {
    package static let text = "0.1.0"
}
