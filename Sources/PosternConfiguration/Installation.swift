// An installation: configuration, keys and store. Every command opens them in the same way.

import Accounts
import Database
import Foundation
import MailCrypto
import PosternPostgres

/// The data folder of a running system, opened.
package struct Installation: Sendable {
    package let configuration: Configuration
    package let resolved: ResolvedConfiguration
    /// The keys in force; see `KeyFileService` for their rotation.
    package var keys: KeyRing { store.keys.current }
    package let store: Store
    /// Reads at the standby that `database_replica` names; nil if it names none.
    package let replica: ReplicaDatabase?
    /// Listings, at the standby if there is one. Only what decides nothing gets it.
    package let listings: ListingStore

    /// A key of 32 octets for a purpose that has no key of its own in the key file. Throws as
    /// libcrypto does.
    package func derivedKey(_ purpose: String) throws -> [UInt8] {
        try HKDFSHA256.derive(key: keys.marks.active.secret, info: Array(purpose.utf8), length: 32)
    }

    /// Reads only the configuration: for `config show`, and for a reload.
    package static func configuration(
        flag: String?, environment: [String: String], set: [String] = []
    ) throws -> (Configuration, ResolvedConfiguration) {
        let path = ResolvedConfiguration.locate(flag: flag, environment: environment)
        let resolved = try ResolvedConfiguration(
            path: path, environment: environment, flags: set,
            machineName: ProcessInfo.processInfo.hostName)
        return (try Configuration(resolved), resolved)
    }

    /// Opens everything, and applies missing migrations to the database.
    /// - Parameters:
    ///   - flag: the file that `--config` named.
    ///   - set: `key=value` texts, which override file and environment.
    ///   - now: seconds since 1970.
    /// Throws `ConfigurationError` or `StoreFailure`.
    package static func open(
        flag: String?, environment: [String: String], set: [String] = [], now: Int64
    ) throws -> Installation {
        let (configuration, resolved) = try configuration(
            flag: flag, environment: environment, set: set)
        let keys = try KeyFile.read(path: configuration.keyFilePath)
        let database = try configuration.database.open()
        try Migrator().requireBegun(database)
        _ = try Migrator().migrate(database, now: now)
        try Store.checkKeys(keys, of: database)
        let installation = Installation(
            configuration: configuration, resolved: resolved, keys: KeyHolder(keys),
            database: database, replica: configuration.replica?.replica(of: database))
        try installation.configureIssuers(now: now)
        return installation
    }

    /// An installation with the same database and keys and the configuration as read again: for a
    /// reload. Throws `ConfigurationError` or `StoreFailure`.
    package func reread(
        flag: String?, environment: [String: String], set: [String], now: Int64
    ) throws -> Installation {
        let (configuration, resolved) = try Self.configuration(
            flag: flag, environment: environment, set: set)
        let installation = Installation(
            configuration: configuration, resolved: resolved, keys: store.keys,
            database: store.database, replica: replica)
        if let lost = try Self.lostDomains(configuration, store.addresses) {
            throw ConfigurationError(.invalidValue, at: resolved.path, lost)
        }
        try installation.configureIssuers(now: now)
        return installation
    }

    /// Throws `ConfigurationError` if relay addresses are at a domain that the configuration does
    /// not name, because their mail would stop. Called at the start of the service.
    package func requireRelayDomains() throws {
        guard let lost = try Self.lostDomains(configuration, store.addresses) else { return }
        throw ConfigurationError(.invalidValue, at: resolved.path, lost)
    }

    /// The error in the relay domains of a configuration, compared with the addresses of the store;
    /// nil if there is none.
    package static func lostDomains(
        _ configuration: Configuration, _ addresses: AddressRepository
    ) throws(StoreFailure) -> String? {
        let named = configuration.relayDomains + configuration.formerRelayDomains
        let lost = try addresses.domains().filter { found in
            !named.contains { $0.hasSameOctets(as: found.domain) }
        }
        guard let first = lost.first else { return nil }
        let all = lost.map { "\($0.domain) (\($0.addresses))" }.joined(separator: ", ")
        return
            "relay_domains does not have \(all), but relay addresses are there: their mail would wait in Postfix. Add \(first.domain) to relay_domains, or, to give it up, to former_relay_domains"
    }

    /// Updates the store's issuers to those of the configuration.
    private func configureIssuers(now: Int64) throws {
        do {
            try store.issuers.configure(
                configuration.issuers, Change(actor: "postern.yaml", now: now))
        } catch {
            guard error.isRefusal else { throw error }
            throw ConfigurationError(.invalidValue, at: resolved.path, "issuers: \(error.message)")
        }
    }

    private init(
        configuration: Configuration, resolved: ResolvedConfiguration, keys: KeyHolder,
        database: any Database, replica: ReplicaDatabase? = nil
    ) {
        self.configuration = configuration
        self.resolved = resolved
        self.replica = replica
        listings = ListingStore(database: replica ?? database)
        store = Store(
            database: database, keys: keys, relayDomains: configuration.relayDomains,
            providers: configuration.providers,
            addressLength: configuration.addressLength, sessions: configuration.provider.sessions)
    }

    /// Runs `body` on a store with all data of this one; its changes are discarded afterwards.
    package func rehearse<T>(_ body: (Store) throws -> T) throws -> T {
        try store.database.rehearse { database in
            let rehearsed = Installation(
                configuration: configuration, resolved: resolved, keys: store.keys,
                database: database)
            return Result { try body(rehearsed.store) }
        }.get()
    }

    /// Ends the connections to the database.
    package func close() throws {
        try replica?.close()
        try store.database.close()
    }
}
