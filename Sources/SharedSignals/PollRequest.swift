// Polls for security event tokens (RFC 8936), and the error codes of a SET (RFC 8935 section 2.4).

import Support

/// Why a receiver refuses a SET: the codes of RFC 8935 section 2.4, and `invalid_state` of SSF 1.0.
package enum SETError: String, Sendable, Hashable, CaseIterable {
    case invalidRequest = "invalid_request"
    case invalidKey = "invalid_key"
    case invalidIssuer = "invalid_issuer"
    case invalidAudience = "invalid_audience"
    case authenticationFailed = "authentication_failed"
    case accessDenied = "access_denied"
    case invalidState = "invalid_state"

    /// Whether other SETs would probably be refused too.
    package var isOfAll: Bool { self != .invalidRequest && self != .invalidState }

    /// From the body of an error or a member of `setErrs`; nil for a code that is not registered.
    package init?(_ value: JSONValue?) {
        guard let code = value?.object?["err"]?.string, let error = SETError(rawValue: code) else {
            return nil
        }
        self = error
    }
}

/// A poll (RFC 8936 section 2.2).
package struct PollRequest: Sendable, Hashable {
    /// Maximum number of SETs to return, from 0; nil for no maximum.
    package let maxEvents: Int?
    package let returnImmediately: Bool
    /// `jti` of accepted SETs.
    package let acknowledged: [String]
    /// `jti` of refused SETs, with the code if it is a registered one.
    package let refused: [(jti: String, error: SETError?)]

    /// Maximum acknowledgements and errors in one poll. One response has fewer SETs than that.
    package static let maximumResults = 1_024
    /// Octets of a `jti`: ours have 32.
    private static let maximumName = 128

    /// Parses a body. Unknown members are ignored.
    package init(_ json: JSONObject) throws(SharedSignalsError) {
        switch json["maxEvents"] {
        case nil: maxEvents = nil
        case .number(let number)?:
            guard let count = number.integer, count >= 0 else {
                throw SharedSignalsError("maxEvents is not a number from 0")
            }
            maxEvents = Int(clamping: count)
        default: throw SharedSignalsError("maxEvents is not a number")
        }
        switch json["returnImmediately"] {
        case nil: returnImmediately = false
        case .bool(let value)?: returnImmediately = value
        default: throw SharedSignalsError("returnImmediately is neither true nor false")
        }
        switch json["ack"] {
        case nil: acknowledged = []
        case .array(let items)?:
            acknowledged = items.compactMap(\.string)
            guard acknowledged.count == items.count, items.count <= Self.maximumResults,
                acknowledged.allSatisfy({ $0.utf8.count <= Self.maximumName })
            else {
                throw SharedSignalsError("ack is not a list of at most \(Self.maximumResults) jti")
            }
        default: throw SharedSignalsError("ack is not a list")
        }
        switch json["setErrs"] {
        case nil: refused = []
        case .object(let errors)?:
            guard errors.members.count <= Self.maximumResults,
                errors.members.allSatisfy({
                    $0.value.object != nil && $0.name.utf8.count <= Self.maximumName
                })
            else {
                throw SharedSignalsError(
                    "setErrs is not an object of at most \(Self.maximumResults) errors")
            }
            refused = errors.members.map { ($0.name, SETError($0.value)) }
        default: throw SharedSignalsError("setErrs is not an object")
        }
    }

    package static func == (one: PollRequest, other: PollRequest) -> Bool {
        one.maxEvents == other.maxEvents && one.returnImmediately == other.returnImmediately
            && one.acknowledged == other.acknowledged
            && one.refused.elementsEqual(other.refused) { $0.jti == $1.jti && $0.error == $1.error }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(acknowledged) }
}
