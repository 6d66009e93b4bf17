// One connection to a PostgreSQL server, made safe: results are read whole and freed, statements are prepared once.

import CPQ
import Glibc
import PosternStore

/// Used by one thread at a time; the pool sees to it.
final class PostgresLink: @unchecked Sendable {
    private let connection: OpaquePointer
    /// Names of prepared statements by their text and the types of their arguments.
    private var prepared: [Prepared: String] = [:]

    private struct Prepared: Hashable {
        let sql: String
        let types: [Oid]
    }
    /// Seconds on a monotonic clock when it was given back last.
    var idleSince: Double = 0
    /// Set once it cannot be trusted any more: it is closed instead of being given back.
    private(set) var isBroken = false

    /// More texts than the program has; beyond it something makes SQL out of data.
    private static let statementLimit = 1000

    /// Connects. Blocks at most as long as `connect_timeout` says for each host.
    /// Throws `PostgresFailure`, whose message never holds the password.
    init(parameters: [(String, String)], setup: String) throws {
        let opened: OpaquePointer? = Self.withCStrings(parameters.map(\.0)) { names in
            Self.withCStrings(parameters.map(\.1)) { values in PQconnectdbParams(names, values, 0) }
        }
        guard let opened else {
            throw PostgresFailure(state: "53200", message: "no memory for a connection", isConnectionLost: true)
        }
        connection = opened
        guard PQstatus(connection) == CONNECTION_OK else {
            let failure = Self.connectionFailure(connection)
            PQfinish(connection)
            throw failure
        }
        // Warnings of the server go nowhere: libpq would print them on standard error.
        PQsetNoticeProcessor(connection, { _, _ in }, nil)
        do {
            try script(setup)
        } catch {
            PQfinish(connection)
            throw error
        }
    }

    func close() { PQfinish(connection) }

    /// The message of a failed connection: one line, without what the server may have quoted.
    private static func connectionFailure(_ connection: OpaquePointer) -> PostgresFailure {
        let full = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        var line = full.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }.joined(separator: "; ")
        // libpq quotes hosts, users and parameters, never the password; should that stand in one of them, it is taken out.
        if let password = PQpass(connection).map({ String(cString: $0) }), password.utf8.count >= 3 {
            line = line.replacing(password, with: "(redacted)")
        }
        // libpq gives no SQLSTATE here. What has to be mended by somebody is told by its words in the C locale.
        let isRefusal = ["authentication failed", "no password supplied", "does not exist", "no pg_hba.conf entry"].contains { full.contains($0) }
        return PostgresFailure(state: isRefusal ? "28000" : "", message: line, isConnectionLost: !isRefusal)
    }

    /// Whether the server closed it meanwhile. Costs no round trip.
    var isAlive: Bool {
        guard !isBroken, PQstatus(connection) == CONNECTION_OK else { return false }
        // Whatever has arrived unasked is an end of the connection or a message before it.
        return PQconsumeInput(connection) == 1 && PQstatus(connection) == CONNECTION_OK && PQtransactionStatus(connection) == PQTRANS_IDLE
    }

    /// Several statements without parameters.
    func script(_ sql: String) throws { _ = try finish(PQexec(connection, sql)) { _ in } }

    /// Runs a statement with its arguments and reads the rows.
    func rows(_ sql: String, _ arguments: [SQLValue]) throws -> [SQLRow] { try execute(sql, arguments, Self.rows) }

    /// Runs a statement and gives the number of rows it touched.
    func run(_ sql: String, _ arguments: [SQLValue]) throws -> Int {
        try execute(sql, arguments) { result in
            PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
        }
    }

    private func execute<T>(_ sql: String, _ arguments: [SQLValue], _ read: (OpaquePointer) throws -> T) throws -> T {
        let name = try statement(Prepared(sql: sql, types: arguments.map(BoundValue.type)))
        let bound = arguments.map(BoundValue.init)
        let result = BoundValue.withPointers(bound) { values, lengths, formats in
            PQexecPrepared(connection, name, Int32(bound.count), values, lengths, formats, 0)
        }
        return try finish(result, read)
    }

    private func statement(_ wanted: Prepared) throws -> String {
        if let name = prepared[wanted] { return name }
        guard prepared.count < Self.statementLimit else {
            throw PostgresFailure(state: "", message: "too many different statements", isConnectionLost: false)
        }
        let name = "s\(prepared.count + 1)"
        _ = try finish(
            PQprepare(connection, name, Placeholders.translated(wanted.sql), Int32(wanted.types.count), wanted.types)) { _ in }
        prepared[wanted] = name
        return name
    }

    private func finish<T>(_ result: OpaquePointer?, _ read: (OpaquePointer) throws -> T) throws -> T {
        defer { PQclear(result) }
        if let result, [PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY].contains(PQresultStatus(result)) { return try read(result) }
        let failure = PostgresFailure(result: result, connection: connection)
        // A connection to what is no primary any more, or whose prepared statements are gone, is of no use.
        if failure.isConnectionLost || ["25006", "26000", "0A000"].contains(failure.state) || failure.state.hasPrefix("57P") {
            isBroken = true
        }
        throw failure
    }

    private static func rows(_ result: OpaquePointer) throws -> [SQLRow] {
        let columns = PQnfields(result)
        let types = (0..<columns).map { PQftype(result, $0) }
        return try (0..<PQntuples(result)).map { row in
            SQLRow(
                try (0..<columns).map { column in
                    if PQgetisnull(result, row, column) == 1 { return .null }
                    guard let start = PQgetvalue(result, row, column) else { return .null }
                    let text = UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
                    return try ColumnText.value(text, type: types[Int(column)])
                })
        }
    }

    private static func withCStrings<T>(_ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> T) -> T {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        let pointers: [UnsafePointer<CChar>?] = copies.map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { buffer in
            // Never empty: it ends with a null pointer.
            body(buffer.baseAddress ?? UnsafePointer(bitPattern: 8).unsafelyUnwrapped)
        }
    }
}
