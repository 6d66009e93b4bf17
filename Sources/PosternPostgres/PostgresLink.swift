// A safe connection to a PostgreSQL server: results are read completely and freed, and statements
// are prepared once.

import CPQ
import Database
import Glibc
import Synchronization

/// Used by one thread at a time; the pool ensures this.
///
/// The connection is in libpq's pipeline mode: BEGIN and a preparation are sent together with the
/// first statement. The reply to an end for which no caller waits is read later. Each statement is
/// one round trip.
final class PostgresLink: @unchecked Sendable {
    private let connection: OpaquePointer
    /// Prepared statements by text. One text may have several, with different argument types.
    private var prepared: [String: [Prepared]] = [:]
    /// The number of statements that the server keeps.
    private var preparedCount = 0

    /// The number of used names, including those whose preparation failed.
    private var named = 0

    private struct Prepared {
        /// A type is nil if every value was NULL, which fits any type.
        let types: [Oid?]
        let statement: Statement

        func fits(_ wanted: [Oid?]) -> Bool {
            types.count == wanted.count && zip(types, wanted).allSatisfy { $1 == nil || $0 == $1 }
        }

        /// The types of both, if they do not contradict each other.
        func joined(_ wanted: [Oid?]) -> [Oid?]? {
            guard types.count == wanted.count,
                zip(types, wanted).allSatisfy({ $0 == nil || $1 == nil || $0 == $1 })
            else {
                return nil
            }
            return zip(types, wanted).map { $0 ?? $1 }
        }
    }

    /// The statement's name on the server, and the columns of its result, which are
    /// known after the first result.
    private final class Statement {
        let name: String
        var columns: SQLColumns?

        init(name: String) { self.name = name }
    }

    /// Statements that were sent and not answered yet, in order.
    private var unanswered: [Sent] = []

    private enum Sent {
        case preparation(String, Prepared)
        case statement
        case sync
    }

    /// Statements that begin the transaction; sent with its first statement.
    private var beginning: [String] = []
    /// Whether the server is in the middle of a transaction.
    private var isInTransaction = false
    /// Set when the connection is no longer reliable: then it is closed instead of being returned.
    private(set) var isBroken = false
    private let goodbye = Goodbye()

    /// Whether the server has announced that it ends the connection, or said that a commit did not
    /// reach the standby that it waits for.
    private final class Goodbye: Sendable {
        let isSaid = Atomic(false)
        let isUnreplicated = Atomic(false)
    }

    /// More statements than the program usually has. Beyond this number all are deallocated, and
    /// those in use are prepared again.
    private static let statementLimit = 1000

    /// Connects. Blocks for at most `connect_timeout` for each host. The message of a failure never
    /// contains the password.
    init(parameters: [(String, String)], setup: String) throws(PostgresFailure) {
        let opened: OpaquePointer? = Self.withCStrings(parameters.map(\.0)) { names in
            Self.withCStrings(parameters.map(\.1)) { values in PQconnectdbParams(names, values, 0) }
        }
        guard let opened else {
            throw PostgresFailure(
                state: "53200", message: "no memory for a connection", isConnectionLost: true)
        }
        connection = opened
        guard PQstatus(connection) == CONNECTION_OK else {
            let failure = Self.connectionFailure(connection)
            PQfinish(connection)
            throw failure
        }
        // Warnings of the server are not printed, as libpq would on standard error. A message while
        // no statement runs announces that the server ends the connection: 57P01 and similar codes.
        // A commit whose wait for the standby was cancelled succeeds with a mere warning (01000).
        PQsetNoticeReceiver(
            connection,
            { argument, result in
                guard let argument,
                    let state = PQresultErrorField(result, Int32(UInt8(ascii: "C")))
                else { return }
                let goodbye = Unmanaged<Goodbye>.fromOpaque(argument).takeUnretainedValue()
                if strncmp(state, "57P", 3) == 0 { goodbye.isSaid.store(true, ordering: .relaxed) }
                if strcmp(state, "01000") == 0 {
                    goodbye.isUnreplicated.store(true, ordering: .relaxed)
                }
            }, Unmanaged.passUnretained(goodbye).toOpaque())
        do throws(PostgresFailure) {
            try check(PQexec(connection, setup)) { _ in }
            guard PQenterPipelineMode(connection) == 1 else { throw lost() }
        } catch {
            PQfinish(connection)
            throw error
        }
    }

    func close() { PQfinish(connection) }

    /// The server's version as libpq gives it, such as 150004 for 15.4.
    var serverVersion: Int32 { PQserverVersion(connection) }

    /// The message of a failed connection: one line, without quotations by the server.
    private static func connectionFailure(_ connection: OpaquePointer) -> PostgresFailure {
        let full = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        var line = full.split(whereSeparator: \.isNewline).map { $0.drop(while: \.isWhitespace) }
            .joined(separator: "; ")
        // libpq quotes hosts, users and parameters, never the password. If one of them contains the
        // password, it is redacted.
        if let password = PQpass(connection).map({ String(cString: $0) }), password.utf8.count >= 3
        {
            line = line.replacing(password, with: "(redacted)")
        }
        // libpq gives no SQLSTATE here. A fault that a person must fix is recognized by its words
        // in the C locale.
        let fault = faults.first { words in words.all.allSatisfy { full.contains($0) } }?.fault
        let isRefusal = fault.map { ![.full, .noHost, .noAnswer].contains($0) } ?? false
        let state = isRefusal ? "28000" : fault == .full ? "53300" : ""
        return PostgresFailure(
            state: state, message: line, isConnectionLost: !isRefusal, fault: fault)
    }

    /// Words of the server, of libpq and of PgBouncer. The first entry whose words all occur
    /// counts.
    private static let faults: [(all: [String], fault: ServerFault)] = [
        (["Peer authentication failed"], .wrongSystemUser),
        (["Ident authentication failed"], .wrongSystemUser),
        (["no password supplied"], .noPassword), (["no pg_hba.conf entry"], .notAdmitted),
        (["pg_hba.conf rejects"], .notAdmitted), (["role \"", "does not exist"], .noUser),
        (["no such user"], .noUser),
        (["role \"", "is not permitted to log in"], .notAdmitted),
        (["database \"", "does not exist"], .noDatabase), (["no such database"], .noDatabase),
        (["authentication failed"], .wrongPassword), (["auth failed"], .wrongPassword),
        (["unsupported startup parameter"], .poolerParameter),
        (["server does not support SSL"], .encryption), (["SSL required"], .encryption),
        (["certificate verify failed"], .encryption),
        (["server certificate"], .encryption), (["root certificate file"], .encryption),
        (["SSL error"], .encryption),
        (["too many clients"], .full), (["too many connections"], .full),
        (["connection slots are reserved"], .full),
        (["no more connections allowed"], .full), (["query_wait_timeout"], .full),
        (["could not translate host name"], .noHost), (["invalid port"], .badURL),
        (["invalid integer value"], .badURL),
        (["Connection refused"], .noAnswer), (["No such file or directory"], .noAnswer),
        (["timeout expired"], .noAnswer),
        (["Connection timed out"], .noAnswer), (["No route to host"], .noAnswer),
        (["Network is unreachable"], .noAnswer),
    ]

    /// Whether another caller may use it: no statement or transaction is in progress. Costs
    /// nothing.
    var isReusable: Bool {
        !isBroken && !isInTransaction && beginning.isEmpty && PQstatus(connection) == CONNECTION_OK
    }

    /// Whether the server still has it open. Needs no round trip, but waits for earlier replies
    /// that no caller waited for.
    var isAlive: Bool {
        guard isReusable, (try? collect()) != nil, PQconsumeInput(connection) == 1 else {
            return false
        }
        // Processes the received data.
        _ = PQisBusy(connection)
        return PQstatus(connection) == CONNECTION_OK && !goodbye.isSaid.load(ordering: .relaxed)
    }

    // MARK: Transactions

    /// Begins a transaction without a round trip: the statements are sent with its first statement.
    /// If no statement follows, no transaction begins.
    func begin(_ statements: [String]) { beginning = statements }

    /// Commits the transaction; returns when the server has confirmed. Throws `away` if the server
    /// confirmed for itself alone, although it has to wait for a standby: the next primary may not
    /// have the change.
    func commit() throws(PostgresFailure) {
        goodbye.isUnreplicated.store(false, ordering: .relaxed)
        try end("COMMIT", isAwaited: true)
        guard !goodbye.isUnreplicated.load(ordering: .relaxed) else {
            throw PostgresFailure(
                .temporary(.away, "the change did not reach the synchronous standby"))
        }
    }

    /// Ends a transaction that changed nothing. The reply is read before the connection is used
    /// again. A lost connection does not matter, because all reads are complete.
    func endUnawaited() { try? end("COMMIT", isAwaited: false) }

    func rollBack() throws(PostgresFailure) { try end("ROLLBACK", isAwaited: true) }

    private func end(_ statement: String, isAwaited: Bool) throws(PostgresFailure) {
        guard isInTransaction else { return beginning = [] }
        try collect()
        try send(statement, [])
        try sync()
        isInTransaction = false
        if isAwaited { try collect() }
    }

    // MARK: Statements

    /// Runs several statements without parameters, in a separate round trip.
    func script(_ sql: String) throws(PostgresFailure) {
        try sendBeginning()
        if !unanswered.isEmpty { try sync() }
        try collect()
        // Pipeline mode does not allow several statements in one message.
        guard PQexitPipelineMode(connection) == 1 else { throw lost() }
        defer { if PQenterPipelineMode(connection) != 1 { isBroken = true } }
        try check(PQexec(connection, sql)) { _ in }
    }

    /// Runs a statement with its arguments and reads the rows. Outside a transaction it is its own
    /// transaction.
    func rows(_ sql: String, _ arguments: [SQLValue]) throws(PostgresFailure) -> [SQLRow] {
        try execute(sql, arguments, Self.rows)
    }

    /// Runs a statement and returns the number of changed rows.
    func run(_ sql: String, _ arguments: [SQLValue]) throws(PostgresFailure) -> Int {
        try execute(sql, arguments) { result, _ in
            PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
        }
    }

    private func execute<T>(
        _ sql: String, _ arguments: [SQLValue],
        _ read: (OpaquePointer, Statement) throws(PostgresFailure) -> T
    ) throws(PostgresFailure) -> T {
        // Separately, because an error in earlier replies would look like an error of this
        // statement.
        try collect()
        if preparedCount >= Self.statementLimit { try forgetStatements() }
        try sendBeginning()
        let statement = try send(sql, arguments)
        try sync()
        var answer: Result<T, PostgresFailure>?
        // The statement is the last one of those that are answered now.
        try collect { result in
            answer = Result { () throws(PostgresFailure) in try read(result, statement) }
        }
        guard let answer else { throw lost() }
        return try answer.get()
    }

    private func sendBeginning() throws(PostgresFailure) {
        guard !beginning.isEmpty else { return }
        isInTransaction = true
        defer { beginning = [] }
        for statement in beginning { try send(statement, []) }
    }

    /// Queues a statement, and before its first use its preparation.
    @discardableResult
    private func send(_ sql: String, _ arguments: [SQLValue]) throws(PostgresFailure) -> Statement {
        let wanted = arguments.map(BoundValue.type)
        let statement: Statement
        if let known = prepared[sql]?.first(where: { $0.fits(wanted) }) {
            statement = known.statement
        } else {
            let text = try Placeholders.translated(sql, values: arguments.count)
            named += 1
            statement = Statement(name: "s\(named)")
            // Uses types known from other values, so that rows with NULL in different places soon
            // need no new statement.
            let types = prepared[sql]?.lazy.compactMap { $0.joined(wanted) }.first ?? wanted
            let isSent = PQsendPrepare(
                connection, statement.name, text, Int32(types.count), types.map { $0 ?? 0 })
            guard isSent == 1 else { throw lost() }
            unanswered.append(.preparation(sql, Prepared(types: types, statement: statement)))
        }
        let bound = arguments.map(BoundValue.init)
        let isSent = BoundValue.withPointers(bound) { values, lengths, formats in
            PQsendQueryPrepared(
                connection, statement.name, Int32(bound.count), values, lengths, formats, 0)
        }
        guard isSent == 1 else { throw lost() }
        unanswered.append(.statement)
        return statement
    }

    /// Deallocates all prepared statements, between two statements.
    private func forgetStatements() throws(PostgresFailure) {
        (prepared, preparedCount) = ([:], 0)
        guard PQsendQueryParams(connection, "DEALLOCATE ALL", 0, nil, nil, nil, nil, 0) == 1 else {
            throw lost()
        }
        unanswered.append(.statement)
        try sync()
        try collect()
    }

    /// Sends all that is queued. After an error the server skips everything before this point.
    private func sync() throws(PostgresFailure) {
        guard PQpipelineSync(connection) == 1 else { throw lost() }
        unanswered.append(.sync)
    }

    /// Reads all outstanding replies, and passes the reply of each statement to `read`. Throws the
    /// first failure among them after all are read.
    private func collect(_ read: (OpaquePointer) -> Void = { _ in }) throws(PostgresFailure) {
        guard !unanswered.isEmpty else { return }
        defer { unanswered.removeAll(keepingCapacity: true) }
        var failure: PostgresFailure?
        for sent in unanswered {
            let result = PQgetResult(connection)
            if case .sync = sent {
                let isSync = PQresultStatus(result) == PGRES_PIPELINE_SYNC
                PQclear(result)
                guard isSync else { throw failure ?? lost() }
                continue
            }
            // The server did not run the statements after an error.
            if failure != nil {
                PQclear(result)
            } else {
                do throws(PostgresFailure) {
                    try check(result) { result in
                        switch sent {
                        case .preparation(let sql, let made):
                            prepared[sql, default: []].append(made)
                            preparedCount += 1
                        case .statement: read(result)
                        case .sync: break
                        }
                    }
                } catch {
                    failure = error
                }
            }
            guard PQstatus(connection) == CONNECTION_OK else { throw failure ?? lost() }
            // Reads to the end of this statement's results.
            while let more = PQgetResult(connection) { PQclear(more) }
        }
        if let failure { throw failure }
    }

    /// The failure of a connection that gives no other reason. libpq may not have noticed yet that
    /// the connection is lost.
    private func lost() -> PostgresFailure {
        isBroken = true
        return PostgresFailure(
            state: "", message: "the connection to the server was lost", isConnectionLost: true)
    }

    private func check(
        _ result: OpaquePointer?, _ read: (OpaquePointer) -> Void
    ) throws(PostgresFailure) {
        defer { PQclear(result) }
        if let result,
            [PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY].contains(PQresultStatus(result))
        {
            return read(result)
        }
        let failure = PostgresFailure(result: result, connection: connection)
        // A connection is not usable if its server is no longer the primary, or if its prepared
        // statements are lost.
        if failure.isConnectionLost || ["25006", "26000", "0A000"].contains(failure.state) {
            isBroken = true
        }
        throw failure
    }

    private static func rows(
        _ result: OpaquePointer, _ statement: Statement
    ) throws(PostgresFailure) -> [SQLRow] {
        let range = 0..<PQnfields(result)
        let columns =
            statement.columns
            ?? SQLColumns(range.map { PQfname(result, $0).map { String(cString: $0) } ?? "" })
        // BEGIN, which is answered before it, has no columns.
        if !range.isEmpty { statement.columns = columns }
        let types = range.map { PQftype(result, $0) }
        return try (0..<PQntuples(result)).map { row throws(PostgresFailure) in
            SQLRow(
                columns,
                try range.map { column throws(PostgresFailure) in
                    if PQgetisnull(result, row, column) == 1 { return .null }
                    guard let start = PQgetvalue(result, row, column) else { return .null }
                    let text = UnsafeRawBufferPointer(
                        start: start, count: Int(PQgetlength(result, row, column)))
                    return try ColumnText.value(text, type: types[Int(column)])
                })
        }
    }

    private static func withCStrings<T>(
        _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> T
    ) -> T {
        let copies = strings.map { strdup($0) }
        defer { copies.forEach { free($0) } }
        let pointers: [UnsafePointer<CChar>?] = copies.map { UnsafePointer($0) } + [nil]
        return pointers.withUnsafeBufferPointer { buffer in
            // Never empty: it ends with a null pointer.
            body(buffer.baseAddress ?? UnsafePointer(bitPattern: 8).unsafelyUnwrapped)
        }
    }
}
