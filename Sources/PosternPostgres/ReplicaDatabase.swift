// Reads at a standby, for listings: never older than what was confirmed before the read began.

import Database
import Foundation
import Synchronization

/// A database that reads at a standby of PostgreSQL if that has caught up, and at the primary
/// otherwise. It changes nothing.
///
/// Before each read it asks the primary how far its log is on disk, which takes less than a
/// millisecond. The standby must have replayed the log up to there. So a listing has every change
/// that was confirmed before.
package final class ReplicaDatabase: Database {
    /// The state of the standby, for `status`, metrics and `doctor`.
    package enum State: Sendable, Hashable {
        /// Reads go there. The lag is the age of the newest change that it has, in seconds; 0 if it
        /// has all.
        case following(lag: Double)
        /// It answers, and lacks changes; the lag is nil if it says nothing about it.
        case behind(lag: Double?)
        /// It cannot be used, with the reason. No password is in it.
        case away(String)

        /// Seconds by which it is behind; nil if unknown.
        package var lag: Double? {
            switch self {
            case .following(let lag): lag
            case .behind(let lag): lag
            case .away: nil
            }
        }

        /// Why listings are read at the primary; nil if they are not.
        package var trouble: String? {
            switch self {
            case .following: nil
            case .behind(let lag?): "it is \(Int(lag.rounded(.up))) s behind"
            case .behind(nil): "it lacks changes, and does not say since when"
            case .away(let reason): reason
            }
        }
    }

    /// How often each server was used, since the start of the process.
    package struct Uses: Sendable, Hashable {
        package var standby = 0
        package var primary = 0

        package init() {}
    }

    /// How long a read waits until the standby has caught up. It is usually some milliseconds
    /// behind.
    private static let patience: Duration = .milliseconds(250)
    /// The pause between two looks in that time, in seconds.
    private static let step = 0.004
    /// How long the primary answers after the standby could not, so that not every listing waits
    /// for it.
    private static let avoidance: Duration = .seconds(2)

    private struct Standby {
        var database: PostgresDatabase?
        var isOpening = false
        var avoidedUntil: ContinuousClock.Instant?
        var uses = Uses()
    }

    private let primary: any Database
    private let open: @Sendable () throws(StoreFailure) -> PostgresDatabase
    private let standby = Mutex(Standby())

    /// Connects when it is first used: a service starts without its standby.
    /// - Parameters:
    ///   - primary: the database that accepts writes, on PostgreSQL. It stays the caller's.
    ///   - url: of the standby, or of several servers; see `PostgresDatabase.init`. Unless it says
    ///     otherwise, only a standby is used (`target_session_attrs`).
    package init(primary: any Database, url: String, settings: PostgresDatabase.Settings = .init())
    {
        self.primary = primary
        var settings = settings
        settings.role = .standby
        let (known, chosen) = (primary, settings)
        open = { () throws(StoreFailure) in
            let database = try PostgresDatabase(url: url, settings: chosen)
            do throws(StoreFailure) {
                // Places in the logs of two clusters say nothing about each other.
                let cluster: SQL = "SELECT system_identifier FROM pg_control_system()"
                let own: Int64? = try known.value(cluster)
                let other: Int64? = try database.value(cluster)
                guard own == other else {
                    throw .permanent(.refused, "the server is no standby of the database's primary")
                }
                return database
            } catch {
                try? database.close()
                throw error
            }
        }
    }

    package var dialect: Dialect { primary.dialect }

    package var uses: Uses { standby.withLock { $0.uses } }

    // MARK: Reads

    package func read<T>(_ body: TransactionBody<T>) throws(StoreFailure) -> T {
        try atStandby { database, answered throws(StoreFailure) in
            try database.read { connection throws(StoreFailure) in
                try body(NotingConnection(connection, answered))
            }
        } primary: { () throws(StoreFailure) in
            try primary.read(body)
        }
    }

    package func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
        try atStandby { database, _ throws(StoreFailure) in
            try database.rows(sql, arguments)
        } primary: { () throws(StoreFailure) in
            try primary.rows(sql, arguments)
        }
    }

    private func atStandby<T>(
        _ body: (PostgresDatabase, Answered) throws(StoreFailure) -> T,
        primary other: () throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        guard let database = try caughtUp() else {
            standby.withLock { $0.uses.primary += 1 }
            return try other()
        }
        let answered = Answered()
        do throws(StoreFailure) {
            let result = try body(database, answered)
            standby.withLock { $0.uses.standby += 1 }
            return result
        } catch {
            guard error.isOfServer else { throw error }
            avoid()
            // After an answer the caller may have used it already, and would get it twice.
            guard !answered.isAny else { throw error }
            standby.withLock { $0.uses.primary += 1 }
            return try other()
        }
    }

    /// The standby, if it has everything that is confirmed now; nil if the primary must answer.
    private func caughtUp() throws(StoreFailure) -> PostgresDatabase? {
        guard !isAvoided else { return nil }
        let place: String? = try primary.value(Self.place)
        guard let place else { return nil }
        do throws(StoreFailure) {
            guard let database = try opened() else { return nil }
            let end = ContinuousClock.now + Self.patience
            while true {
                if try Self.has(place, database) { return database }
                guard ContinuousClock.now < end else { break }
                Thread.sleep(forTimeInterval: Self.step)
            }
        } catch {
            // It is away, full, or no standby of ours: `measure` says so.
        }
        avoid()
        return nil
    }

    private static let place: SQL = "SELECT CAST(pg_current_wal_flush_lsn() AS TEXT)"

    /// NULL, and so false, if the server is a primary that never was a standby.
    private static func has(
        _ place: String, _ database: PostgresDatabase
    ) throws(StoreFailure) -> Bool {
        try database.value("SELECT pg_last_wal_replay_lsn() >= CAST(\(place) AS pg_lsn)") ?? false
    }

    private var isAvoided: Bool {
        standby.withLock { standby in standby.avoidedUntil.map { ContinuousClock.now < $0 } ?? false
        }
    }

    private func avoid() {
        standby.withLock { $0.avoidedUntil = ContinuousClock.now + Self.avoidance }
    }

    /// The connections to the standby; nil while another thread opens them.
    private func opened() throws(StoreFailure) -> PostgresDatabase? {
        let (known, isOpening) = standby.withLock { standby in
            defer { standby.isOpening = standby.database == nil }
            return (standby.database, standby.isOpening)
        }
        if let known { return known }
        guard !isOpening else { return nil }
        do throws(StoreFailure) {
            let database = try open()
            standby.withLock { ($0.database, $0.isOpening) = (database, false) }
            return database
        } catch {
            standby.withLock { $0.isOpening = false }
            throw error
        }
    }

    // MARK: Its state

    /// Asks primary and standby. Blocks for two round trips. Throws as the primary does.
    package func measure() throws(StoreFailure) -> State {
        let place: String? = try primary.value(Self.place)
        do throws(StoreFailure) {
            guard let place, let database = try opened() else { return .behind(lag: nil) }
            if try Self.has(place, database) { return .following(lag: 0) }
            let age: Int64? = try database.value(
                """
                SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 AS BIGINT)
                """)
            guard let age else { return .behind(lag: nil) }
            let lag = max(0, Double(age) / 1000)
            return .seconds(lag) <= Self.patience ? .following(lag: lag) : .behind(lag: lag)
        } catch {
            return .away(error.message)
        }
    }

    // MARK: Nothing is changed

    package func write<T>(
        _ durability: Durability, _ body: TransactionBody<T>
    ) throws(StoreFailure) -> T {
        throw .permanent(.readOnly, "a listing changes nothing")
    }

    package func lock(_ name: String) throws(StoreFailure) -> (any DatabaseLock)? {
        throw .permanent(.readOnly, "a listing takes no lock")
    }

    /// Ends the connections to the standby. Those to the primary stay.
    package func close() throws(StoreFailure) {
        let database = standby.withLock { standby in
            defer { standby.database = nil }
            return standby.database
        }
        try database?.close()
    }
}

/// Whether a statement of a read was answered.
private final class Answered {
    var isAny = false
}

/// Notes whether a caller got anything.
private final class NotingConnection: DatabaseConnection {
    private let connection: any DatabaseConnection
    private let answered: Answered

    init(_ connection: any DatabaseConnection, _ answered: Answered) {
        (self.connection, self.answered) = (connection, answered)
    }

    func rows(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> [SQLRow] {
        let rows = try connection.rows(sql, arguments)
        answered.isAny = true
        return rows
    }

    func run(_ sql: String, _ arguments: [SQLValue]) throws(StoreFailure) -> Int {
        try connection.run(sql, arguments)
    }

    func runScript(_ sql: String) throws(StoreFailure) { try connection.runScript(sql) }
}

extension StoreFailure {
    /// Whether another server may answer in its place: not a refusal, and no fault of the data.
    fileprivate var isOfServer: Bool {
        switch code {
        case .temporary, .permanent(.refused), .permanent(.statement), .permanent(.readOnly): true
        case .permanent, .refused: false
        }
    }
}
