import COperonProcess

/// Memory that the allocator keeps for later.
enum HeapMemory {
    /// From so many operations on, what their descriptions took is worth giving back: some hundred
    /// bytes each, in pieces that the allocator would keep.
    static let largeGraph = 50_000

    /// Gives back to the system what is free. Soon, because whoever submits a graph has its
    /// description until it is answered.
    static func giveBackSoon() {
        Task.detached {
            // Too early is too little, and no harm.
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            operon_process_give_back_memory()
        }
    }
}
