import OperonAMQP
import OperonArguments
import OperonModel
import OperonRuntime
import OperonTerminal

extension RunSession {
    struct Options {
        var slots: Int
        var brokerURL: String?
        var prefix: String
        /// By what the workers of the broker know this run.
        var trust = CoordinatorTrustArguments()
        /// How long the first connection may take before the broker counts as unreachable.
        var connectTimeout: Duration
        var operationsPerMessage: Int
        var output: OutputFormat
        var logDirectory: String?
        /// How the output of operations is shown; `nil`: that of failed ones at the end.
        var showsOutput: ShownOutput.Mode?
        var traceFile: String?
        /// Where the report is written as HTML; `nil`: nowhere.
        var reportFile: String?
        /// Where the run is stored, so that it can be resumed later; `nil`: it is not stored.
        var store: String?
        /// Whether to resume the run in the store.
        var resumes = false
        /// Operations that run even if they succeeded, and all that depends on them.
        var again: Set<String> = []
        /// Whether the elements of repeated operations are shown together.
        var folds = true
        /// What this process offers besides or instead of what its machine has.
        var resources: ResourceAmounts = []
        var labels: [WorkerLabel] = []
        /// Where it makes control groups; `nil`: nowhere.
        var controlGroups: ControlGroupPlace?
        var secrets = SecretPlaces()
    }
}
