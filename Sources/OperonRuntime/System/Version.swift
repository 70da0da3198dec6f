/// What `--version` of every program says, and coordinators in programs: the one place that names
/// it.
package enum Version {
    package static let text = "0.1.0"
}
