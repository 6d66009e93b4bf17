// Issuers and their last good keys, from the store.

import Database
import Logging

extension IssuerConfiguration {
    /// From the store's row. Unknown algorithms are left out.
    package init(_ issuer: Issuer) {
        let source: KeySource =
            switch issuer.source {
            case .uri: .uri(issuer.location, allowsHTTP: issuer.allowsHTTP)
            case .file: .file(issuer.location)
            case .inline: .inline(issuer.location)
            }
        self.init(
            name: issuer.name, issuer: issuer.iss, source: source,
            algorithms: Set(issuer.algorithms.compactMap(SignatureAlgorithm.init)),
            nonceForm: NonceForm(rawValue: issuer.nonceForm) ?? .raw, leeway: issuer.leeway)
    }
}

/// The issuers of the store, read at most once a second. While the store is unavailable, the
/// last ones read stay.
package actor StoredIssuers: IssuerDirectory {
    private let repository: IssuerRepository
    private let now: @Sendable () -> Int64
    private let logger: Logger
    private var issuers: [IssuerConfiguration]?
    private var readAt: Int64 = .min

    package init(
        _ repository: IssuerRepository, now: @escaping @Sendable () -> Int64, logger: Logger
    ) {
        self.repository = repository
        self.now = now
        self.logger = logger
    }

    package func issuer(_ iss: String) async throws -> IssuerConfiguration? {
        try await all().first { $0.issuer.hasSameOctets(as: iss) }
    }

    /// The issuer of this name.
    package func issuer(named name: String) async throws -> IssuerConfiguration? {
        try await all().first { $0.name == name }
    }

    /// All issuers. Throws the store's errors if they were never read.
    package func all() async throws -> [IssuerConfiguration] {
        let time = now()
        if let issuers, readAt == time { return issuers }
        do {
            let repository = repository
            let read = try await BlockingPool.issuers.run {
                try repository.issuers().map(IssuerConfiguration.init)
            }
            issuers = read
            readAt = time
            return read
        } catch {
            guard let issuers else { throw error }
            logger.warning(
                "issuers cannot be read, the old ones stay in force",
                metadata: ["detail": "\(error)"])
            readAt = time
            return issuers
        }
    }
}

/// Key sets in the store, so that a restart while an issuer is unavailable loses nothing.
package struct StoredKeySets: KeySetStorage {
    private let repository: IssuerRepository
    private let logger: Logger

    package init(_ repository: IssuerRepository, logger: Logger) {
        self.repository = repository
        self.logger = logger
    }

    package func load(_ issuer: IssuerConfiguration) async -> StoredKeySet? {
        // A file or an inline set is always available.
        guard case .uri(let location, _) = issuer.source else { return nil }
        do {
            let repository = repository
            let keys = try await BlockingPool.issuers.run {
                try repository.keys(of: issuer.name, location: location)
            }
            return keys.map {
                StoredKeySet(
                    document: $0.document, fetchedAt: $0.fetchedAt, freshUntil: $0.freshUntil)
            }
        } catch {
            warn(issuer, error)
            return nil
        }
    }

    package func save(_ keys: StoredKeySet, of issuer: IssuerConfiguration) async {
        guard case .uri(let location, _) = issuer.source else { return }
        do {
            let repository = repository
            try await BlockingPool.issuers.run {
                try repository.keep(
                    IssuerKeys(
                        document: keys.document, fetchedAt: keys.fetchedAt,
                        freshUntil: keys.freshUntil),
                    of: issuer.name, location: location)
            }
        } catch {
            warn(issuer, error)
        }
    }

    private func warn(_ issuer: IssuerConfiguration, _ error: any Error) {
        logger.warning(
            "issuer keys cannot be stored for a restart",
            metadata: ["issuer": "\(issuer.name)", "detail": "\(error)"])
    }
}
