// The subject of an event: Subject Identifiers (RFC 9493), and those that the Shared
// Signals Framework adds.

import Support

/// An error in a message of the Shared Signals Framework. The text repeats nothing of the message.
package struct SharedSignalsError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A Subject Identifier. Prints only its format, because it may contain an address.
package struct SubjectIdentifier: Sendable, Hashable {
    /// The known part of a subject.
    package enum Subject: Sendable, Hashable {
        /// An email address, compared as it is written.
        case email(String)
        /// A subject as named by an issuer.
        case issuerSubject(issuer: String, subject: String)
        case opaque(String)
        /// Several identifiers of one subject (RFC 9493 section 3.2.8).
        case aliases([SubjectIdentifier])
        /// Members that together name a user, a device, a session … (SSF 1.0 section 3.2).
        case complex([String: SubjectIdentifier])
        /// An unknown format; its members are kept.
        case other
    }

    package let format: String
    package let subject: Subject
    /// The identifier as it was sent.
    package let json: JSONObject

    /// Maximum number of identifiers in one: an event has one subject, and
    /// more would only be costly.
    private static let maximumIdentifiers = 16

    /// Parses a Subject Identifier. Members that the format does not have are ignored. Throws for a
    /// missing `format`, and for a known format whose members are missing or are not text.
    package init(_ json: JSONObject) throws(SharedSignalsError) {
        try self.init(json, isOutermost: true)
    }

    private init(_ json: JSONObject, isOutermost: Bool) throws(SharedSignalsError) {
        guard case .string(let format)? = json["format"], !format.isEmpty else {
            throw SharedSignalsError("a subject has no format")
        }
        func text(_ name: String) throws(SharedSignalsError) -> String {
            guard case .string(let text)? = json[name], !text.isEmpty else {
                throw SharedSignalsError("a subject of format \(format) has no \(name)")
            }
            return text
        }
        switch format {
        case "email": subject = .email(try text("email"))
        case "iss_sub": subject = .issuerSubject(issuer: try text("iss"), subject: try text("sub"))
        case "opaque": subject = .opaque(try text("id"))
        case "account", "uri":
            _ = try text("uri")
            subject = .other
        case "phone_number":
            _ = try text("phone_number")
            subject = .other
        case "did":
            _ = try text("url")
            subject = .other
        case "aliases":
            guard isOutermost, case .array(let items)? = json["identifiers"],
                (1...Self.maximumIdentifiers).contains(items.count)
            else { throw SharedSignalsError("aliases are not a list of identifiers") }
            var identifiers: [SubjectIdentifier] = []
            for item in items {
                guard case .object(let object) = item else {
                    throw SharedSignalsError("aliases are not a list of identifiers")
                }
                identifiers.append(try SubjectIdentifier(object, isOutermost: false))
            }
            subject = .aliases(identifiers)
        case "complex":
            guard isOutermost, json.members.count <= Self.maximumIdentifiers else {
                throw SharedSignalsError(
                    "a complex subject has too many members, or is within another one")
            }
            var members: [String: SubjectIdentifier] = [:]
            for member in json.members where member.name != "format" {
                guard case .object(let object) = member.value else {
                    throw SharedSignalsError("a member of a complex subject is not a subject")
                }
                // A member may have aliases.
                members[member.name] = try SubjectIdentifier(
                    object, isOutermost: object["format"]?.string != "complex")
            }
            guard !members.isEmpty else { throw SharedSignalsError("a complex subject is empty") }
            subject = .complex(members)
        default: subject = .other
        }
        (self.format, self.json) = (format, json)
    }

    private init(_ subject: Subject, format: String, _ members: JSONObject) {
        var json: JSONObject = ["format": .string(format)]
        for member in members.members { json[member.name] = member.value }
        (self.subject, self.format, self.json) = (subject, format, json)
    }

    /// A subject as named by an issuer (RFC 9493 section 3.2.4).
    package static func issuerSubject(issuer: String, subject: String) -> SubjectIdentifier {
        SubjectIdentifier(
            .issuerSubject(issuer: issuer, subject: subject), format: "iss_sub",
            ["iss": .string(issuer), "sub": .string(subject)])
    }

    /// An email address (section 3.2.2).
    package static func email(_ address: String) -> SubjectIdentifier {
        SubjectIdentifier(.email(address), format: "email", ["email": .string(address)])
    }

    /// A name that only both sides understand (section 3.2.5).
    package static func opaque(_ id: String) -> SubjectIdentifier {
        SubjectIdentifier(.opaque(id), format: "opaque", ["id": .string(id)])
    }

    /// Identifiers that may name a user: this one, its aliases, or the user of a complex one.
    package var ofUser: [SubjectIdentifier] {
        switch subject {
        case .aliases(let identifiers): identifiers
        case .complex(let members): members["user"]?.ofUser ?? []
        default: [self]
        }
    }
}

extension SubjectIdentifier: CustomStringConvertible, CustomReflectable {
    package var description: String { "<subject: \(format)>" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
