// One attempt: a POST to a checked address of an endpoint, limited in time and size.

import Accounts
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOSSL
import SharedSignals
import Support
import Transport

/// The outcome of an attempt.
package enum PostOutcome: Sendable, Hashable {
    /// A status of 200 … 299.
    case delivered
    /// Any other result.
    /// - Parameters:
    ///   - reason: our own text, which contains nothing that the endpoint wrote.
    ///   - isEndpoints: whether other events would probably fail too.
    ///   - retryAfter: seconds that the endpoint requested.
    case failed(reason: String, isEndpoints: Bool, retryAfter: Int64?)
}

/// The content of an attempt.
package struct EventMessage: Sendable {
    package let body: [UInt8]
    /// Media types of the body and of the response.
    package let type: String
    package let accept: String
    /// The value of the Authorization field; nil for none.
    package let authorization: String?

    /// A notification in Apple's form.
    package init(notification body: [UInt8]) {
        (self.body, type, accept, authorization) = (body, "application/json", "*/*", nil)
    }

    /// A security event token (RFC 8935 section 2).
    package init(token: String, authorization: String?) {
        (body, type, accept) = (Array(token.utf8), SecurityEventToken.mediaType, "application/json")
        self.authorization = authorization
    }

    /// A logout token, in a form (OpenID Connect Back-Channel Logout 1.0 section 2.5).
    package init(logout token: String) {
        (body, type) = (Array("logout_token=\(token)".utf8), "application/x-www-form-urlencoded")
        (accept, authorization) = ("*/*", nil)
    }

    var isToken: Bool { type == SecurityEventToken.mediaType }
}

/// Sends a message to an endpoint.
package protocol EventPosting: Sendable {
    /// Returns within a bounded time, even if the endpoint does not respond.
    func post(
        _ message: EventMessage, to url: EndpointURL, at addresses: EndpointAddresses
    ) async -> PostOutcome
}

/// Posts with async-http-client. It does not look up the URL's name again: a client is bound to one
/// checked address, and uses the name in SNI, `Host` and the check of the certificate.
package actor HTTPEventPoster: EventPosting {
    /// Seconds for one whole attempt. A receiver must store the event and answer, not act on it.
    package static let timeout: Int64 = 10
    /// Seconds to connect to one address.
    private static let connectPatience: Int64 = 4
    /// Octets of a response that are read, so that the connection can be used again. After a longer
    /// response it is closed.
    private static let answerLimit = 16_384
    /// The maximum number of clients, and the seconds for which an unused one is kept.
    private static let clientLimit = 64

    private struct Key: Hashable {
        let host: String
        let address: String
    }

    private struct Entry {
        let client: HTTPClient
        var users: Int
        var lastUse: Int64
    }

    private let additionalRoots: [NIOSSLCertificate]
    private let timeout: TimeAmount
    private var clients: [Key: Entry] = [:]
    private var uses: Int64 = 0

    /// - Parameters:
    ///   - rootsPath: certificate authorities (PEM) in addition to the system's. Throws if they
    ///     cannot be read.
    ///   - timeout: seconds for one attempt.
    package init(rootsPath: String? = nil, timeout: Int64 = HTTPEventPoster.timeout) throws {
        additionalRoots = try rootsPath.map { try NIOSSLCertificate.fromPEMFile($0) } ?? []
        self.timeout = .seconds(timeout)
    }

    /// Closes all connections. Call it once, after the last post.
    package func stop() async {
        let all = clients.values.map(\.client)
        clients = [:]
        for client in all { try? await client.shutdown() }
    }

    package func post(
        _ message: EventMessage, to url: EndpointURL, at addresses: EndpointAddresses
    ) async -> PostOutcome {
        let end = NIODeadline.now() + timeout
        var last = PostOutcome.failed(reason: "no address", isEndpoints: true, retryAfter: nil)
        for address in addresses.texts {
            let key = Key(host: url.host, address: address)
            let client = take(key)
            let result = await Self.attempt(message, to: url, client, end)
            await giveBack(key)
            switch result {
            case .success(let outcome): return outcome
            // No connection: try the next address.
            case .failure(let failure):
                last = .failed(reason: failure.reason, isEndpoints: true, retryAfter: nil)
            }
            if NIODeadline.now() >= end { break }
        }
        return last
    }

    /// No response began; usually no connection was made. The next address is tried, because an
    /// event may arrive twice.
    private struct NoConnection: Error { let reason: String }

    private static func attempt(
        _ message: EventMessage, to url: EndpointURL, _ client: HTTPClient, _ end: NIODeadline
    ) async -> Result<PostOutcome, NoConnection> {
        var request = HTTPClientRequest(url: url.description)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: message.type)
        request.headers.add(name: "Accept", value: message.accept)
        request.headers.add(name: "User-Agent", value: "postern")
        if let authorization = message.authorization {
            request.headers.add(name: "Authorization", value: authorization)
        }
        request.body = .bytes(ByteBuffer(bytes: message.body))
        do {
            let response = try await client.execute(request, deadline: end)
            // A long or slow body counts as empty; the status counts in any case.
            let body = (try? await response.octets(limit: answerLimit, until: end)) ?? []
            // The body contains the error of a SET (RFC 8935 section 2.3).
            let error =
                message.isToken && response.status == .badRequest
                ? SETError(try? StrictJSON.parse(body, limit: answerLimit)) : nil
            return .success(outcome(response, error))
        } catch let error as HTTPClientError {
            if error == .connectTimeout {
                return .failure(NoConnection(reason: "no connection in time"))
            }
            let isLate = [.deadlineExceeded, .readTimeout, .getConnectionFromPoolTimeout].contains(
                error)
            return .success(
                .failed(
                    reason: isLate
                        ? "no complete response in time"
                        : "the request failed: \(error.shortDescription)",
                    isEndpoints: true,
                    retryAfter: nil))
        } catch let error
            where error is NIOSSLError || error is NIOSSLExtraError || error is BoringSSLError
        {
            return .failure(NoConnection(reason: "TLS failed: \(oneLine(error))"))
        } catch let error as IOError {
            return .failure(
                NoConnection(reason: "no connection: \(String(cString: strerror(error.errnoCode)))")
            )
        } catch {
            return .failure(NoConnection(reason: "the request failed: \(oneLine(error))"))
        }
    }

    private static func outcome(_ response: HTTPClientResponse, _ error: SETError?) -> PostOutcome {
        let code = Int(response.status.code)
        switch code {
        case 200..<300: return .delivered
        case _ where error != nil:
            return .failed(
                reason: "the response has status \(code) (\(error?.rawValue ?? ""))",
                isEndpoints: error?.isOfAll ?? false,
                retryAfter: nil)
        case 300..<400:
            return .failed(
                reason: "the response is a redirect (\(code)), which is not followed",
                isEndpoints: true, retryAfter: nil)
        default:
            // These codes concern only this event: the endpoint may accept others.
            let isEvents = [400, 406, 409, 411, 413, 414, 415, 418, 422, 431, 451].contains(code)
            let asked = response.headers.first(name: "Retry-After").flatMap { Int64($0) }.map {
                min(max($0, 0), RetrySchedule.longestAsked)
            }
            return .failed(
                reason: "the response has status \(code)", isEndpoints: !isEvents,
                retryAfter: isEvents ? nil : asked)
        }
    }

    /// A network error in one short line.
    private static func oneLine(_ error: any Error) -> String {
        String("\(error)".map { $0.isNewline ? " " : $0 }.prefix(200))
    }

    // MARK: Clients

    private func take(_ key: Key) -> HTTPClient {
        uses += 1
        if clients[key] == nil {
            clients[key] = Entry(client: client(key), users: 0, lastUse: uses)
        }
        clients[key]?.users += 1
        clients[key]?.lastUse = uses
        return clients[key]?.client ?? client(key)
    }

    private func giveBack(_ key: Key) async {
        clients[key]?.users -= 1
        guard clients.count > Self.clientLimit,
            let oldest = clients.filter({ $0.value.users == 0 }).min(by: {
                $0.value.lastUse < $1.value.lastUse
            })
        else { return }
        clients[oldest.key] = nil
        try? await oldest.value.client.shutdown()
    }

    private func client(_ key: Key) -> HTTPClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.requireForwardSecrecy()
        tls.additionalTrustRoots = additionalRoots.isEmpty ? [] : [.certificates(additionalRoots)]
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, redirectConfiguration: .disallow,
            timeout: .init(connect: .seconds(Self.connectPatience), read: timeout),
            decompression: .disabled)
        configuration.dnsOverride = [key.host: key.address]
        configuration.httpVersion = .http1Only
        configuration.connectionPool.retryConnectionEstablishment = false
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}
