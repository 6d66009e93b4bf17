// The format of a seed file, and checks of its values.

import MailCrypto
import SignIn
import Support

/// A value of the file that is refused: its JSON pointer, and why.
struct SeedShape: Error {
    let pointer: String
    let message: String
}

/// The file as written.
struct SeedFile: Decodable {
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

    /// Checks values one by one; each error gives its pointer.
    struct Checker {
        func seed(_ file: SeedFile) throws -> AppleSeed {
            let teams = try file.teams.enumerated().map { index, team in
                try check(team.id, at: "/teams/\(index)/id")
                return AppleTeam(
                    id: team.id,
                    keys: try team.keys.enumerated().map {
                        try key($0.element, at: "/teams/\(index)/keys/\($0.offset)")
                    })
            }
            let clients = try file.teams.enumerated().flatMap { index, team in
                try team.clients.enumerated().map {
                    try client($0.element, team.id, at: "/teams/\(index)/clients/\($0.offset)")
                }
            }
            let users = try file.users.enumerated().map {
                try user($0.element, at: "/users/\($0.offset)")
            }
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
                guard key.privateKey == nil else {
                    throw shape(pointer, "has a public and a private part; one is enough")
                }
                let verification: VerificationKey
                do { verification = try VerificationKey(keyID: key.id, pem: pem) } catch {
                    throw shape(pointer + "/public_key", error.reason)
                }
                guard verification.algorithm == .es256 else {
                    throw shape(pointer + "/public_key", "is not a key on P-256")
                }
                return AppleClientKey(id: key.id, verificationKey: verification, privatePEM: nil)
            }
            do {
                let made =
                    try key.privateKey.map { try P256PrivateKey(pem: $0) }
                    ?? P256PrivateKey.generate()
                let info = String(
                    decoding: Base64.encodeUnbroken(made.publicKey.publicKeyInfo), as: UTF8.self)
                let verification = try VerificationKey(
                    keyID: key.id,
                    pem: "-----BEGIN PUBLIC KEY-----\n\(info)\n-----END PUBLIC KEY-----")
                return AppleClientKey(
                    id: key.id, verificationKey: verification, privatePEM: try made.pem())
            } catch {
                throw shape(pointer + "/private_key", "is not a private key on P-256 in PEM")
            }
        }

        private func client(
            _ client: Client, _ team: String, at pointer: String
        ) throws -> AppleClient {
            try check(client.id, at: pointer + "/id")
            for (index, uri) in (client.redirectUris ?? []).enumerated() {
                guard let origin = WebOrigin(uri), uri.hasNoControls, !uri.contains("#"),
                    uri.utf8.count <= 2048,
                    origin.description.hasPrefix("https:") || LoopbackAddress.isLoopback(uri)
                else {
                    throw shape(
                        "\(pointer)/redirect_uris/\(index)",
                        "must be an https address, or one of this machine")
                }
            }
            if let address = client.notifications, !LoopbackAddress.isLoopback(address) {
                throw shape(
                    pointer + "/notifications",
                    "must be an address of this machine: http://127.0.0.1:PORT/PATH")
            }
            try bound(client.redirectUris?.count, pointer + "/redirect_uris")
            return AppleClient(
                id: client.id, team: team, redirectURIs: client.redirectUris,
                notifications: client.notifications,
                dialect: try choice(client.dialect, pointer + "/dialect") ?? .wire)
        }

        private func user(_ user: User, at pointer: String) throws -> AppleUser {
            try check(user.id, at: pointer + "/id")
            guard user.email.contains("@"), user.email.hasNoControls,
                user.email.utf8.count <= AppleSeed.maximumLength
            else {
                throw shape(pointer + "/email", "is not a valid email address")
            }
            for (name, text) in [
                ("first_name", user.firstName ?? ""), ("last_name", user.lastName ?? ""),
            ] {
                guard text.hasNoControls, text.utf8.count <= AppleSeed.maximumLength else {
                    throw shape(
                        "\(pointer)/\(name)",
                        "must be at most \(AppleSeed.maximumLength) octets without control characters"
                    )
                }
            }
            let status = user.realUserStatus ?? 2
            guard (0...2).contains(status) else {
                throw shape(pointer + "/real_user_status", "must be 0, 1 or 2")
            }
            return AppleUser(
                id: user.id, email: user.email, firstName: user.firstName ?? "",
                lastName: user.lastName ?? "",
                hidesEmail: user.hideMyEmail ?? false, realUserStatus: status)
        }

        private func check(_ id: String, at pointer: String) throws {
            guard (1...AppleSeed.maximumLength).contains(id.utf8.count),
                id.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
            else {
                throw shape(
                    pointer,
                    "must be 1 to \(AppleSeed.maximumLength) printable ASCII characters without spaces"
                )
            }
        }

        private func bound(_ count: Int?, _ pointer: String) throws {
            guard (count ?? 0) <= AppleSeed.maximumCount else {
                throw shape(pointer, "has more than \(AppleSeed.maximumCount) items")
            }
        }

        private func different(_ ids: [String], _ pointer: String, _ what: String) throws {
            guard !ids.isEmpty || what == "key" else {
                throw shape(pointer, "there must be at least one \(what)")
            }
            try bound(ids.count, pointer)
            var seen: Set<String> = []
            for id in ids where !seen.insert(id).inserted {
                throw shape(pointer, "there are two of the \(what) \(id)")
            }
        }

        private func choice<Choice: RawRepresentable & CaseIterable>(
            _ text: String?, _ pointer: String
        ) throws -> Choice? where Choice.RawValue == String {
            guard let text else { return nil }
            guard let choice = Choice(rawValue: text) else {
                throw shape(
                    pointer,
                    "must be one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            return choice
        }

        private func shape(_ pointer: String, _ message: String) -> SeedShape {
            SeedShape(pointer: pointer, message: message)
        }
    }
}
