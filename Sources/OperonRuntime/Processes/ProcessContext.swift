package import OperonModel

/// What an attempt adds to its command: who it is, what it is given, how long and how much it may.
package struct ProcessContext: Hashable, Sendable {
    /// `OPERON_GRAPH`.
    package var graph: String
    /// `OPERON_OPERATION`: its name in the graph.
    package var operation: String
    /// `OPERON_ATTEMPT`: counts the attempts of this operation, from 1.
    package var ordinal: UInt32
    /// Written to the file that `OPERON_INPUTS` names, as one JSON object.
    package var inputs: [NamedInput]
    /// Further variables; they win over those of the command.
    package var environmentAdditions: [String: String]
    /// Added to the niceness of the worker.
    package var niceness: Int32
    /// `TRACEPARENT`: the trace that it belongs to; empty: none.
    package var traceParent = ""
    /// From the start of the process to SIGTERM; `nil`: no bound.
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

    /// What a dispatch says of its attempt.
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
        traceParent = operation.traceParent
    }
}

/// How a process that started has ended.
package enum ProcessStatus: Hashable, Sendable {
    case exited(code: Int32)
    /// By the signal of this number.
    case signaled(Int32)
    /// Its end was collected by somebody else in this process, which must not happen.
    case unknown
}

/// The end of one run.
package struct ProcessResult: Hashable, Sendable {
    /// What the attempt reports.
    package var attempt: AttemptResult
    /// `nil`: it never started.
    package var status: ProcessStatus?

    package init(attempt: AttemptResult, status: ProcessStatus?) {
        self.attempt = attempt
        self.status = status
    }
}
