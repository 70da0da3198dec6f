// What clients see of resources and demands: see Views.swift.

/// An amount that a worker offers, in whole processors, bytes or units.
package struct ResourceView: Hashable, Sendable, Codable {
    package var name: String
    package var offered: Double
    package var free: Double

    package init(_ offered: ResourceAmount, left: Int) {
        self.init(name: offered.name, offered: Double(offered.amount), left: Double(left))
    }

    /// - Parameters:
    ///   - offered: In the base unit of the resource.
    ///   - left: The same.
    package init(name: String, offered: Double, left: Double) {
        self.name = name
        self.offered = ResourceText.wholeUnits(offered, of: name)
        free = ResourceText.wholeUnits(left, of: name)
    }
}
