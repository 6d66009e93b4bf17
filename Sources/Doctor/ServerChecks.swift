// Checks of the settings of a PostgreSQL server: whether it keeps what it confirmed, and has room
// for the locks and connections of all hosts. The facts are gathered before, so that each case can
// be tested.

import Accounts
import Database
import Monitoring
import PosternConfiguration
import Support

/// The facts about the server of the database.
package struct ServerFacts: Sendable {
    /// Settings by name, as `pg_settings` has them for a connection of Postern. A setting that the
    /// server does not have is missing.
    package var settings: [String: String] = [:]
    /// Servers that the URL names.
    package var servers = 1
    /// Connected standbys that a change waits for; nil if this user may not see them.
    package var synchronousStandbys: Int?
    /// Hosts on which `postern serve` runs, at least 1, and the connections that one of them may
    /// have.
    package var hosts = 1
    package var connections = 0

    package init() {}

    /// Whether each change waits for a standby, and none is connected.
    var isWaiting: Bool {
        !(settings["synchronous_standby_names"] ?? "").utf8.isEmpty && synchronousStandbys == 0
            && !["off", "local"].contains(settings["synchronous_commit"])
    }
}

/// Judges the settings of a server.
package enum ServerChecks {
    /// With PostgreSQL's own 64, a change that reads more than some thirty rows of a table locks
    /// all of it against other SERIALIZABLE changes (max_pred_locks_per_relation).
    static let predicateLocks = 256
    /// Connections of a host beyond `database_connections`, for locks and commands.
    private static let further = 4

    package static func judge(_ facts: ServerFacts) -> [Check] {
        findings(durability(facts), .databaseDurability, "the server keeps every confirmed change")
            + findings(
                room(facts), .databaseSettings,
                "the server has room for the locks and connections of all hosts")
    }

    private static func findings(
        _ found: [Check], _ kind: CheckKind, _ fine: String
    ) -> [Check] { found.isEmpty ? [.ok(kind, fine)] : found }

    private static func durability(_ facts: ServerFacts) -> [Check] {
        let (settings, kind) = (facts.settings, CheckKind.databaseDurability)
        let standbys = settings["synchronous_standby_names"] ?? ""
        var found: [Check] = []
        if settings["fsync"] == "off" {
            found.append(
                .broken(
                    kind, "fsync is off: a loss of power damages the database",
                    remedy: "set fsync = on in postgresql.conf, and reload PostgreSQL"))
        }
        if settings["full_page_writes"] == "off" {
            found.append(
                .warning(
                    kind,
                    "full_page_writes is off: a loss of power may damage pages of the database",
                    remedy: "set full_page_writes = on, unless the file system writes whole pages"))
        }
        if standbys.utf8.isEmpty {
            guard facts.servers > 1 else { return found }
            found.append(
                .warning(
                    kind,
                    "the URL names \(facts.servers) servers, and no standby is synchronous: after a failover, changes that were "
                        + "confirmed may be missing",
                    remedy:
                        "set synchronous_standby_names at the primary (with Patroni: synchronous_mode: true)"
                ))
            return found
        }
        if let level = settings["synchronous_commit"],
            ["local", "remote_write"].contains(level)
        {
            found.append(
                .warning(
                    kind,
                    "synchronous_commit is \(level): a confirmed change may be missing after a failover, although "
                        + "synchronous_standby_names names a standby",
                    remedy: "set synchronous_commit = on for Postern's user"))
        }
        if facts.isWaiting {
            found.append(
                .broken(
                    kind,
                    "each change waits: synchronous_standby_names requires a standby, and none is connected",
                    remedy:
                        "start the standby, or empty synchronous_standby_names and reload PostgreSQL until it is back"
                ))
        }
        return found
    }

    private static func room(_ facts: ServerFacts) -> [Check] {
        func number(_ name: String) -> Int? { facts.settings[name].flatMap { Int($0) } }
        var found: [Check] = []
        if let locks = number("max_pred_locks_per_transaction"), locks < predicateLocks {
            found.append(
                .warning(
                    .databaseSettings,
                    "max_pred_locks_per_transaction is \(locks): changes of different users conflict, and are repeated",
                    remedy:
                        "set max_pred_locks_per_transaction = \(predicateLocks) in postgresql.conf, and restart PostgreSQL"
                ))
        }
        if let all = number("max_connections") {
            let free = all - (number("superuser_reserved_connections") ?? 0)
            let needed = facts.hosts * (facts.connections + further)
            if free < needed {
                found.append(
                    .warning(
                        .databaseSettings,
                        "max_connections leaves \(free) for users, and the hosts may need \(needed)",
                        remedy:
                            "raise max_connections of PostgreSQL to \(needed + all - free), or lower database_connections"
                    ))
            }
        }
        return found
    }
}

extension ServerFacts {
    /// The settings that the checks look at.
    private static let names = [
        "fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names",
        "max_pred_locks_per_transaction", "max_connections", "superuser_reserved_connections",
    ]

    /// Asks the server. Throws as the store does.
    init(
        _ database: any Database, _ configuration: Configuration, hosts: Int
    ) throws(StoreFailure) {
        self.init()
        servers = configuration.database.servers
        connections = configuration.database.connections
        self.hosts = max(1, hosts)
        let rows = try database.rows(
            "SELECT name, setting FROM pg_settings WHERE name IN \(list: Self.names)")
        for row in rows { settings[try row["name"]] = try row["setting"] }
        // A user without pg_read_all_stats sees the rows, with NULL in place of the state.
        let standbys = try database.row(
            """
            SELECT COUNT(*) AS shown, COUNT(sync_state) AS known,
                COUNT(CASE WHEN sync_state IN ('sync', 'quorum') THEN 1 END) AS waited
            FROM pg_stat_replication
            """)
        guard let standbys, try standbys["shown"] == standbys["known"] as Int64 else { return }
        synchronousStandbys = try standbys["waited"]
    }
}
