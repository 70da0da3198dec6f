/// What a running attempt was given of its worker's resources.
package struct Allocation: Hashable, Sendable {
    /// What it asked for.
    package var amounts: ResourceAmounts
    /// The processors on which it may run, by the kernel's numbers, ascending; empty: all.
    package var processors: [Int]
    /// Its graphics processors, as their driver names them.
    package var gpus: [String]

    package init(amounts: ResourceAmounts = [], processors: [Int] = [], gpus: [String] = []) {
        self.amounts = amounts
        self.processors = processors
        self.gpus = gpus
    }

    /// What a process finds in its environment.
    package init(_ amounts: ResourceAmounts, told variables: [String: String]) {
        self.init(amounts: amounts)
        guard amounts[ResourceAmount.gpusName] != nil else { return }
        let list = variables[Self.gpusVariables[0]] ?? ""
        gpus = list.split(separator: ",").map(String.init)
    }

    private static let gpusVariables = ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]

    /// What its process is told.
    package var variables: [String: String] {
        var variables: [String: String] = [:]
        if let cpus = amounts[ResourceAmount.cpusName] {
            variables["OPERON_CPUS"] = ResourceText.text(cpus, of: ResourceAmount.cpusName)
        }
        if let memory = amounts[ResourceAmount.memoryName] {
            variables["OPERON_MEMORY"] = String(memory)
        }
        if amounts[ResourceAmount.gpusName] != nil {
            let list = gpus.joined(separator: ",")
            for name in Self.gpusVariables { variables[name] = list }
        }
        return variables
    }
}
