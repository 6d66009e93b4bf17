// Browsers that sign in at a rate, and their durations.

import AsyncHTTPClient
import BenchReport
import Foundation
import NIOCore
import NIOHTTP1
import PasskeyTesting
import Support
import Synchronization

struct Measured: Sendable {
    var rate = 0.0
    /// Durations of complete sign-ins, and of their requests.
    var wholes = Latencies()
    var requests = Latencies()
    /// The first failure.
    var failure: String?

    func line(_ asked: Int) -> String {
        String(format: "%4d asked, %6.1f a second; whole: ", asked, rate) + wholes.line
            + "; a request: " + requests.line
    }
}

/// Each user has a passkey and a browser, and each browser its own network.
final class Crowd: Sendable {
    private let place: SignInPlace
    private let client: HTTPClient
    private let next = Atomic<Int>(0)

    init(_ place: SignInPlace, _ client: HTTPClient) {
        self.place = place
        self.client = client
    }

    /// Sign-ins that begin at fixed times, even if earlier ones have not ended.
    func signIn(perSecond rate: Int, seconds: Int) async -> Measured {
        let start = ContinuousClock.now
        var measured = Measured()
        await at(rate, seconds, &measured) { [self] in
            var visit = Visit(place, client, next.add(1, ordering: .relaxed).oldValue)
            return try await visit.signIn()
        }
        measured.rate =
            Double(measured.wholes.count) / ((ContinuousClock.now - start) / .seconds(1))
        return measured
    }

    /// Opens the users' page at fixed times, for this number of signed-in users.
    func look(perSecond rate: Int, seconds: Int, visitors: Int) async -> Measured {
        var measured = Measured()
        var signedIn: [Visit] = []
        do {
            for _ in 0..<visitors {
                var visit = Visit(place, client, next.add(1, ordering: .relaxed).oldValue)
                _ = try await visit.signIn()
                signedIn.append(visit)
            }
        } catch { measured.failure = "\(error)" }
        let (visits, start) = (signedIn, ContinuousClock.now)
        await at(rate, seconds, &measured) {
            guard var visit = visits.randomElement() else {
                throw VisitError(description: "no one has signed in")
            }
            return [try await visit.look()]
        }
        measured.rate =
            Double(measured.wholes.count) / ((ContinuousClock.now - start) / .seconds(1))
        return measured
    }

    private func at(
        _ rate: Int, _ seconds: Int, _ measured: inout Measured,
        _ visit: @escaping @Sendable () async throws -> [Duration]
    ) async {
        let start = ContinuousClock.now
        await withTaskGroup(of: Result<[Duration], any Error>.self) { tasks in
            for number in 0..<(rate * seconds) {
                try? await Task.sleep(
                    until: start + .seconds(1) * number / rate, clock: .continuous)
                tasks.addTask {
                    do { return .success(try await visit()) } catch { return .failure(error) }
                }
            }
            for await result in tasks {
                switch result {
                case .success(let times):
                    for time in times { measured.requests.add(time) }
                    measured.wholes.add(times.reduce(.zero, +))
                case .failure(let error): measured.failure = measured.failure ?? "\(error)"
                }
            }
        }
    }
}

struct VisitError: Error, CustomStringConvertible { let description: String }

/// One browser that signs in, and the app's backend.
struct Visit {
    private let place: SignInPlace
    private let client: HTTPClient
    private let number: Int
    private var cookies: [String: String] = [:]
    private var times: [Duration] = []

    init(_ place: SignInPlace, _ client: HTTPClient, _ number: Int) {
        self.place = place
        self.client = client
        self.number = number
        cookies["__Host-postern-known"] = place.known[number % place.known.count]
    }

    /// The duration of each request.
    mutating func signIn() async throws -> [Duration] {
        times = []
        let user = number % place.authenticators.count
        let query = FormEncoding.encode([
            ("client_id", SignInPlace.client), ("redirect_uri", SignInPlace.redirect),
            ("response_type", "code"),
            ("scope", "openid email"), ("state", "s"), ("nonce", "n\(number)"),
        ])
        let sheet = try await location(ask(.GET, "/auth/authorize?\(query)"))
        let door = try await location(ask(.GET, sheet))
        let request = String(sheet.drop { $0 != "=" }.dropFirst())
        let page = try await ask(.GET, door).text
        guard let challenge = page.between("data-challenge=\"", "\""),
            let csrf = page.between("name=\"csrf\" value=\"", "\"")
        else {
            throw VisitError(description: "no challenge: \(page.prefix(300))")
        }
        var authenticator = place.authenticators[user]
        // Later than the sign-in before.
        authenticator.signCount = UInt32(number + 1)
        authenticator.clientData = TestAuthenticator.clientData(
            .get, challenge: Base64URL.decode(challenge.utf8) ?? [])
        let signedIn = try await location(
            ask(
                .POST, "/me/passkey",
                [
                    ("csrf", csrf), ("request", request), ("challenge", challenge),
                    ("credential", Base64URL.encode(authenticator.credentialID)),
                    ("client_data", Base64URL.encode(Array(authenticator.clientData.utf8))),
                    (
                        "authenticator_data",
                        Base64URL.encode(authenticator.authenticatorData(withCredential: false))
                    ),
                    ("signature", Base64URL.encode(try authenticator.signature())),
                    ("user_handle", Base64URL.encode(place.handles[user])),
                ]))
        guard let token = try await ask(.GET, signedIn).text.between("name=\"csrf\" value=\"", "\"")
        else {
            throw VisitError(description: "no sheet")
        }
        let away = try await location(
            ask(
                .POST, "/sign-in",
                [
                    ("csrf", token), ("request", request), ("decision", "continue"),
                    ("email", "hide"),
                ]))
        let back = try await location(ask(.GET, away))
        guard let code = back.between("code=", "&") else {
            throw VisitError(description: "no code: \(back)")
        }
        let tokens = try await ask(
            .POST, "/auth/token",
            [
                ("grant_type", "authorization_code"), ("code", code),
                ("redirect_uri", SignInPlace.redirect),
                ("client_id", SignInPlace.client), ("client_secret", place.secret),
            ])
        guard tokens.status == 200, tokens.text.contains("\"id_token\"") else {
            throw VisitError(description: tokens.text)
        }
        return times
    }

    /// The page of the user's addresses, after sign-in.
    mutating func look() async throws -> Duration {
        times = []
        let answer = try await ask(.GET, "/me")
        guard answer.status == 200 else { throw VisitError(description: "/me: \(answer.status)") }
        return times.last ?? .zero
    }

    private func location(_ answer: Answer) throws -> String {
        guard answer.status == 303, let location = answer.location else {
            throw VisitError(description: "\(answer.status): \(answer.text.prefix(2_000))")
        }
        return location.hasPrefix(SignInPlace.issuer)
            ? String(location.dropFirst(SignInPlace.issuer.count)) : location
    }

    private struct Answer {
        let status: UInt
        let location: String?
        let text: String
    }

    private mutating func ask(
        _ method: HTTPMethod, _ path: String, _ form: [(String, String)]? = nil
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: "http://\(place.address)\(path)")
        request.method = method
        if !cookies.isEmpty {
            request.headers.add(
                name: "Cookie",
                value: cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; "))
        }
        // A separate network for each browser, as limits are for each network.
        let address = UInt32(truncatingIfNeeded: number) &* 2_654_435_761
        request.headers.add(
            name: "X-Forwarded-For",
            value:
                "\(1 + address >> 24 % 223).\(address >> 16 & 255).\(address >> 8 & 255).\(address & 255)"
        )
        if let form {
            request.headers.add(name: "Content-Type", value: "application/x-www-form-urlencoded")
            request.body = .bytes(ByteBuffer(string: FormEncoding.encode(form)))
        }
        let start = ContinuousClock.now
        let response = try await client.execute(request, timeout: .seconds(30))
        let text = String(buffer: try await response.body.collect(upTo: 1_000_000))
        times.append(ContinuousClock.now - start)
        for cookie in response.headers["Set-Cookie"] {
            let pair = cookie.prefix { $0 != ";" }.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if pair.count == 2 { cookies[String(pair[0])] = String(pair[1]) }
        }
        return Answer(
            status: response.status.code, location: response.headers.first(name: "Location"),
            text: text)
    }
}

extension String {
    /// The text between two texts, at the first occurrence.
    func between(_ start: String, _ end: String) -> String? {
        guard let from = firstRange(of: start)?.upperBound else { return nil }
        let rest = self[from...]
        return rest.firstRange(of: end).map { String(rest[..<$0.lowerBound]) } ?? String(rest)
    }
}
