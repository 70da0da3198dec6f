import OperonModel
import OperonPorts

/// The location of a coordinator, in the form that people write.
struct CoordinatorURL: Hashable, Sendable, CustomStringConvertible {
    var isSecure: Bool
    var address: ListenAddress

    init(_ text: String) throws(ClientError) {
        let problem = ClientError(
            .invalid,
            "“\(text)” is not the address of a coordinator: use unix:PATH, http://HOST:PORT or "
                + "https://HOST:PORT, such as http://127.0.0.1:7350."
        )
        var rest = text[...]
        if rest.hasPrefix(ListenAddress.socketPrefix) {
            isSecure = false
            do throws(HTTPServerError) {
                address = try ListenAddress(text)
                if case .socket(let path) = address { try SocketFile.checkLength(path) }
            } catch {
                throw ClientError(.invalid, error.message)
            }
            return
        } else if rest.lowercased().hasPrefix("http://") {
            isSecure = false
            rest = rest.dropFirst("http://".count)
        } else if rest.lowercased().hasPrefix("https://") {
            isSecure = true
            rest = rest.dropFirst("https://".count)
        } else {
            throw problem
        }
        if rest.last == "/" { rest = rest.dropLast() }
        guard !rest.isEmpty, rest.first != ":" else { throw problem }
        do {
            address = .tcp(try HTTPAddress(String(rest)))
        } catch {
            throw problem
        }
    }

    /// The part of a URL before the path of a request.
    var base: String {
        switch address {
        // The form that async-http-client uses for sockets.
        case .socket(let path): "http+unix://" + PercentText.encode(path)
        case .tcp: description
        }
    }

    /// - Throws: an error if the socket belongs to another user or does not exist. If it does not
    ///   exist, another user could create it a moment later and receive our requests.
    func check() throws(ClientError) {
        guard case .socket(let path) = address else { return }
        let isThere: Bool
        do throws(HTTPServerError) {
            isThere = try SocketFile.checkOwner(path)
        } catch {
            throw ClientError(.forbidden, error.message)
        }
        guard isThere else { throw .nobody(description) }
    }

    var description: String {
        switch address {
        case .socket: "\(address)"
        case .tcp: (isSecure ? "https://" : "http://") + "\(address)"
        }
    }
}
