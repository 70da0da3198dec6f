package import OperonModel
import OperonSystem

/// Who a worker is, and whom it trusts.
package struct WorkerTrust: Sendable {
    @Secret private(set) var privateKey: [UInt8]
    package let publicKey: [UInt8]
    /// Random for each life.
    let nonce: [UInt8]
    /// That of the life before, on the same state directory.
    private let predecessorNonce: [UInt8]?
    /// The coordinator's key.
    let pin: [UInt8]
    private let proof: Credentials.Proof

    /// Of this life. It follows from the key, so that other workers do not have it.
    package let incarnation: Incarnation

    /// A worker that keeps nothing: with a new key.
    package init(_ token: JoinToken) {
        self.init(
            privateKey: RandomBytes.draw(Ed25519.keyBytes),
            nonce: RandomBytes.draw(Credentials.nonceBytes),
            predecessorNonce: nil,
            pin: token.issuer,
            proof: .token(token)
        )
    }

    init(
        privateKey: [UInt8],
        nonce: [UInt8],
        predecessorNonce: [UInt8]?,
        pin: [UInt8],
        proof: Credentials.Proof
    ) {
        self.privateKey = privateKey
        publicKey = Ed25519.publicKey(of: privateKey)
        self.nonce = nonce
        self.predecessorNonce = predecessorNonce
        self.pin = pin
        self.proof = proof
        incarnation = Credentials.incarnation(of: publicKey, nonce: nonce)
    }

    /// The same worker, which joins with a certificate.
    func certified(by certificate: WorkerCertificate) -> WorkerTrust {
        WorkerTrust(
            privateKey: privateKey,
            nonce: nonce,
            predecessorNonce: predecessorNonce,
            pin: pin,
            proof: .certificate(certificate)
        )
    }

    func credentials(for transcript: [UInt8]) -> Credentials {
        Credentials(
            workerKey: publicKey,
            nonce: nonce,
            predecessorNonce: predecessorNonce,
            proof: proof,
            signature: Ed25519.signature(
                of: Credentials.signed(transcript),
                by: privateKey
            )
        )
    }
}

/// What a worker keeps once it is accepted.
package struct WorkerMembership: Hashable, Sendable {
    /// The coordinator's key by now.
    let pin: [UInt8]
    let certificate: WorkerCertificate
}
