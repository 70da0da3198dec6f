import Foundation
import OperonModel
import Testing

struct ErrorViewTests {
    static let errors: [OperationError] = [
        .kindUnknown("Blur"), .thrown(type: "E", message: "no disk", payload: []),
        .thrown(type: "E", message: "", payload: Array("{\"code\":28}".utf8)),
        .thrown(type: "", message: "", payload: []),
        .thrown(type: "E", message: "E", payload: [0, 255, 128, 10]),
        .thrown(type: "E", message: "m", payload: Array("\u{FEFF}\u{0}\u{2028}é".utf8)),
        .exit(code: 0), .exit(code: -1), .exit(code: 255), .signal(name: "SIGXCPU"),
        .signal(name: "SIGKILL"), .timeout, .deadline, .workerLost,
        .inputTooLarge(bytes: 2, limit: 1), .outputTooLarge(bytes: .max, limit: 0),
        .undecodable("it is “torn”"), .undecodable(""), .versionUnsupported("2"),
        .conditionFailed(name: "ready"),
    ]

    @Test(arguments: errors)
    func `an error is read back from what clients are shown`(_ error: OperationError) throws {
        let view = ErrorView(error)
        let json = try JSONEncoder().encode(view)
        let read = try JSONDecoder().decode(ErrorView.self, from: json)

        #expect(read == view)
        #expect(OperationError(read) == error)
        #expect(read.message == error.description)
    }

    @Test func `every error is tried`() {
        #expect(Set(Self.errors.map(\.code)).count == 12)
    }

    @Test func `what was thrown is text where it is text`() {
        let json = ErrorView(.thrown(type: "E", message: "m", payload: Array("[1]".utf8)))
        #expect(json.payload == "[1]" && json.payloadBase64 == nil && json.type == "E")
        let bytes = ErrorView(.thrown(type: "E", message: "m", payload: [255, 0]))
        #expect(bytes.payload == nil && bytes.payloadBase64 == "/wA=")
    }

    @Test func `what is told in fewer words or new ones keeps its message`() {
        #expect(OperationError(ErrorView(code: "timeout", message: "late")) == .timeout)
        #expect(
            OperationError(ErrorView(code: "melted", message: "too hot"))
                == .thrown(type: "melted", message: "too hot", payload: [])
        )
        #expect(
            OperationError(ErrorView(code: "thrown", message: "m"))
                == .thrown(type: "", message: "m", payload: [])
        )
    }
}
