package import OperonModel

extension StartRate {
    /// Reads a rate that a client gives.
    package static func read(_ text: String, burst: Int?) throws(ClientError) -> StartRate {
        guard let rate = StartRate(text, burst: burst) else {
            throw ClientError(.invalid, "“\(text)” is not \(hint).")
        }
        do throws(Refusal) {
            try rate.check("rate")
        } catch {
            throw ClientError(error)
        }
        return rate
    }
}
