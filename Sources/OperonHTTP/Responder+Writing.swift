import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes
import OperonPorts

extension Responder {
    private var limits: HTTPLimits { context.configuration.limits }

    /// Header fields that keep browsers from misusing an answer, whatever it contains.
    private static func fields(_ type: String?) -> HTTPFields {
        var fields = HTTPFields()
        if let type { fields[.contentType] = type }
        fields[.cacheControl] = "no-store"
        fields[.xContentTypeOptions] = "nosniff"
        fields[.contentSecurityPolicy] = "default-src 'none'; frame-ancestors 'none'; sandbox"
        return fields
    }

    @concurrent func write(
        _ answer: Answer,
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        switch answer {
        case .json(let value, let created, let headers):
            let page: ByteBuffer
            do {
                page = try JSONBytes.page(value)
            } catch {
                logger.error("an answer is no JSON", metadata: ["error": "\(error)"])
                let message = "A mistake of the coordinator, about which its log says more."
                let failure = Failure(ClientError(.internal, message))
                return try await fail(request, writer, channel, failure)
            }
            var fields = Self.fields("application/json")
            fields.append(contentsOf: headers)
            let status: HTTPResponse.Status = created ? .created : .ok
            try await send(status, fields, page, request, writer, channel)
        case .bytes(let bytes, let type, let status):
            let known = Self.safeType(type)
            var fields = Self.fields(known)
            let isShown = known.hasPrefix("application/json") || known.hasPrefix("text/plain")
            if !isShown { fields[.contentDisposition] = "attachment" }
            let status = HTTPResponse.Status(code: status)
            try await send(status, fields, bytes, request, writer, channel)
        case .page(let file):
            var fields = Self.fields(file.type)
            fields[.contentSecurityPolicy] = Page.policy
            // A browser asks each time, because the next coordinator may have another page.
            fields[.cacheControl] = "no-cache"
            fields[.eTag] = file.tag
            fields[.referrerPolicy] = "no-referrer"
            let isKnown = request.headers[.ifNoneMatch] == file.tag
            let content = isKnown ? nil : file.content
            try await send(isKnown ? .notModified : .ok, fields, content, request, writer, channel)
        case .file(let file, let type): try await copy(file, type, writer, channel)
        case .nothing:
            try await send(.noContent, Self.fields(nil), nil, request, writer, channel)
        case .stream:
            let fields = Self.fields("text/event-stream")
            try await send(.ok, fields, ByteBuffer(), request, writer, channel)
        }
    }

    /// An operation chooses the type. A type that cannot stand in a header becomes that of unknown
    /// bytes.
    private static func safeType(_ type: String) -> String {
        let isValid = type.utf8.allSatisfy { (32...126).contains($0) } && type.contains("/")
        return isValid ? type : "application/octet-stream"
    }

    @concurrent func fail(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel,
        _ failure: Failure
    ) async throws {
        let problem = Problem(failure.error, status: failure.status)
        var fields = Self.fields(Problem.contentType)
        fields.append(contentsOf: failure.headers)
        if failure.closes, hasBody(request.head) { fields[.connection] = "close" }
        let page = try JSONBytes.page(problem)
        let status = HTTPResponse.Status(code: problem.status)
        try await send(status, fields, page, request, writer, channel)
    }

    private struct ConnectionIsOver: Error {}

    /// Reads unwanted bytes for a while, as many as a body may have, and then ends the connection.
    /// A connection that is closed with unread bytes is reset, and the answer may be lost.
    @concurrent func drain(
        _ request: Request,
        _ body: inout RequestBody.AsyncIterator?,
        _ channel: any Channel
    ) async throws {
        var iterator = body ?? request.body.makeAsyncIterator()
        let alarm = channel.close(in: .seconds(5))
        defer { alarm.cancel() }
        var left = limits.graphBytes
        do {
            while left >= 0, let piece = try await iterator.next() { left -= piece.readableBytes }
        } catch {
            // Harmless: the connection was cut, or what it carries is not valid HTTP. The answer
            // has already been sent.
            throw ConnectionIsOver()
        }
        throw ConnectionIsOver()
    }

    @concurrent private func send(
        _ status: HTTPResponse.Status,
        _ fields: HTTPFields,
        _ body: ByteBuffer?,
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        var fields = fields
        if let body { fields[.contentLength] = String(body.readableBytes) }
        let isShort = request.method == .head || body == nil
        let head = HTTPResponse(status: status, headerFields: fields)
        let alarm = channel.close(in: TimeAmount(limits.writeTime))
        defer { alarm.cancel() }
        if isShort {
            try await writer.writeResponse(head)
        } else {
            let content = ResponseBody(byteBuffer: body ?? ByteBuffer())
            try await writer.write(response: head, body: content)
        }
    }

    /// If a file ends early, the connection is cut, because the announced bytes are missing.
    @concurrent func copy(
        _ file: StoreBackup,
        _ type: String,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel
    ) async throws {
        var fields = Self.fields(type)
        fields[.contentLength] = String(file.byteCount)
        fields[.contentDisposition] = "attachment"
        let head = HTTPResponse(status: .ok, headerFields: fields)
        var bodyWriter = try await writer.writeHead(head)
        for try await piece in file.pieces {
            let alarm = channel.close(in: TimeAmount(limits.writeTime))
            defer { alarm.cancel() }
            try await bodyWriter.write(ByteBuffer(bytes: piece))
        }
        try await bodyWriter.finish(nil)
    }

    // MARK: - Streams

    @concurrent func stream(
        _ request: Request,
        _ writer: consuming ResponseWriter,
        _ channel: any Channel,
        _ caller: Caller?,
        _ events: @escaping @Sendable (EventWriter) async throws -> Void
    ) async throws {
        let head = HTTPResponse(status: .ok, headerFields: Self.fields("text/event-stream"))
        let bodyWriter = try await writer.writeHead(head)
        let output = EventWriter(bodyWriter, channel, writeTime: limits.writeTime)
        let limits = limits
        let (streams, tokens) = (context.streams, context.tokens)
        try? await request.body.consumeWithCancellationOnInboundClose { _ in
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Makes proxies forward the head, and shows the reader at once that it is
                // connected.
                try await output.comment("operon")
                group.addTask { try await pump(events, output) }
                group.addTask {
                    while true {
                        try await Task.sleep(for: limits.keepAlive)
                        try await output.comment("keep-alive")
                    }
                }
                group.addTask { await streams.untilEnd() }
                if let caller { group.addTask { await tokens.untilInvalid(caller) } }
                group.addTask { try await Task.sleep(for: limits.streamTime) }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
        try await bodyWriter.finish(nil)
    }

    /// An error is sent as the last event.
    private func pump(
        _ events: @Sendable (EventWriter) async throws -> Void,
        _ output: EventWriter
    ) async throws {
        do {
            try await events(output)
        } catch let error as ClientError {
            try await output.send("problem", Problem(error))
        } catch is CancellationError {
            return
        } catch {
            logger.debug("a stream ended early", metadata: ["error": "\(error)"])
            throw error
        }
    }
}

/// Gives refusals that the server core itself writes the same body as all others.
final class RefusalHandler: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPResponsePart
    typealias OutboundOut = HTTPResponsePart

    func write(
        context: ChannelHandlerContext,
        data: NIOAny,
        promise: EventLoopPromise<Void>?
    ) {
        // The core refuses only unreadable requests without a body.
        guard case .head(var head) = unwrapOutboundIn(data), head.status == .badRequest,
            head.headerFields[.contentLength] == "0"
        else {
            context.write(data, promise: promise)
            return
        }
        let message = "This is no request in HTTP/1.1, or its head is too large."
        let page = try? JSONBytes.page(Problem(ClientError(.invalid, message)))
        let body = page ?? ByteBuffer()
        head.headerFields[.contentLength] = String(body.readableBytes)
        head.headerFields[.contentType] = Problem.contentType
        head.headerFields[.xContentTypeOptions] = "nosniff"
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(body)), promise: promise)
    }
}
