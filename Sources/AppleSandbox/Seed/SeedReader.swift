// YAML → seed. What is wrong is named with its line and its path.

import JSON
import MailCrypto
import RiskPolicy
import SignIn
import Support
import Yams

/// A seed that is not accepted.
package struct AppleSeedFault: Error, Sendable, CustomStringConvertible {
    package let file: String
    /// From 1.
    package let line: Int
    package let message: String
    package var description: String { "\(file):\(line): \(message)" }
}

extension AppleSeed {
    /// Most teams, clients, keys of a team, redirect URIs of a client, and users: a page still shows them all.
    package static let maximumCount = 100
    /// Octets of an id or a name.
    static let maximumLength = 255

    /// The seed that is part of the program.
    package static func standard() throws -> AppleSeed {
        try read(String(decoding: PackageResources.seed_yaml, as: UTF8.self), name: "seed.yaml")
    }

    /// The text of the seed that is part of the program: a pattern for one's own.
    package static var standardText: String { String(decoding: PackageResources.seed_yaml, as: UTF8.self) }

    /// Reads a seed. Keys without a public or private part are generated, which draws from the process's random generator.
    /// Throws `AppleSeedFault`.
    /// - Parameter name: of the file, for errors.
    package static func read(_ text: String, name: String) throws -> AppleSeed {
        var document = SeedDocument()
        let root: Node?
        do { root = try BoundedYAML.root(text) } catch {
            throw AppleSeedFault(file: name, line: error.line, message: error.message)
        }
        guard let root else { throw document.fault(name, "", "the seed is empty") }
        document.root = document.value(root, at: "")
        do {
            return try SeedFile.Checker(document: document).seed(try StrictDecoder.decode(SeedFile.self, from: document.root))
        } catch let error as JSONShapeError {
            throw document.fault(name, error.pointer, error.message)
        } catch let error as SeedShape {
            throw document.fault(name, error.pointer, error.message)
        }
    }
}

/// A value that is not accepted, by its pointer.
private struct SeedShape: Error {
    let pointer: String
    let message: String
}

/// A YAML document as a JSON value, with the line of each pointer.
private struct SeedDocument {
    var root = JSONValue.null
    var lines: [String: Int] = [:]

    mutating func value(_ node: Node, at pointer: String) -> JSONValue {
        lines[pointer] = node.mark?.line
        switch node {
        case .scalar(let scalar):
            guard scalar.style == .plain || scalar.style == .any else { return .string(scalar.string) }
            switch scalar.string {
            case "", "~", "null": return .null
            case "true": return .bool(true)
            case "false": return .bool(false)
            default:
                // An id of digits with zeros in front, as Apple's are now and then, is a text.
                if let number = Int64(scalar.string), "\(number)" == scalar.string { return .integer(number) }
                return .string(scalar.string)
            }
        case .sequence(let items):
            return .array(items.enumerated().map { value($0.element, at: "\(pointer)/\($0.offset)") })
        case .mapping(let mapping):
            var object: JSONObject = [:]
            for (key, inner) in mapping {
                let name = key.string ?? ""
                object[name] = value(inner, at: "\(pointer)/\(StrictDecoder.escaped(name))")
            }
            return .object(object)
        case .alias: return .null
        }
    }

    /// The line of a pointer, or of the nearest thing around it.
    func fault(_ file: String, _ pointer: String, _ message: String) -> AppleSeedFault {
        var place = pointer[...]
        while lines[String(place)] == nil, let slash = place.lastIndex(of: "/") { place = place[..<slash] }
        let path = pointer.dropFirst().replacing("/", with: ".")
        return AppleSeedFault(
            file: file, line: lines[String(place)] ?? 1, message: path.isEmpty ? message : "\(path): \(message)")
    }
}

/// The file as it is written.
private struct SeedFile: Decodable {
    struct Team: Decodable {
        let id: String
        let keys: [Key]
        let clients: [Client]
    }

    struct Key: Decodable {
        let id: String
        let publicKey: String?
        let privateKey: String?
    }

    struct Client: Decodable {
        let id: String
        let redirectUris: [String]?
        let notifications: String?
        let dialect: String?
    }

    struct User: Decodable {
        let id: String
        let email: String
        let firstName: String?
        let lastName: String?
        let hideMyEmail: Bool?
        let realUserStatus: Int?
    }

    let issuer: String?
    let booleans: String?
    let idTokenLifetime: Int?
    let teams: [Team]
    let users: [User]

    /// Checks values one by one; each error names its pointer.
    struct Checker {
        let document: SeedDocument

        func seed(_ file: SeedFile) throws -> AppleSeed {
            let teams = try file.teams.enumerated().map { index, team in
                try check(team.id, at: "/teams/\(index)/id")
                return AppleTeam(
                    id: team.id,
                    keys: try team.keys.enumerated().map { try key($0.element, at: "/teams/\(index)/keys/\($0.offset)") })
            }
            let clients = try file.teams.enumerated().flatMap { index, team in
                try team.clients.enumerated().map {
                    try client($0.element, team.id, at: "/teams/\(index)/clients/\($0.offset)")
                }
            }
            let users = try file.users.enumerated().map { try user($0.element, at: "/users/\($0.offset)") }
            try different(teams.map(\.id), "/teams", "team")
            try different(teams.flatMap { $0.keys.map(\.id) }, "/teams", "key")
            try different(clients.map(\.id), "/teams", "client")
            try different(users.map(\.id), "/users", "user")
            let lifetime = Int64(file.idTokenLifetime ?? Int(AppleSeed.standardLifetime))
            guard (1...31_536_000).contains(lifetime) else {
                throw shape("/id_token_lifetime", "must be 1 to 31536000 seconds")
            }
            let issuer = file.issuer ?? AppleSeed.standardIssuer
            guard issuer == "self" || WebOrigin(issuer) != nil else {
                throw shape("/issuer", "must be an https address, or self for the sandbox's own")
            }
            return AppleSeed(
                issuer: issuer == "self" ? nil : issuer,
                booleans: try choice(file.booleans, "/booleans") ?? .boolean,
                identityTokenLifetime: lifetime, teams: teams, clients: clients, users: users)
        }

        private func key(_ key: Key, at pointer: String) throws -> AppleClientKey {
            try check(key.id, at: pointer + "/id")
            if let pem = key.publicKey {
                guard key.privateKey == nil else { throw shape(pointer, "has a public and a private part; one is enough") }
                let verification: VerificationKey
                do { verification = try VerificationKey(keyID: key.id, pem: pem) } catch {
                    throw shape(pointer + "/public_key", error.reason)
                }
                guard verification.algorithm == .es256 else { throw shape(pointer + "/public_key", "is not a key on P-256") }
                return AppleClientKey(id: key.id, verificationKey: verification, privatePEM: nil)
            }
            do {
                let made = try key.privateKey.map { try P256PrivateKey(pem: $0) } ?? P256PrivateKey.generate()
                let info = String(decoding: Base64.encodeUnbroken(made.publicKey.publicKeyInfo), as: UTF8.self)
                let verification = try VerificationKey(
                    keyID: key.id, pem: "-----BEGIN PUBLIC KEY-----\n\(info)\n-----END PUBLIC KEY-----")
                return AppleClientKey(id: key.id, verificationKey: verification, privatePEM: try made.pem())
            } catch {
                throw shape(pointer + "/private_key", "is not a private key on P-256 in PEM")
            }
        }

        private func client(_ client: Client, _ team: String, at pointer: String) throws -> AppleClient {
            try check(client.id, at: pointer + "/id")
            for (index, uri) in (client.redirectUris ?? []).enumerated() {
                guard let origin = WebOrigin(uri), uri.hasNoControls, !uri.contains("#"), uri.utf8.count <= 2048,
                    origin.description.hasPrefix("https:") || LoopbackAddress.isLoopback(uri)
                else {
                    throw shape("\(pointer)/redirect_uris/\(index)", "must be an https address, or one of this machine")
                }
            }
            if let address = client.notifications, !LoopbackAddress.isLoopback(address) {
                throw shape(pointer + "/notifications", "must be an address of this machine: http://127.0.0.1:PORT/PATH")
            }
            try bound(client.redirectUris?.count, pointer + "/redirect_uris")
            return AppleClient(
                id: client.id, team: team, redirectURIs: client.redirectUris, notifications: client.notifications,
                dialect: try choice(client.dialect, pointer + "/dialect") ?? .wire)
        }

        private func user(_ user: User, at pointer: String) throws -> AppleUser {
            try check(user.id, at: pointer + "/id")
            guard user.email.contains("@"), user.email.hasNoControls, user.email.utf8.count <= AppleSeed.maximumLength else {
                throw shape(pointer + "/email", "is not a valid email address")
            }
            for (name, text) in [("first_name", user.firstName ?? ""), ("last_name", user.lastName ?? "")] {
                guard text.hasNoControls, text.utf8.count <= AppleSeed.maximumLength else {
                    throw shape(
                        "\(pointer)/\(name)", "must be at most \(AppleSeed.maximumLength) octets without control characters")
                }
            }
            let status = user.realUserStatus ?? 2
            guard (0...2).contains(status) else { throw shape(pointer + "/real_user_status", "must be 0, 1 or 2") }
            return AppleUser(
                id: user.id, email: user.email, firstName: user.firstName ?? "", lastName: user.lastName ?? "",
                hidesEmail: user.hideMyEmail ?? false, realUserStatus: status)
        }

        private func check(_ id: String, at pointer: String) throws {
            guard (1...AppleSeed.maximumLength).contains(id.utf8.count), id.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw shape(pointer, "must be 1 to \(AppleSeed.maximumLength) printable ASCII characters without spaces")
            }
        }

        private func bound(_ count: Int?, _ pointer: String) throws {
            guard (count ?? 0) <= AppleSeed.maximumCount else {
                throw shape(pointer, "has more than \(AppleSeed.maximumCount) items")
            }
        }

        private func different(_ ids: [String], _ pointer: String, _ what: String) throws {
            guard !ids.isEmpty || what == "key" else { throw shape(pointer, "there must be at least one \(what)") }
            try bound(ids.count, pointer)
            var seen: Set<String> = []
            for id in ids where !seen.insert(id).inserted { throw shape(pointer, "there are two of the \(what) \(id)") }
        }

        private func choice<Choice: RawRepresentable & CaseIterable>(
            _ text: String?, _ pointer: String
        ) throws -> Choice? where Choice.RawValue == String {
            guard let text else { return nil }
            guard let choice = Choice(rawValue: text) else {
                throw shape(pointer, "must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            return choice
        }

        private func shape(_ pointer: String, _ message: String) -> SeedShape { SeedShape(pointer: pointer, message: message) }
    }
}

/// Addresses of this machine.
package enum LoopbackAddress {
    /// Whether an http or https address has a host of 127.0.0.0/8, `[::1]` or `localhost`, and nothing before it.
    package static func isLoopback(_ address: String) -> Bool {
        guard address.utf8.count <= 2048, address.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !address.contains("\\"),
            let origin = WebOrigin(address)?.description, let mark = origin.firstRange(of: "://")
        else { return false }
        let authority = origin[mark.upperBound...]
        if authority == "[::1]" || authority.hasPrefix("[::1]:") { return true }
        let host = authority.prefix { $0 != ":" }
        if host == "localhost" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.allSatisfy { $0 != nil } && numbers[0] == 127
    }
}
