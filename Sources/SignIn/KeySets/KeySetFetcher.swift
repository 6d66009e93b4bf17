// Fetches key sets over HTTPS, or from a file.

import AsyncHTTPClient
import Database
import Foundation
import NIOCore
import NIOSSL
import Transport

/// A key set as received.
package struct FetchedKeySet: Sendable, Hashable {
    package let document: [UInt8]
    /// Seconds for which the issuer allows its use
    /// (`Cache-Control: max-age`); nil if it gives none.
    package let maxAge: Int64?

    package init(document: [UInt8], maxAge: Int64?) {
        self.document = document
        self.maxAge = maxAge
    }
}

/// Why a key set could not be fetched, in one line for the operator.
package struct KeySetFetchError: Error, Sendable, Hashable, CustomStringConvertible {
    package let reason: String
    package init(_ reason: String) { self.reason = reason }
    package var description: String { reason }
}

/// Fetches key sets.
package protocol KeySetFetcher: Sendable {
    /// The current document at this place. Returns or throws within a limited time.
    func fetch(_ source: KeySource) async throws(KeySetFetchError) -> FetchedKeySet
}

/// Addresses of key sets.
package enum KeySetAddress {
    /// The problem of an address, in words; nil if it may be fetched: `https:` with a host and
    /// without user, password or fragment; `http:` if the host is loopback or `allowingHTTP`.
    package static func objection(_ text: String, allowingHTTP: Bool = false) -> String? {
        guard (1...2048).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty
        else { return "it is not a URL with a host" }
        guard parts.user == nil, parts.password == nil, parts.fragment == nil else {
            return "it has a user, a password or a fragment"
        }
        switch parts.scheme?.lowercased() {
        case "https": return nil
        case "http" where allowingHTTP || isLoopback(host): return nil
        case "http": return "keys fetched over plain http: can be replaced in transit; use https:"
        default: return "it does not begin with https:"
        }
    }

    /// Whether a host is this machine by its form: `localhost`, 127.0.0.0/8 or ::1.
    private static func isLoopback(_ host: String) -> Bool {
        let name = host.lowercased()
        if name == "localhost" || name == "::1" || name == "[::1]" { return true }
        let numbers = name.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }
}

/// Fetches with async-http-client, and reads files.
package struct HTTPKeySetFetcher: KeySetFetcher {
    /// Seconds for a whole response. A caller may be waiting for a decision.
    package static let deadline: Int64 = 5

    private let client: HTTPClient
    private let deadline: TimeAmount

    /// - Parameters:
    ///   - client: made with `configuration`; shut down by its owner.
    ///   - deadline: seconds for a whole response.
    package init(client: HTTPClient, deadline: Int64 = HTTPKeySetFetcher.deadline) {
        self.client = client
        self.deadline = .seconds(deadline)
    }

    /// The client that fetches key sets. No redirects, since a redirecting server would choose the
    /// keys, and no decompression.
    package static var configuration: HTTPClient.Configuration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.requireForwardSecrecy()
        var configuration = HTTPClient.Configuration(
            tlsConfiguration: tls, redirectConfiguration: .disallow,
            timeout: .init(connect: .seconds(3), read: .seconds(deadline)),
            decompression: .disabled)
        configuration.httpVersion = .automatic
        return configuration
    }

    package func fetch(_ source: KeySource) async throws(KeySetFetchError) -> FetchedKeySet {
        switch source {
        case .inline(let text): return FetchedKeySet(document: Array(text.utf8), maxAge: nil)
        case .file(let path): return try await read(path)
        case .uri(let address, let allowsHTTP): return try await get(address, allowsHTTP)
        }
    }

    private func get(
        _ address: String, _ allowsHTTP: Bool
    ) async throws(KeySetFetchError) -> FetchedKeySet {
        if let objection = KeySetAddress.objection(address, allowingHTTP: allowsHTTP) {
            throw KeySetFetchError(objection)
        }
        do {
            var request = HTTPClientRequest(url: address)
            request.headers.add(name: "Accept", value: "application/jwk-set+json, application/json")
            request.headers.add(name: "User-Agent", value: "postern")
            let end = NIODeadline.now() + deadline
            let response = try await client.execute(request, deadline: end)
            guard response.status == .ok else {
                throw KeySetFetchError(
                    (300..<400).contains(response.status.code)
                        ? "the response is a redirect (\(response.status.code)), which is not followed"
                        : "the response has status \(response.status.code)")
            }
            let body = try await response.octets(limit: JWKSet.maximumLength, until: end)
            return FetchedKeySet(
                document: body, maxAge: Self.maxAge(response.headers["cache-control"]))
        } catch let error as KeySetFetchError {
            throw error
        } catch is NIOTooManyBytesError {
            throw KeySetFetchError("the response is longer than \(JWKSet.maximumLength) octets")
        } catch let error as HTTPClientError {
            throw KeySetFetchError(
                Self.late.contains(error)
                    ? "no complete response in time"
                    : "the request failed: \(error.shortDescription)")
        } catch {
            throw KeySetFetchError("the request failed: \(Self.oneLine(error))")
        }
    }

    /// The errors when the deadline passes: before there is a connection,
    /// while connecting, and after.
    private static let late: [HTTPClientError] = [
        .deadlineExceeded, .readTimeout, .writeTimeout, .connectTimeout,
        .getConnectionFromPoolTimeout, .tlsHandshakeTimeout,
    ]

    private func read(_ path: String) async throws(KeySetFetchError) -> FetchedKeySet {
        do {
            let document = try await BlockingPool.issuers.run {
                guard let file = FileHandle(forReadingAtPath: path) else {
                    throw KeySetFetchError("the file cannot be read")
                }
                defer { try? file.close() }
                return Array(try file.read(upToCount: JWKSet.maximumLength + 1) ?? Data())
            }
            // Reading again costs nothing: an edited file takes effect within a minute.
            return FetchedKeySet(document: document, maxAge: 60)
        } catch let error as KeySetFetchError {
            throw error
        } catch {
            throw KeySetFetchError("the file cannot be read")
        }
    }

    /// `max-age` (RFC 9111 section 5.2.2.1), the smallest one; 0 for `no-store` and `no-cache`.
    static func maxAge(_ fields: [String]) -> Int64? {
        var least: Int64?
        for directive in fields.joined(separator: ",").lowercased().split(separator: ",") {
            let text = directive.trimmingCharacters(in: .whitespaces)
            if text == "no-store" || text == "no-cache" { return 0 }
            guard text.hasPrefix("max-age="),
                let seconds = Int64(text.dropFirst(8).trimmingCharacters(in: ["\""])), seconds >= 0
            else { continue }
            least = min(least ?? seconds, seconds)
        }
        return least
    }

    /// The description of a network error in one short line.
    private static func oneLine(_ error: any Error) -> String {
        "\(error)".withoutControls(limit: 200)
    }
}
