import HTTPTypes
import NIOHTTP1
package import OperonModel
package import OperonPorts

/// An error over HTTP: `application/problem+json` of RFC 9457 with the error's code and refusal,
/// from which a client restores the same error.
package struct Problem: Hashable, Sendable, Codable {
    /// `urn:operon:problem:` followed by the code.
    package var type: String
    /// The status in words, as in the first line of the answer.
    package var title: String
    package var status: Int
    /// A sentence for a person; it says what to do.
    package var detail: String
    package var code: ClientError.Code
    package var refusal: RefusalBody?

    package static let contentType = "application/problem+json"

    package init(_ error: ClientError, status: Int? = nil) {
        let status = status ?? Self.status(of: error.code)
        type = "urn:operon:problem:\(error.code.rawValue)"
        title = HTTPResponseStatus(statusCode: status).reasonPhrase
        self.status = status
        detail = error.message
        code = error.code
        refusal = error.refusal.map(RefusalBody.init)
    }

    package var error: ClientError { ClientError(code, detail, refusal: refusal?.refusal) }

    package static func status(of code: ClientError.Code) -> Int {
        switch code {
        case .invalid: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .conflict: 409
        case .tooLarge: 413
        case .internal: 500
        case .unreachable: 502
        case .unavailable: 503
        case .timedOut: 504
        }
    }

    /// The code for an answer that is not one of our problems, for example from a proxy.
    package static func code(of status: Int) -> ClientError.Code {
        switch status {
        case 401: .unauthorized
        case 403: .forbidden
        case 404, 410: .notFound
        case 409: .conflict
        case 413: .tooLarge
        case 408, 504: .timedOut
        case 429, 503: .unavailable
        case 502: .unreachable
        case 500...: .internal
        default: .invalid
        }
    }
}

/// A refusal in JSON: its kind and the values of that kind as fields.
package struct RefusalBody: Hashable, Sendable, Codable {
    package enum Kind: String, Hashable, Sendable, Codable, CaseIterable {
        case dependencyCycle
        case unknownOperation
        case duplicateOperation
        case alreadySubmitted
        case alreadyStarted
        case alreadyFinished
        case graphClosed
        case invalid
        case limitExceeded
        case unreachable
    }

    package var kind: Kind
    package var path: [String]?
    package var name: String?
    package var namedBy: String?
    package var field: String?
    package var why: String?
    package var limit: LimitName?
    package var value: Int?
    package var maximum: Int?

    package init(_ refusal: Refusal) {
        switch refusal {
        case .dependencyCycle(let path):
            kind = .dependencyCycle
            self.path = path
        case .unknownOperation(let name, let namedBy):
            kind = .unknownOperation
            self.name = name
            self.namedBy = namedBy
        case .duplicateOperation(let name):
            kind = .duplicateOperation
            self.name = name
        case .alreadySubmitted(let name):
            kind = .alreadySubmitted
            self.name = name
        case .alreadyStarted(let name):
            kind = .alreadyStarted
            self.name = name
        case .alreadyFinished(let name):
            kind = .alreadyFinished
            self.name = name
        case .graphClosed(let name):
            kind = .graphClosed
            self.name = name
        case .invalid(let field, let why):
            kind = .invalid
            self.field = field
            self.why = why
        case .limitExceeded(let limit, let value, let maximum):
            kind = .limitExceeded
            self.limit = limit
            self.value = value
            self.maximum = maximum
        case .unreachable(let why):
            kind = .unreachable
            self.why = why
        }
    }

    /// `nil` if a value of this kind is missing.
    package var refusal: Refusal? {
        switch kind {
        case .dependencyCycle: path.map { .dependencyCycle(path: $0) }
        case .unknownOperation:
            if let name, let namedBy {
                .unknownOperation(name: name, namedBy: namedBy)
            } else {
                nil
            }
        case .duplicateOperation: name.map { .duplicateOperation(name: $0) }
        case .alreadySubmitted: name.map { .alreadySubmitted(name: $0) }
        case .alreadyStarted: name.map { .alreadyStarted(name: $0) }
        case .alreadyFinished: name.map { .alreadyFinished(name: $0) }
        case .graphClosed: name.map { .graphClosed(name: $0) }
        case .invalid: if let field, let why { .invalid(field: field, why: why) } else { nil }
        case .limitExceeded:
            if let limit, let value, let maximum {
                .limitExceeded(limit: limit, value: value, maximum: maximum)
            } else {
                nil
            }
        case .unreachable: why.map { .unreachable($0) }
        }
    }
}

/// An error to be sent, whose status may differ from the default of its code.
struct Failure: Error {
    var error: ClientError
    var status: Int?
    var headers = HTTPFields()
    /// Whether to close the connection without reading the rest of the body.
    var closes = false
    /// Who has no right to what was asked, as far as that is known.
    var caller: Caller?

    init(
        _ error: ClientError,
        status: Int? = nil,
        headers: HTTPFields = HTTPFields(),
        closes: Bool = false
    ) {
        self.error = error
        self.status = status
        self.headers = headers
        self.closes = closes
    }

    /// The error for a field, parameter or header that is not valid.
    static func invalid(_ field: String, _ why: String) -> Failure {
        let refusal = Refusal.invalid(field: field, why: why)
        return Failure(ClientError(.invalid, refusal.description, refusal: refusal))
    }
}
