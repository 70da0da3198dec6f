import Glibc

/// Which events a coordinator has in hand, in a small file beside its store: so that one that ends
/// the process each time it is handled is found out, and set aside.
///
/// The file is mapped and never synced: what a process wrote there survives its death, and the
/// death of the machine is nobody's fault. Owned by the `CoordinatorService`, and touched by it
/// alone. `@unchecked Sendable`: that actor protects it. `@safe`: every place is within the file,
/// which has its length before it is mapped.
@safe package final class EventsInHand: @unchecked Sendable {
    /// With so many deaths in a row an event is handled no more.
    package static let deathsMax: UInt64 = 3
    /// Events that are remembered as being in hand together: beyond, the first are forgotten, which
    /// were handled.
    static let inHandMax = 1_024
    /// Events that were in hand at a death and have not been seen since.
    private static let suspectsMax = 1_024

    /// Where in the file what is, in words of eight bytes.
    private enum Place {
        static let version = 0
        static let inHandCount = 1
        static let suspectCount = 2
        static let inHand = 3
        /// Each with the number of its deaths behind it.
        static let suspects = inHand + inHandMax
        static let end = suspects + 2 * suspectsMax
    }

    /// What the file begins with: other bytes are of nobody who is known here.
    private static let version: UInt64 = 0x4F_50_45_52_4F_4E_00_01

    private let words: UnsafeMutableBufferPointer<UInt64>
    private var inHandCount = 0
    /// Deaths of each. Only looked up, and written in the order of the keys.
    private var deaths: [UInt64: UInt64] = [:]

    /// Reads what the process before had in hand: each of it is suspected of its death.
    ///
    /// - Throws: `SystemError`: a coordinator can do without.
    init(besideStore path: String) throws(SystemError) {
        let file = path + "-inhand"
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let number = unsafe Glibc.open(file, flags, mode_t(0o600))
        guard number >= 0 else { throw .current("opening \(file)") }
        let descriptor = Descriptor(owning: number)
        let bytes = Place.end * MemoryLayout<UInt64>.size
        // A page without a block on the disk would end the process when it is written to.
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

    /// The file is a stranger's, too: counts are held to what there is room for.
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
        // Too many to be kept: those that were there at most deaths are.
        if deaths.count > Self.suspectsMax {
            let kept = deaths.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            deaths = [:]
            for (key, count) in kept.prefix(Self.suspectsMax) { deaths[key] = count }
        }
        // None is better than a torn list.
        unsafe words[Place.suspectCount] = 0
        for (place, (key, count)) in deaths.sorted(by: { $0.key < $1.key }).enumerated() {
            unsafe words[Place.suspects + 2 * place] = key
            unsafe words[Place.suspects + 2 * place + 1] = count
        }
        unsafe words[Place.suspectCount] = UInt64(deaths.count)
    }

    // MARK: - While events are handled

    /// Whether some event was in hand at a death and has not been handled since.
    var hasSuspects: Bool { !deaths.isEmpty }

    func isSuspect(_ key: UInt64) -> Bool { deaths[key] != nil }

    /// Whether it is to be handled no more.
    func isFatal(_ key: UInt64) -> Bool { deaths[key].map { $0 >= Self.deathsMax } ?? false }

    /// Sees to it that so many can be taken without one of them being forgotten; at most
    /// `inHandMax`. Those that were taken before are handled.
    func makeRoom(for count: Int) {
        if inHandCount + count > Self.inHandMax { inHandCount = 0 }
    }

    /// Before anything of it is looked at.
    func take(_ key: UInt64) {
        if inHandCount == Self.inHandMax { inHandCount = 0 }
        unsafe words[Place.inHand + inHandCount] = key
        inHandCount += 1
        unsafe words[Place.inHandCount] = UInt64(inHandCount)
    }

    /// Nothing is in hand any more.
    ///
    /// - Parameter isHandled: what was is beyond suspicion.
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

    /// It was set aside for good: should it come again, by a further round for example, it is
    /// tried again.
    func forget(_ key: UInt64) {
        guard deaths.removeValue(forKey: key) != nil else { return }
        writeSuspects()
    }
}
