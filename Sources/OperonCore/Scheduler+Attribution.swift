import OperonModel

// By whom changes were asked for.
extension Scheduler {
    /// Successive records that one client asked for.
    ///
    /// The name is beside the records and not in them, because only the events that clients
    /// receive have it: the shell puts it into these events, which are stored with the records. So
    /// no record changes its form, and a retry of a million operations adds one attribution. Its
    /// million events were stored before as well; each is longer by the name, which has at most 64
    /// bytes if it is that of a token. A cancel has one event with the name.
    package struct Attribution: Hashable, Sendable {
        /// The places of the records in `Effects.records`.
        package var records: Range<Int>
        package let client: String
    }

    /// Attributes those records of a command that say what was asked for, and not what followed.
    mutating func attribute(
        recordsFrom first: Int,
        of command: Event,
        to client: String,
        in effects: inout Effects
    ) {
        guard !client.isEmpty, configuration.violation != .forgetsClients else { return }
        for place in first..<effects.records.count
        where Self.isAsked(effects.records[place], by: command) {
            effects.attribute(recordAt: place, to: client)
        }
    }

    /// The records of cancels and suspensions have the name themselves, because a store keeps it as
    /// long as the cancel or the suspension lasts.
    private static func isAsked(_ record: Record, by command: Event) -> Bool {
        switch (command, record) {
        case (.graphSubmitted, .graphAdded), (.operationsAdded, .operationsAdded),
            (.graphClosed, .graphClosed), (.queueLimitSet, .queueLimit),
            (.queuePrioritySet, .queuePriority), (.queueRateSet, .rateSet),
            (.queueReset, .queueReset), (.keyLimitSet, .keyLimit), (.keyReset, .keyReset),
            (.suspensionRequested, .suspended(_, nil)), (.priorityRequested, .priority),
            (.dependencyAdded, .dependencyAdded), (.dependencyRemoved, .dependencyRemoved),
            (.retryRequested, .reopened):
            true
        case (.cancelRequested(.graph(let cancelled), _, _), .graphClosed(let closed)):
            cancelled == closed
        case (.completionRequested(let completed, _, _), .finished(let ended, _)),
            (.completionRequested(let completed, _, _), .attemptEnded(_, let ended, _)):
            completed == ended
        default: false
        }
    }
}

extension Scheduler.Effects {
    /// Calls the function with each record, and the name of the client that asked for it; empty:
    /// nobody did, or the client has no name.
    package func forEachRecord(_ body: (Scheduler.Record, _ client: String) -> Void) {
        var rest = attributions[...]
        for (place, record) in records.enumerated() {
            while let next = rest.first, next.records.upperBound <= place { rest.removeFirst() }
            let isAsked = rest.first?.records.contains(place) ?? false
            body(record, isAsked ? rest[rest.startIndex].client : "")
        }
    }

    mutating func attribute(recordAt place: Int, to client: String) {
        if let last = attributions.indices.last, attributions[last].client == client,
            attributions[last].records.upperBound == place
        {
            attributions[last].records = attributions[last].records.lowerBound..<place + 1
        } else {
            attributions.append(
                Scheduler.Attribution(records: place..<place + 1, client: client)
            )
        }
    }
}
