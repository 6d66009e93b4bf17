// Server-to-server notifications: a test's order, its effect, and the payload in either dialect.

import Support

/// A notification as posted.
package struct AppleNotification: Sendable {
    package let clientID: String
    /// The destination; nil if the seed names no address.
    package let address: String?
    package let type: String
    /// `jti`.
    package let id: String
    /// The JWS.
    package let payload: String

    /// The body of the request.
    package var body: [UInt8] { JSONValue.object(["payload": .string(payload)]).octets }
}

/// A notification that a test requests.
package struct AppleEventOrder: Sendable {
    package let client: AppleClient
    package let user: AppleUser
    /// One of `AppleEventOrder.types`, or another word, which a receiver
    /// must acknowledge and ignore.
    package let type: String
    /// Nil for the client's dialect.
    package let dialect: AppleEventDialect?
    /// Nil for strings, as in captured notifications.
    package let booleans: AppleBooleans?

    /// The known kinds. `account-delete` is the older name of `account-deleted`.
    package static let types = [
        "email-disabled", "email-enabled", "consent-revoked", "account-deleted", "account-delete",
    ]

    package init(
        client: AppleClient, user: AppleUser, type: String, dialect: AppleEventDialect? = nil,
        booleans: AppleBooleans? = nil
    ) {
        self.client = client
        self.user = user
        self.type = type
        self.dialect = dialect
        self.booleans = booleans
    }
}

extension AppleState {
    /// Applies the event, and makes its notification.
    package mutating func event(
        _ order: AppleEventOrder, failure: AppleFailure?, now: Int64
    ) throws -> AppleNotification {
        if failure == .replay, let last = lastEvents[order.client.id] { return last }
        let (client, user) = (order.client, order.user)
        let team = team(of: client)?.id ?? client.team
        let consent = consents[ClientUser(clientID: client.id, userID: user.id)]
        let dialect = order.dialect ?? client.dialect
        var event: JSONObject = [
            "type": .string(order.type), "sub": .string(Self.subject(user.id, team: team)),
        ]
        if order.type.hasPrefix("email-") {
            event["email"] = .string(consent?.email ?? Self.privateEmail(user.id, team: team))
            let isPrivate = consent?.email == nil || consent?.isPrivate == true
            event["is_private_email"] =
                order.booleans == .boolean
                ? .bool(isPrivate) : .string(isPrivate ? "true" : "false")
        }
        event["event_time"] = .integer(dialect == .wire ? now * 1_000 : now)
        let id = unique("e")
        let claims: JSONObject = [
            "iss": .string(issuer), "aud": .string(client.id), "iat": .integer(now),
            "jti": .string(id),
            "events": dialect == .wire ? .string(JSONValue.object(event).text) : .object(event),
        ]
        let notification = AppleNotification(
            clientID: client.id, address: client.notifications, type: order.type, id: id,
            payload: try sign(claims, failure: failure))
        apply(order)
        lastEvents[client.id] = notification
        return notification
    }

    private mutating func apply(_ order: AppleEventOrder) {
        switch order.type {
        case "consent-revoked": _ = endConsent(order.client.id, order.user.id, .byUser)
        case "account-deleted", "account-delete":
            for client in seed.clients { _ = endConsent(client.id, order.user.id, .accountDeleted) }
            deletedUsers.insert(order.user.id)
        default: break
        }
    }
}
