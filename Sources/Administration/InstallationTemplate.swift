// Creates a new installation: the folder, postern.yaml with every key explained,
// the keys, the database.

import Accounts
import Database
import Decisions
import Foundation
import MailCrypto
import PosternConfiguration
import Relay

extension Installation {
    /// Names of the files in a data folder.
    private static let configurationName = "postern.yaml"
    private static let keyName = "postern.keys"
    private static let databaseName = "postern.db"

    /// Creates a data folder (mode 0700) with configuration, keys (0600) and an empty database. It
    /// overwrites nothing, and deletes what it created if a later step fails. Each relay domain
    /// gets an RSA key that signs at once.
    /// - Parameter set: `key=value` texts, as from `--set`, for the new file.
    /// - Returns: the path of the configuration.
    package static func create(
        directory: String, relayDomains: [String], operatorAddress: String? = nil,
        database url: String? = nil,
        set: [String] = [],
        change: Change
    ) throws -> String {
        let folder =
            directory.hasPrefix("/")
            ? directory : FileManager.default.currentDirectoryPath + "/" + directory
        func path(_ name: String) -> String { (folder as NSString).appendingPathComponent(name) }
        let values = try ResolvedConfiguration.flagValues(set)
        if let key = [ConfigurationKey.relayDomains, .database, .keyFile].first(where: {
            values[$0] != nil
        }) {
            throw ConfigurationError(
                .invalidValue, at: "--set",
                "\(key.rawValue) cannot be set while an installation is created: see postern help init"
            )
        }
        let text = configurationText(
            relayDomains: relayDomains, operatorAddress: operatorAddress, database: url, set: values
        )
        // Checks the input before it creates anything.
        let configuration = try Configuration(
            ResolvedConfiguration(
                file: ConfigurationFile(text: text, name: configurationName),
                path: path(configurationName), environment: [:],
                flags: [], machineName: ""))
        for name in [configurationName, keyName, databaseName]
        where FileManager.default.fileExists(atPath: path(name)) {
            let parts = [keyName, databaseName].filter {
                FileManager.default.fileExists(atPath: path($0))
            }
            let isWhole = FileManager.default.fileExists(atPath: path(configurationName))
            throw ConfigurationError(
                .exists, at: path(name),
                isWhole
                    ? "the folder contains an installation: choose another folder; nothing was changed"
                    : "the folder contains \(parts.joined(separator: " and ")) without \(configurationName), as postern init leaves "
                        + "it that was ended before its end: remove them if no other postern.yaml uses them, and run it again; nothing was changed"
            )
        }
        let isServer = configuration.database.path == nil
        // Checked before anything is created: an existing installation already has keys, and needs
        // them.
        if isServer { try refuseInstallation(on: configuration.database) }
        let isNewFolder = !FileManager.default.fileExists(atPath: folder)
        var made: [String] = []
        do {
            if isNewFolder {
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700])
                made.append(folder)
                try OwnedFile.adopt(folder: folder)
            }
            guard let keys = KeyRing(random: try SecureRandom.bytes(count: 3 * KeyRing.keyLength))
            else {
                throw ConfigurationError(
                    .keyFile, at: path(keyName), "random numbers are unavailable")
            }
            try KeyFile.create(path: path(keyName), text: keys.fileText)
            made.append(path(keyName))
            if !isServer { made += ["", "-wal", "-shm"].map { path(databaseName) + $0 } }
            let database = try configuration.database.open(creating: true)
            _ = try Migrator().migrate(database, now: change.now)
            try Store.checkKeys(keys, of: database)
            let store = Store(
                database: database, keys: keys, relayDomains: configuration.relayDomains)
            for domain in configuration.relayDomains {
                // Active before its record is published: a signature with an unknown key is not
                // worse than no signature (RFC 6376 section 6.1).
                _ = try DKIMKeyMaker.generate(
                    store, domain: domain, algorithm: .rsa, isActive: true, change)
            }
            try ActivePolicies.installBuiltIn(store.policies, change)
            try database.close()
            try KeyFile.create(path: path(configurationName), text: text)
            return path(configurationName)
        } catch {
            for item in made.reversed() { try? FileManager.default.removeItem(atPath: item) }
            if error is ConfigurationError || error is StoreFailure { throw error }
            throw ConfigurationError(
                .inputOutput, at: folder,
                "the folder cannot be created: check its parent's permissions")
        }
    }

    /// Throws `ConfigurationError` (`exists`) if a database belongs to an installation.
    private static func refuseInstallation(on location: DatabaseLocation) throws {
        let database = try location.open()
        defer { try? database.close() }
        guard try Migrator().isBegun(database) else {
            let others: Int64 =
                try database.value(
                    """
                    SELECT COUNT(*) FROM information_schema.tables
                    WHERE table_schema = current_schema() AND table_name <> 'schema_migrations'
                    """) ?? 0
            guard others == 0 else {
                throw ConfigurationError(
                    .exists, at: "\(location)",
                    "this database has tables of another program: make an empty one; nothing was changed"
                )
            }
            return
        }
        // A database without keys is from an interrupted creation, which this run continues.
        guard try Store.hasKeys(database) else { return }
        throw ConfigurationError(
            .exists, at: "\(location)",
            "this database contains an installation: for a further host, copy postern.yaml and postern.keys from the first"
        )
    }

    /// The text of postern.yaml with every key: given values are set, and the other keys are
    /// comments with default and reason.
    package static func configurationText(
        relayDomains: [String], operatorAddress: String?, database: String? = nil,
        set: [ConfigurationKey: String] = [:]
    ) -> String {
        var text = """
            # Postern's configuration. Every key is here; commented ones show their default.
            # A variable or flag overrides the file: POSTERN_LIMITS_HOPS=30, or --set limits.hops=30.
            # `postern config show` prints what is in force and where it comes from.


            """
        var section = ""
        for key in ConfigurationKey.allCases {
            let (facts, name) = (key.facts, key.place.name)
            if let inner = key.place.section, inner != section {
                section = inner
                text += "\(section):\n"
            }
            let indent = key.place.section == nil ? "" : "  "
            text += "\(indent)# \(facts.reason)\n"
            if let beyond = facts.beyond { text += "\(indent)# Beyond it: \(beyond).\n" }
            switch key {
            case .relayDomains:
                text += "\(name): [\(relayDomains.map(quoted).joined(separator: ", "))]\n"
            case .operatorAddress where operatorAddress != nil:
                text += "\(name): \(quoted(operatorAddress ?? ""))\n"
            case .database where database != nil: text += "\(name): \(quoted(database ?? ""))\n"
            case _ where set[key] != nil: text += "\(indent)\(name): \(quoted(set[key] ?? ""))\n"
            default: text += "\(indent)# \(name): \(facts.standardText)\n"
            }
            text += "\n"
        }
        return text
    }

    private static func quoted(_ text: String) -> String {
        "\""
            + text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(
                of: "\"", with: "\\\"") + "\""
    }
}
