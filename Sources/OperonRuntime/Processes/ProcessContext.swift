package import OperonModel

/// What an attempt adds to its command: its identity, its inputs, and its limits.
package struct ProcessContext: Hashable, Sendable {
    /// `OPERON_GRAPH`.
    package var graph: String
    /// `OPERON_OPERATION`: the name of the operation in the graph.
    package var operation: String
    /// The queue of the operation, which may decide about the user of its process.
    package var queue = QueueSettings.defaultName
    /// `OPERON_ATTEMPT`: the number of this attempt among those of its operation, from 1.
    package var ordinal: UInt32
    /// Written to the file that `OPERON_INPUTS` names, as one JSON object.
    package var inputs: [NamedInput]
    /// Further variables; they take precedence over those of the command.
    package var environmentAdditions: [String: String]
    /// An earlier attempt may have started, and may have left files that it had not finished.
    package var isRepeat = false
    /// The processors that it may use; empty: those of the worker.
    package var processors: [Int] = []
    /// The amounts to which a control group must hold its processes; `nil`: none.
    package var enforced: ResourceAmounts?
    /// Added to the worker's niceness.
    package var niceness: Int32
    /// `TRACEPARENT`: the trace that the attempt belongs to; empty: none.
    package var traceParent = ""
    /// The time from the start of the process to SIGTERM; `nil`: no limit.
    package var timeout: Duration?
    /// `logBytes`, `payloadBytes` and `inputsBytes` are used.
    package var limits: Limits

    package init(
        graph: String,
        operation: String,
        ordinal: UInt32,
        inputs: [NamedInput] = [],
        environmentAdditions: [String: String] = [:],
        niceness: Int32 = 0,
        timeout: Duration? = nil,
        limits: Limits = Limits()
    ) {
        self.graph = graph
        self.operation = operation
        self.ordinal = ordinal
        self.inputs = inputs
        self.environmentAdditions = environmentAdditions
        self.niceness = niceness
        self.timeout = timeout
        self.limits = limits
    }

    /// Takes the values of the attempt from its dispatch.
    package init(_ operation: DispatchedOperation, limits: Limits = Limits()) {
        self.init(
            graph: operation.graphName,
            operation: operation.name,
            ordinal: operation.ordinal,
            inputs: operation.inputs,
            niceness: operation.qualityOfService.niceness,
            timeout: operation.timeout,
            limits: limits
        )
        queue = operation.queue
        traceParent = operation.traceParent
        isRepeat = operation.isRepeat
        environmentAdditions = operation.allocation.variables
        processors = operation.allocation.processors
        if operation.isEnforced { enforced = operation.resources }
    }
}

/// How a process that started has ended.
package enum ProcessStatus: Hashable, Sendable {
    case exited(code: Int32)
    /// Ended by the signal with this number.
    case signaled(Int32)
    /// Other code in this process collected its end, which must not happen.
    case unknown
}

/// The end of one run.
package struct ProcessResult: Hashable, Sendable {
    /// The result that the attempt reports.
    package var attempt: AttemptResult
    /// `nil`: it never started.
    package var status: ProcessStatus?

    package init(attempt: AttemptResult, status: ProcessStatus?) {
        self.attempt = attempt
        self.status = status
    }
}
