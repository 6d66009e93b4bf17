// Posts notifications to the app under test, on this machine.

import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import Transport

/// Sends each notification once, as Apple does.
struct AppleEventSender: Sendable {
    private let client: HTTPClient
    /// The longest time for an app's response.
    private static let timeout = TimeAmount.seconds(10)
    /// The most octets of a response that are read; Apple needs none.
    private static let maximumAnswer = 65_536

    init() {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = Self.timeout
        // The sender does not wait for an app that is not listening.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    /// The result.
    struct Outcome: Sendable {
        /// Nil if there was no response.
        let status: Int?
        let cause: String
    }

    func post(_ notification: AppleNotification, to address: String) async -> Outcome {
        var request = HTTPClientRequest(url: address)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: notification.body))
        do {
            let end = NIODeadline.now() + Self.timeout
            let response = try await client.execute(request, deadline: end)
            let body = try? await response.octets(limit: Self.maximumAnswer, until: end)
            let status = Int(response.status.code)
            let isTaken = (200..<300).contains(status)
            return Outcome(
                status: status,
                cause: isTaken
                    ? "the app accepted \(notification.type)"
                        + (body.map { !$0.isEmpty } ?? true
                            ? "; Apple expects a response without a body" : "")
                    : "the app refused \(notification.type), and Apple does not repeat it")
        } catch {
            return Outcome(
                status: nil, cause: "\(notification.type) was not delivered: \(Self.words(error))")
        }
    }

    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as HTTPClientError
        where error == .deadlineExceeded || error == .connectTimeout:
            "no answer within 10 s"
        case is HTTPClientError: "\(error)"
        default: "no connection"
        }
    }

    func stop() async { try? await client.shutdown() }
}
