// Signing keys: sealed in the database, so that all hosts of one relay sign with the same keys.

import Database
import MailAuth

/// Adds, activates and retires signing keys.
package struct DKIMKeyRepository: Sendable {
    /// Keys of one domain that are not retired: enough to rotate each algorithm, and some spare.
    package static let maximumPerDomain = 10
    /// Seconds for which a key should stay published after its last signature. Servers retry for
    /// five days, and reports about mail come days after that.
    package static let publicationAfterUse: Int64 = 14 * 86_400

    let database: any Database
    let sealer: Sealer
    let relayDomains: [HostName]

    /// Adds a key, pending or active. Refused for a domain that is not a relay domain, for a
    /// selector that the domain has or had, and for a second active key.
    package func add(
        domain: String, selector: String, algorithm: DKIMAlgorithm, bits: Int,
        privateKey: DKIMPrivateKey,
        isActive: Bool = false, _ change: Change
    ) throws(StoreFailure) -> DKIMKey {
        let domain = try checkedDomain(domain)
        let selector = try Self.checkedSelector(selector)
        return try database.write(.durable) { connection throws(StoreFailure) in
            let sealed = try sealer.seal(
                privateKey.pem, .dkimKey(domain: domain, selector: selector), connection)
            let count: Int? = try connection.value(
                "SELECT COUNT(*) FROM dkim_keys WHERE domain = \(domain) AND state <> 'retired'")
            guard count ?? 0 < Self.maximumPerDomain else {
                throw .refused(
                    .limit,
                    "\(domain) has \(Self.maximumPerDomain) keys, which is the maximum: retire one")
            }
            if isActive, try active(connection, domain, algorithm) != nil {
                throw .refused(.exists, "\(domain) already has an active \(algorithm.rawValue) key")
            }
            let state: DKIMKey.State = isActive ? .active : .pending
            let number: Int64? = try connection.value(
                """
                INSERT INTO dkim_keys
                    (domain, selector, algorithm, bits, private_key, private_sealed, state, created_at, activated_at, revision)
                VALUES (\(domain), \(selector), \(algorithm), \(bits), \(sealed.key), \(sealed.octets), \(state), \(change.now),
                    \(isActive ? change.now : nil), \(try nextRevision(connection)))
                ON CONFLICT (domain, selector) DO NOTHING RETURNING id
                """)
            guard let number else {
                throw .refused(
                    .exists,
                    "\(domain) has or had the selector \(selector): a selector is never used twice")
            }
            try connection.audit(
                change, "keys.dkim.generate", "dkim:\(selector)._domainkey.\(domain)",
                "\(algorithm.rawValue) \(bits)\(isActive ? " active" : "")")
            return try key(connection, number)
        }
    }

    /// All keys by domain, the newest first.
    package func keys() throws(StoreFailure) -> [DKIMKey] {
        try database.rows("\(Self.select) ORDER BY domain, id DESC").map(DKIMKey.init(row:))
    }

    /// The one key with this selector; with `domain`, at that domain. Throws `notFound`, or `unmet`
    /// if several domains have one.
    package func key(selector: String, domain: String?) throws(StoreFailure) -> DKIMKey {
        let selector = selector.lowercased()
        let domain = domain.map { HostName($0)?.text ?? $0.lowercased() }
        let found = try keys().filter {
            $0.selector == selector && (domain == nil || $0.domain == domain)
        }
        guard let key = found.first else {
            throw .refused(
                .notFound,
                "there is no key \(selector)\(domain.map { " of \($0)" } ?? ""): see postern keys dkim list"
            )
        }
        guard found.count == 1 else {
            throw .refused(
                .unmet,
                "\(found.map(\.domain).joined(separator: ", ")) each have a key \(selector): name one with --domain"
            )
        }
        return key
    }

    /// Makes a pending or retiring key the signing key; the previous one becomes retiring.
    /// Refused for a retired key.
    /// - Returns: the key after the change, and the key that it replaces.
    package func activate(
        _ number: Int64, _ change: Change
    ) throws(StoreFailure) -> (key: DKIMKey, replaced: DKIMKey?) {
        try database.write(.durable) { connection throws(StoreFailure) in
            let key = try key(connection, number)
            switch key.state {
            case .active: return (key, nil)
            case .retired:
                throw .refused(
                    .unmet,
                    "\(key.selector) is retired, and its private key is deleted: generate a new one"
                )
            case .pending, .retiring: break
            }
            let old = try active(connection, key.domain, key.algorithm)
            if let old {
                try connection.run(
                    """
                    UPDATE dkim_keys SET state = 'retiring', deactivated_at = \(change.now),
                        revision = \(try nextRevision(connection)) WHERE id = \(old.number)
                    """)
            }
            try connection.run(
                """
                UPDATE dkim_keys SET state = 'active', activated_at = \(change.now), deactivated_at = NULL,
                    revision = \(try nextRevision(connection)) WHERE id = \(number)
                """)
            try connection.audit(
                change, "keys.dkim.activate", "dkim:\(key.selector)._domainkey.\(key.domain)",
                old.map { "replaces \($0.selector)" } ?? "")
            return (
                try self.key(connection, number),
                try old.map { old throws(StoreFailure) in try self.key(connection, old.number) }
            )
        }
    }

    /// Retires a key and deletes its private part. Refused without `force` if the key is in use, or
    /// if mail that it signed may still be in transit.
    package func retire(
        _ number: Int64, force: Bool, _ change: Change
    ) throws(StoreFailure) -> DKIMKey {
        try database.write(.durable) { connection throws(StoreFailure) in
            let key = try key(connection, number)
            guard key.state != .retired else { return key }
            if key.state == .active, !force {
                throw .refused(
                    .unmet,
                    "\(key.selector) is the \(key.algorithm.rawValue) key that signs for \(key.domain): "
                        + "activate another first, or repeat with --force to stop signing with \(key.algorithm.rawValue)"
                )
            }
            if let end = key.deactivatedAt.map({ $0 + Self.publicationAfterUse }), end > change.now,
                !force
            {
                throw .refused(
                    .unmet,
                    "mail that \(key.selector) signed may still be in transit, and needs its record for another "
                        + "\((end - change.now + 86_399) / 86_400) days: wait, or repeat with --force"
                )
            }
            try connection.run(
                """
                UPDATE dkim_keys SET state = 'retired', private_key = NULL, private_sealed = NULL, retired_at = \(change.now),
                    revision = \(try nextRevision(connection)),
                    deactivated_at = COALESCE(deactivated_at, \(key.activatedAt == nil ? nil : change.now))
                WHERE id = \(number)
                """)
            try connection.audit(
                change, "keys.dkim.retire", "dkim:\(key.selector)._domainkey.\(key.domain)",
                "was \(key.state.rawValue)")
            return try self.key(connection, number)
        }
    }

    /// The private part of a key. Throws `unmet` for a retired one.
    package func privateKey(_ key: DKIMKey) throws(StoreFailure) -> DKIMPrivateKey {
        let row = try database.row(
            "SELECT private_key, private_sealed FROM dkim_keys WHERE id = \(key.number)")
        guard let row, let sealed = try SealedValue(row: row, "private") else {
            throw .refused(.unmet, "\(key.selector) is retired, and its key is deleted")
        }
        return try open(sealed, key)
    }

    /// Increases with every change; 0 before the first key. Cheap enough to read every second.
    package func revision() throws(StoreFailure) -> Int64 { try database.read(revision) }

    /// The keys that sign now, RSA before Ed25519 within a domain, and their revision.
    package func signingKeys() throws(StoreFailure) -> (
        revision: Int64, keys: [(key: DKIMKey, privateKey: DKIMPrivateKey)]
    ) {
        try database.read { connection throws(StoreFailure) in
            let rows = try connection.rows(
                """
                SELECT id, domain, selector, algorithm, bits, state, created_at, activated_at, deactivated_at, retired_at,
                    private_key, private_sealed
                FROM dkim_keys WHERE state = 'active' ORDER BY domain, algorithm DESC
                """)
            let keys = try rows.map { row throws(StoreFailure) in
                let key = try DKIMKey(row: row)
                guard let sealed = try SealedValue(row: row, "private") else {
                    throw .permanent(.unexpectedData, "an active signing key has no private part")
                }
                return (key, try open(sealed, key))
            }
            return (try revision(connection), keys)
        }
    }

    private func open(_ sealed: SealedValue, _ key: DKIMKey) throws(StoreFailure) -> DKIMPrivateKey
    {
        DKIMPrivateKey(
            pem: try sealer.openText(sealed, .dkimKey(domain: key.domain, selector: key.selector)))
    }

    private static let select: SQL = """
        SELECT id, domain, selector, algorithm, bits, state, created_at, activated_at, deactivated_at, retired_at FROM dkim_keys
        """

    private func key(
        _ connection: any DatabaseConnection, _ number: Int64
    ) throws(StoreFailure) -> DKIMKey {
        guard let row = try connection.row("\(Self.select) WHERE id = \(number)") else {
            throw .refused(.notFound, "there is no such key: see postern keys dkim list")
        }
        return try DKIMKey(row: row)
    }

    private func active(
        _ connection: any DatabaseConnection, _ domain: String, _ algorithm: DKIMAlgorithm
    ) throws(StoreFailure) -> DKIMKey? {
        try connection.row(
            "\(Self.select) WHERE domain = \(domain) AND algorithm = \(algorithm) AND state = 'active'"
        ).map(DKIMKey.init(row:))
    }

    private func revision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        try connection.value("SELECT MAX(revision) FROM dkim_keys") ?? 0
    }

    private func nextRevision(_ connection: any DatabaseConnection) throws(StoreFailure) -> Int64 {
        try revision(connection) + 1
    }

    private func checkedDomain(_ text: String) throws(StoreFailure) -> String {
        guard let domain = HostName(text), relayDomains.contains(domain) else {
            throw .refused(
                .invalid,
                "\(text) is not a relay domain of this installation: only relay domains sign what the relay sends"
            )
        }
        return domain.text
    }

    /// Labels of letters, digits and inner hyphens (RFC 6376 section 3.1); 63 octets in all
    /// leave room for the domain.
    private static func checkedSelector(_ text: String) throws(StoreFailure) -> String {
        let selector = text.lowercased()
        let labels = selector.utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let hyphen = UInt8(ascii: "-")
        let isValid = labels.allSatisfy { label in
            !label.isEmpty && label.first != hyphen && label.last != hyphen
                && label.allSatisfy {
                    ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39) || $0 == hyphen
                }
        }
        guard isValid, selector.utf8.count <= 63 else {
            throw .refused(
                .invalid,
                "a selector must be at most 63 letters, digits, hyphens and dots, as in rsa202611")
        }
        return selector
    }
}

extension DKIMKey {
    /// From the columns of `DKIMKeyRepository.select`.
    fileprivate init(row: SQLRow) throws(StoreFailure) {
        try self.init(
            number: row["id"], domain: row["domain"], selector: row["selector"],
            algorithm: row["algorithm"], bits: row["bits"],
            state: row["state"], createdAt: row["created_at"], activatedAt: row["activated_at"],
            deactivatedAt: row["deactivated_at"], retiredAt: row["retired_at"])
    }
}
