import Glibc

/// Records which events a coordinator has in hand, in a small file beside its store. An event that
/// crashes the process each time it is handled is detected in this way, and set aside.
///
/// The file is mapped and never synced: the writes of a process survive its death, and no event is
/// to blame for the death of the machine. The `CoordinatorService` owns this object and is its only
/// user. `@unchecked Sendable`: that actor protects it. `@safe`: every index is within the file,
/// which gets its full length before it is mapped.
@safe package final class EventsInHand: @unchecked Sendable {
    /// After this many crashes in a row an event is not handled any more.
    package static let deathsMax: UInt64 = 3
    /// The most events that are remembered as in hand together. Beyond this number the earlier
    /// ones, which have been handled, are forgotten.
    static let inHandMax = 1_024
    /// The most events remembered that were in hand at a crash and have not been seen since.
    private static let suspectsMax = 1_024

    /// The layout of the file, in words of eight bytes.
    private enum Place {
        static let version = 0
        static let inHandCount = 1
        static let suspectCount = 2
        static let inHand = 3
        /// Each key is followed by the number of its crashes.
        static let suspects = inHand + inHandMax
        static let end = suspects + 2 * suspectsMax
    }

    /// The first word of the file. A file that begins differently has an unknown format and is
    /// ignored.
    private static let version: UInt64 = 0x4F_50_45_52_4F_4E_00_01

    private let words: UnsafeMutableBufferPointer<UInt64>
    private var inHandCount = 0
    /// The number of crashes by key. Only looked up, and written in the order of the keys.
    private var deaths: [UInt64: UInt64] = [:]

    /// Reads what the previous process had in hand and suspects each of these events of its crash.
    ///
    /// - Throws: `SystemError`. A coordinator can work without this file.
    init(besideStore path: String) throws(SystemError) {
        let file = path + "-inhand"
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe Glibc.open(file, flags, mode_t(0o600))
        guard number >= 0 else { throw .current("opening \(file)") }
        let descriptor = Descriptor(owning: number)
        let bytes = Place.end * MemoryLayout<UInt64>.size
        // Writing to a mapped page without a block on the disk would kill the process.
        let code = posix_fallocate(descriptor.number, 0, off_t(bytes))
        guard code == 0 else { throw SystemError(doing: "making \(file)", code: code) }
        let mapped = unsafe mmap(
            nil,
            bytes,
            PROT_READ | PROT_WRITE,
            MAP_SHARED,
            descriptor.number,
            0
        )
        guard let mapped = unsafe mapped, unsafe mapped != MAP_FAILED else {
            throw .current("mapping \(file)")
        }
        unsafe words = UnsafeMutableBufferPointer(
            start: mapped.bindMemory(to: UInt64.self, capacity: Place.end),
            count: Place.end
        )
        takeOver()
    }

    deinit {
        let bytes = Place.end * MemoryLayout<UInt64>.size
        _ = unsafe munmap(words.baseAddress, bytes)
    }

    /// Another program may have written the file, so counts are clamped to the space there is.
    private func takeOver() {
        if unsafe words[Place.version] == Self.version {
            let suspects = unsafe Int(clamping: words[Place.suspectCount])
            for place in 0..<min(suspects, Self.suspectsMax) {
                let key = unsafe words[Place.suspects + 2 * place]
                let count = unsafe words[Place.suspects + 2 * place + 1]
                deaths[key] = min(count, Self.deathsMax)
            }
            let inHand = unsafe Int(clamping: words[Place.inHandCount])
            var found: Set<UInt64> = []
            for place in 0..<min(inHand, Self.inHandMax) {
                let key = unsafe words[Place.inHand + place]
                guard found.insert(key).inserted else { continue }
                deaths[key, default: 0] += 1
            }
        }
        unsafe words[Place.version] = Self.version
        writeSuspects()
        unsafe words[Place.inHandCount] = 0
    }

    private func writeSuspects() {
        // There are more than fit: those with the most crashes are kept.
        if deaths.count > Self.suspectsMax {
            let kept = deaths.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            deaths = [:]
            for (key, count) in kept.prefix(Self.suspectsMax) { deaths[key] = count }
        }
        // An empty list is better than a torn one.
        unsafe words[Place.suspectCount] = 0
        for (place, (key, count)) in deaths.sorted(by: { $0.key < $1.key }).enumerated() {
            unsafe words[Place.suspects + 2 * place] = key
            unsafe words[Place.suspects + 2 * place + 1] = count
        }
        unsafe words[Place.suspectCount] = UInt64(deaths.count)
    }

    // MARK: - While events are handled

    /// Whether any event was in hand at a crash and has not been handled since.
    var hasSuspects: Bool { !deaths.isEmpty }

    func isSuspect(_ key: UInt64) -> Bool { deaths[key] != nil }

    /// Whether the event must not be handled any more.
    func isFatal(_ key: UInt64) -> Bool { deaths[key].map { $0 >= Self.deathsMax } ?? false }

    /// Makes room for this many events, at most `inHandMax`, so that none of them is forgotten. The
    /// events taken earlier have been handled.
    func makeRoom(for count: Int) {
        if inHandCount + count > Self.inHandMax { inHandCount = 0 }
    }

    /// Notes an event as in hand, before any part of it is read.
    func take(_ key: UInt64) {
        if inHandCount == Self.inHandMax { inHandCount = 0 }
        unsafe words[Place.inHand + inHandCount] = key
        inHandCount += 1
        unsafe words[Place.inHandCount] = UInt64(inHandCount)
    }

    /// Empties the list of events in hand.
    ///
    /// - Parameter isHandled: The events were handled and are not suspects any more.
    func clear(isHandled: Bool) {
        guard inHandCount > 0 else { return }
        if isHandled, hasSuspects {
            let before = deaths.count
            for place in 0..<inHandCount { deaths[unsafe words[Place.inHand + place]] = nil }
            if deaths.count < before { writeSuspects() }
        }
        inHandCount = 0
        unsafe words[Place.inHandCount] = 0
    }

    /// Forgets an event that was set aside. If it comes again, for example after a retry of the
    /// operation, it is handled again.
    func forget(_ key: UInt64) {
        guard deaths.removeValue(forKey: key) != nil else { return }
        writeSuspects()
    }
}
