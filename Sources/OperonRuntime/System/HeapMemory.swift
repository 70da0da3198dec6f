import COperonProcess

/// Freed memory that the allocator keeps for later use.
enum HeapMemory {
    /// From this many operations on, the memory of their descriptions is worth returning: some
    /// hundred bytes each, in pieces that the allocator would keep.
    static let largeGraph = 50_000

    /// Returns free memory to the system after a delay, because a client that submits a graph holds
    /// its description until it is answered.
    static func giveBackSoon() {
        Task.detached {
            // If it runs too early it returns less, which does no harm.
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
            operon_process_give_back_memory()
        }
    }
}
