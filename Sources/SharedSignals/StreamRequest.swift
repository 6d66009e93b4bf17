// Receivers' requests to manage streams (SSF 1.0 section 8), parsed strictly where it matters
// and leniently elsewhere.

import Support

/// How a stream's events reach its receiver.
package enum StreamDelivery: Sendable, Hashable {
    /// RFC 8935.
    /// - Parameters:
    ///   - url: the receiver's URL.
    ///   - authorization: the value of the Authorization field; nil for none.
    case push(url: String, authorization: String?)
    /// RFC 8936.
    case poll

    /// Values of `method`.
    package static let (pushMethod, pollMethod) = ("urn:ietf:rfc:8935", "urn:ietf:rfc:8936")

    /// Maximum octets of an Authorization field: tokens in JWT form have some thousand.
    private static let maximumAuthorization = 4_096

    /// Parses `delivery`. Throws for an unknown method, and for push without its required members.
    init(_ value: JSONValue) throws(SharedSignalsError) {
        guard case .object(let delivery) = value else {
            throw SharedSignalsError("delivery is not an object")
        }
        switch delivery["method"]?.string {
        case Self.pollMethod: self = .poll
        case Self.pushMethod:
            guard case .string(let url)? = delivery["endpoint_url"] else {
                throw SharedSignalsError("delivery has no endpoint_url, which push needs")
            }
            switch delivery["authorization_header"] {
            case nil: self = .push(url: url, authorization: nil)
            case .string(let text)?:
                guard (1...Self.maximumAuthorization).contains(text.utf8.count),
                    text.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
                else {
                    throw SharedSignalsError("authorization_header is not the value of a field")
                }
                self = .push(url: url, authorization: text)
            default: throw SharedSignalsError("authorization_header is not text")
            }
        default:
            throw SharedSignalsError(
                "delivery.method is neither \(Self.pushMethod) nor \(Self.pollMethod)")
        }
    }
}

/// Whether a stream's events are sent (section 8.1.2).
package enum StreamStatus: String, Sendable, Hashable, CaseIterable {
    case enabled
    /// Events are stored, not sent.
    case paused
    /// Events are neither sent nor stored.
    case disabled
}

/// A stream as requested by its receiver, with POST, PATCH or PUT (sections
/// 8.1.1.1, 8.1.1.3, 8.1.1.4).
package struct StreamRequest: Sendable, Hashable {
    /// Nil in a request that creates a stream.
    package let streamID: String?
    package let delivery: StreamDelivery?
    /// Nil if it is not named.
    package let eventsRequested: [String]?
    /// The part of the description that is kept.
    package let streamDescription: String?
    /// Members set by the transmitter that the request repeats: their values must be correct.
    package let repeated: JSONObject

    /// URIs that are read, octets of each URI, and characters of a description.
    package static let (maximumEvents, maximumURI, maximumDescription) = (128, 512, 200)
    private static let ofTransmitter = [
        "iss", "aud", "events_supported", "events_delivered", "min_verification_interval",
    ]

    /// Parses a body. Unknown members are ignored.
    /// - Parameter isNew: whether the request creates a stream, and so has no `stream_id`.
    package init(_ json: JSONObject, isNew: Bool) throws(SharedSignalsError) {
        streamID = isNew ? nil : try Self.streamID(json)
        delivery = try json["delivery"].map { value throws(SharedSignalsError) in
            try StreamDelivery(value)
        }
        switch json["events_requested"] {
        case nil: eventsRequested = nil
        case .array(let items)?:
            let events = items.compactMap(\.string)
            guard events.count == items.count, events.count <= Self.maximumEvents,
                events.allSatisfy({ (1...Self.maximumURI).contains($0.utf8.count) })
            else {
                throw SharedSignalsError(
                    "events_requested is not a list of at most \(Self.maximumEvents) URIs")
            }
            eventsRequested = events
        default: throw SharedSignalsError("events_requested is not a list")
        }
        switch json["description"] {
        case nil: streamDescription = nil
        case .string(let text)?:
            streamDescription = text.withoutControls(limit: Self.maximumDescription)
        default: throw SharedSignalsError("description is not text")
        }
        var repeated: JSONObject = [:]
        for name in Self.ofTransmitter { repeated[name] = json[name] }
        self.repeated = repeated
    }

    /// `stream_id` of a body.
    package static func streamID(_ json: JSONObject) throws(SharedSignalsError) -> String {
        guard case .string(let id)? = json["stream_id"], !id.isEmpty else {
            throw SharedSignalsError("stream_id is missing")
        }
        return id
    }

    /// The first member set by the transmitter that the request repeats with a wrong value; nil if
    /// all are correct.
    package func falseMember(of configuration: JSONObject) -> String? {
        repeated.members.first { configuration[$0.name] != $0.value }?.name
    }
}

/// A change of a stream's status (section 8.1.2.2).
package struct StatusRequest: Sendable, Hashable {
    package let streamID: String
    package let status: StreamStatus
    package let reason: String?

    /// Octets of a reason.
    package static let maximumReason = 512

    package init(streamID: String, status: StreamStatus, reason: String?) {
        (self.streamID, self.status, self.reason) = (streamID, status, reason)
    }

    package init(_ json: JSONObject) throws(SharedSignalsError) {
        streamID = try StreamRequest.streamID(json)
        guard let status = json["status"]?.string.flatMap(StreamStatus.init(rawValue:)) else {
            throw SharedSignalsError("status is none of enabled, paused, disabled")
        }
        self.status = status
        switch json["reason"] {
        case nil: reason = nil
        case .string(let text)? where text.utf8.count <= Self.maximumReason: reason = text
        default:
            throw SharedSignalsError("reason is not text of at most \(Self.maximumReason) octets")
        }
    }
}

/// A request to add or remove a subject (section 8.1.3).
package struct SubjectRequest: Sendable, Hashable {
    package let streamID: String
    package let subject: SubjectIdentifier

    package init(streamID: String, subject: SubjectIdentifier) {
        (self.streamID, self.subject) = (streamID, subject)
    }

    package init(_ json: JSONObject) throws(SharedSignalsError) {
        streamID = try StreamRequest.streamID(json)
        guard case .object(let subject)? = json["subject"] else {
            throw SharedSignalsError("subject is missing")
        }
        self.subject = try SubjectIdentifier(subject)
        guard json["verified"] == nil || json["verified"]?.bool != nil else {
            throw SharedSignalsError("verified is neither true nor false")
        }
    }
}

/// A request to send a verification event (section 8.1.4.2).
package struct VerificationRequest: Sendable, Hashable {
    package let streamID: String
    package let state: String?

    package init(streamID: String, state: String?) {
        (self.streamID, self.state) = (streamID, state)
    }

    /// Octets of a state.
    package static let maximumState = 1_024

    package init(_ json: JSONObject) throws(SharedSignalsError) {
        streamID = try StreamRequest.streamID(json)
        switch json["state"] {
        case nil: state = nil
        case .string(let text)? where text.utf8.count <= Self.maximumState: state = text
        default:
            throw SharedSignalsError("state is not text of at most \(Self.maximumState) octets")
        }
    }
}
