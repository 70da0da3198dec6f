package import OperonModel

/// What everybody can see of a message that is sealed.
package enum SealedMessage {
    /// The worker that has sent a message to its coordinator, if what the message says of that is
    /// true; `nil` for a message in clear, or of a coordinator.
    package static func sender(of bytes: [UInt8]) -> WorkerAddress? {
        switch try? SealFrame.read(bytes) {
        case .knock(let knock): knock.address
        case .sealed(let header): header.address
        case .announcement, .offer, .own, nil: nil
        }
    }
}
