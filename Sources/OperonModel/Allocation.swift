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
            variables["CUDA_VISIBLE_DEVICES"] = list
            variables["ROCR_VISIBLE_DEVICES"] = list
        }
        return variables
    }
}
