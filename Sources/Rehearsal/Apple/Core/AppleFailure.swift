// Failures that a test requests: the kind, the place, and the number of times.

import Support

/// The kind of failure.
package enum AppleFailure: String, Sendable, Hashable, CaseIterable, Decodable {
    /// The endpoint answers 500, or 503.
    case status500 = "status-500"
    case status503 = "status-503"
    /// The endpoint does not answer for some time, and then returns 504.
    case timeout
    /// 200 with a body that is not JSON.
    case garbage
    /// A key set without keys.
    case noKeys = "no-keys"
    /// The token is signed by a different key than it names.
    case wrongSignature = "wrong-signature"
    /// The token names a key that is not published, and is signed by it.
    case unknownKid = "unknown-kid"
    case wrongIssuer = "wrong-issuer"
    case wrongAudience = "wrong-audience"
    case wrongNonce = "wrong-nonce"
    /// The token expired an hour ago.
    case expired
    /// The previous token or event again.
    case replay

    /// The places where a failure can happen.
    package enum Place: String, Sendable, Hashable, CaseIterable, Decodable {
        case authorize, token, revoke, keys, usermigrationinfo, events
    }

    /// Whether the failure can happen at this place.
    package func suits(_ place: Place) -> Bool {
        switch self {
        case .status500, .status503, .timeout, .garbage: place != .events
        case .noKeys: place == .keys
        case .wrongNonce: place == .token || place == .authorize
        case .wrongSignature, .unknownKid, .wrongIssuer, .wrongAudience, .expired, .replay:
            place == .token || place == .authorize || place == .events
        }
    }

    /// Whether the endpoint itself fails and does nothing.
    package var isOfTransport: Bool { [.status500, .status503, .timeout, .garbage].contains(self) }

    func spoil(_ claims: inout JSONObject) {
        switch self {
        case .wrongIssuer: claims["iss"] = "https://appleid.apple.example"
        case .wrongAudience: claims["aud"] = "com.example.another"
        case .wrongNonce: claims["nonce"] = "another-nonce"
        case .expired:
            guard let issuedAt = claims["iat"]?.number?.integer else { return }
            claims["iat"] = .integer(issuedAt - 90_000)
            claims["exp"] = .integer(issuedAt - 3_600)
        default: break
        }
    }
}

/// Requested failures that have not happened yet.
package struct AppleFailures: Sendable {
    /// The most orders waiting at one time.
    package static let maximum = 100
    /// The most times that one order can happen.
    package static let maximumTimes = 1_000
    /// The longest time-out, in seconds.
    package static let maximumSeconds = 300

    package struct Order: Sendable {
        package let place: AppleFailure.Place
        package let failure: AppleFailure
        package internal(set) var times: Int
        /// For a time-out.
        package let seconds: Int
    }

    package private(set) var orders: [Order] = []

    package init() {}

    /// False if too many orders wait, or the failure cannot happen there.
    package mutating func add(
        _ failure: AppleFailure, at place: AppleFailure.Place, times: Int, seconds: Int
    ) -> Bool {
        guard failure.suits(place), orders.count < Self.maximum else { return false }
        orders.append(Order(place: place, failure: failure, times: times, seconds: seconds))
        return true
    }

    /// The first order that waits for a place; counts as one occurrence.
    package mutating func take(_ place: AppleFailure.Place) -> Order? {
        guard let index = orders.firstIndex(where: { $0.place == place }) else { return nil }
        orders[index].times -= 1
        return orders[index].times == 0 ? orders.remove(at: index) : orders[index]
    }

    package mutating func removeAll() { orders = [] }
}
