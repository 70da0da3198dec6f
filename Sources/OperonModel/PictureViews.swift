/// A picture of a graph with the places of its boxes and arrows, for a browser to draw.
package struct GraphPictureView: Hashable, Sendable, Codable {
    package struct Box: Hashable, Sendable, Codable {
        package var title: String
        /// How many operations it stands for.
        package var count: Int
        /// The number of its operation, if it stands for one.
        package var index: Int?
        /// The lowest number of an operation that it stands for.
        package var first: Int
        /// Its upper left corner.
        package var x: Double
        package var y: Double
        package var width: Double
        package var height: Double
        /// From 0, left to right.
        package var layer: Int
        package var isCritical: Bool
        /// The operations by state, those states that any of them has.
        package var states: [String: Int]

        package init(
            title: String,
            count: Int,
            index: Int?,
            first: Int,
            x: Double,
            y: Double,
            width: Double,
            height: Double,
            layer: Int,
            isCritical: Bool,
            states: [String: Int]
        ) {
            self.title = title
            self.count = count
            self.index = index
            self.first = first
            self.x = x
            self.y = y
            self.width = width
            self.height = height
            self.layer = layer
            self.isCritical = isCritical
            self.states = states
        }
    }

    package struct Arrow: Hashable, Sendable, Codable {
        /// Indices of boxes.
        package var from: Int
        package var to: Int
        package var isCritical: Bool
        /// x and y in turn: the start, where it enters and leaves each layer that it passes, the
        /// end. It is straight within a layer, and curved between layers.
        package var points: [Double]

        package init(from: Int, to: Int, isCritical: Bool, points: [Double]) {
            self.from = from
            self.to = to
            self.isCritical = isCritical
            self.points = points
        }
    }

    /// The number of operations of the graph.
    package var operations: Int
    package var width: Double
    package var height: Double
    /// How many arrows are left out.
    package var left: Int
    package var boxes: [Box]
    package var arrows: [Arrow]

    package init(
        operations: Int,
        width: Double,
        height: Double,
        left: Int,
        boxes: [Box],
        arrows: [Arrow]
    ) {
        self.operations = operations
        self.width = width
        self.height = height
        self.left = left
        self.boxes = boxes
        self.arrows = arrows
    }
}

/// The states of the boxes of a picture, in their order.
package struct PictureStatesView: Hashable, Sendable, Codable {
    /// The number of operations of the graph. If it has changed, the picture has, too.
    package var operations: Int
    package var states: [[String: Int]]

    package init(operations: Int, states: [[String: Int]]) {
        self.operations = operations
        self.states = states
    }
}

/// A part of the timeline of a graph. Times are seconds since its submission.
package struct TimelineView: Hashable, Sendable, Codable {
    package struct Bar: Hashable, Sendable, Codable {
        /// The operation with its number and that of the attempt; missing if the bar stands for
        /// several attempts.
        package var name: String?
        package var index: UInt32?
        package var attempt: UInt32?
        /// From this time until `from`, the attempt was waiting, and no other attempt of the graph
        /// is in the row: what the operation depends on in its graph had ended. Omitted if there
        /// is no such time, or if it is too short to be drawn.
        package var waitedFrom: Double?
        package var from: Double
        package var to: Double
        /// `executing` or how the attempt ended; of several attempts, what needs attention most.
        package var state: String
        package var isCritical: Bool
        /// How many attempts it stands for.
        package var count: Int

        package init(
            name: String?,
            index: UInt32?,
            attempt: UInt32?,
            waitedFrom: Double?,
            from: Double,
            to: Double,
            state: String,
            isCritical: Bool,
            count: Int
        ) {
            self.name = name
            self.index = index
            self.attempt = attempt
            self.waitedFrom = waitedFrom
            self.from = from
            self.to = to
            self.state = state
            self.isCritical = isCritical
            self.count = count
        }
    }

    package struct Row: Hashable, Sendable, Codable {
        /// The name of the worker; empty for what external parties complete.
        package var worker: String
        /// From 1.
        package var slot: Int
        package var bars: [Bar]

        package init(worker: String, slot: Int, bars: [Bar]) {
            self.worker = worker
            self.slot = slot
            self.bars = bars
        }
    }

    /// When the graph was submitted.
    package var startedAt: TimeText
    /// Until the end of the last attempt, or until now.
    package var length: Double
    /// Whether an operation has no outcome.
    package var isLive: Bool
    package var from: Double
    package var to: Double
    /// How many rows are left out.
    package var left: Int
    package var rows: [Row]

    package init(
        startedAt: TimeText,
        length: Double,
        isLive: Bool,
        from: Double,
        to: Double,
        left: Int,
        rows: [Row]
    ) {
        self.startedAt = startedAt
        self.length = length
        self.isLive = isLive
        self.from = from
        self.to = to
        self.left = left
        self.rows = rows
    }
}
