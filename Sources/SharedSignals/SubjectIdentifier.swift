// Whom an event is about: Subject Identifiers (RFC 9493), and those that the Shared Signals Framework adds.

import JSON

/// What is wrong with a message of the Shared Signals Framework. Repeats nothing that was sent.
package struct SharedSignalsError: Error, Sendable, Hashable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// A Subject Identifier. Prints its format only: it may hold an address.
package struct SubjectIdentifier: Sendable, Hashable {
    /// What is known of it.
    package enum Subject: Sendable, Hashable {
        /// An address of mail, compared as it is written.
        case email(String)
        /// A subject as an issuer calls it.
        case issuerSubject(issuer: String, subject: String)
        case opaque(String)
        /// Several identifiers of one subject (RFC 9493 section 3.2.8).
        case aliases([SubjectIdentifier])
        /// Members that name a user, a device, a session … together (SSF 1.0 section 3.2).
        case complex([String: SubjectIdentifier])
        /// A format that means nothing to us; its members are kept.
        case other
    }

    package let format: String
    package let subject: Subject
    /// As it was written.
    package let json: JSONObject

    /// Identifiers in one, at most: an event has one subject, and who sends more means to be costly.
    private static let maximumIdentifiers = 16

    /// Reads one. Members that the format does not have are left alone.
    /// Throws for a `format` that is missing, and for a known format whose members are missing or are not text.
    package init(_ json: JSONObject) throws(SharedSignalsError) { try self.init(json, isOutermost: true) }

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
            guard isOutermost, case .array(let items)? = json["identifiers"], (1...Self.maximumIdentifiers).contains(items.count)
            else { throw SharedSignalsError("aliases are not a list of identifiers") }
            var identifiers: [SubjectIdentifier] = []
            for item in items {
                guard case .object(let object) = item else { throw SharedSignalsError("aliases are not a list of identifiers") }
                identifiers.append(try SubjectIdentifier(object, isOutermost: false))
            }
            subject = .aliases(identifiers)
        case "complex":
            guard isOutermost, json.members.count <= Self.maximumIdentifiers else {
                throw SharedSignalsError("a complex subject has too many members, or is within another one")
            }
            var members: [String: SubjectIdentifier] = [:]
            for member in json.members where member.name != "format" {
                guard case .object(let object) = member.value else {
                    throw SharedSignalsError("a member of a complex subject is not a subject")
                }
                // A member may have aliases.
                members[member.name] = try SubjectIdentifier(object, isOutermost: object["format"]?.string != "complex")
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

    /// A subject as an issuer calls it (RFC 9493 section 3.2.4).
    package static func issuerSubject(issuer: String, subject: String) -> SubjectIdentifier {
        SubjectIdentifier(
            .issuerSubject(issuer: issuer, subject: subject), format: "iss_sub",
            ["iss": .string(issuer), "sub": .string(subject)])
    }

    /// An address of mail (section 3.2.2).
    package static func email(_ address: String) -> SubjectIdentifier {
        SubjectIdentifier(.email(address), format: "email", ["email": .string(address)])
    }

    /// A name that means something to both sides alone (section 3.2.5).
    package static func opaque(_ id: String) -> SubjectIdentifier {
        SubjectIdentifier(.opaque(id), format: "opaque", ["id": .string(id)])
    }

    /// Those that may name a user: it by itself, its aliases, the user of a complex one.
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
