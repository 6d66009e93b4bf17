// PostgreSQL's SQLSTATE codes as temporary and permanent failures of the store.

import CPQ
import Database

/// The failure of a statement or a connection, before the decision how to handle it.
struct PostgresFailure: Error {
    /// Five characters (PostgreSQL manual, appendix A); empty if the connection itself failed.
    let state: String
    /// The primary message, which names tables and constraints. The detail, which quotes values, is
    /// never read.
    let message: String
    /// Whether the connection is no longer usable.
    let isConnectionLost: Bool
    /// The fault to be fixed, if no connection could be made.
    private let fault: ServerFault?
    /// The store's failure, if the failure did not come from the server.
    private var known: StoreFailure?

    /// Whether the server accepts no writes: it has become a standby, and another server is the
    /// primary now.
    var isNoPrimary: Bool {
        state == "25006" || (state == "0A000" && message.contains("hot standby"))
    }

    /// Whether the server has no free connection for us; existing ones continue.
    var isServerFull: Bool { state == "53300" }

    /// Whether it conflicted with another transaction (serialization failure, deadlock).
    var isConflict: Bool { ["40001", "40P01"].contains(state) }

    /// Whether the transaction may succeed when it runs again. It conflicted with another one, or
    /// was idle for too long, and has changed nothing.
    var isRepeatable: Bool { isConflict || state == "25P03" || isRacingMigration }

    /// The reason why it ran in vain, as counted.
    var wait: WriterWait? {
        switch state {
        case "40001": .conflict
        case "40P01": .deadlock
        case "55P03": .lock
        case "25P03": .idle
        default: nil
        }
    }

    /// Whether another host just created the same table, column or index: after a repetition,
    /// nothing is left to do.
    private var isRacingMigration: Bool {
        ["42P07", "42701", "42710"].contains(state)
            || (state == "23505" && message.contains("\"pg_"))
    }

    /// The failure in the store's form.
    var storeFailure: StoreFailure {
        if let known { return known }
        if isNoPrimary {
            return .temporary(.away, "the server is read-only: it is not the primary").by(.standby)
        }
        return plainFailure.by(state == "42501" ? .noPrivilege : state == "53300" ? .full : fault)
    }

    private var plainFailure: StoreFailure {
        switch state {
        case "40001", "40P01", "55P03": return .temporary(.busy, message)
        case "57014": return .temporary(.busy, "a statement took too long and was cancelled")
        case "53100": return .temporary(.diskFull, message)
        case "28P01", "28000", "3D000":
            return .permanent(.refused, "the server refuses the connection: " + message)
        case "42501": return .permanent(.readOnly, message)
        default: break
        }
        if isConnectionLost { return .temporary(.away, message) }
        switch state.prefix(2) {
        case "08": return .temporary(.away, message)
        case "53", "57": return .temporary(.resources, message)
        case "58": return .temporary(.inputOutput, message)
        case "23": return .permanent(.constraint, message)
        // The server's messages about data quote the data, so they are not used.
        case "22":
            return .permanent(.statement, "a value does not fit its column (SQLSTATE \(state))")
        case "XX": return .permanent(.corrupted, message)
        default: return .permanent(.statement, message.isEmpty ? "SQLSTATE \(state)" : message)
        }
    }

    /// The failure in a result.
    init(result: OpaquePointer?, connection: OpaquePointer) {
        func field(_ code: Int32) -> String {
            PQresultErrorField(result, code).map { String(cString: $0) } ?? ""
        }
        state = field(Int32(UInt8(ascii: "C")))
        // With 57P01 and similar codes, and with 25P03, the server says that it ends the
        // connection; libpq may not know yet. A failure without a code is libpq's own: it got no
        // answer.
        isConnectionLost =
            PQstatus(connection) != CONNECTION_OK || state.hasPrefix("57P") || state == "25P03"
            || state.isEmpty
        let primary = field(Int32(UInt8(ascii: "M")))
        fault = nil
        message =
            !primary.isEmpty
            ? primary
            : isConnectionLost ? "the connection to the server was lost" : "the statement failed"
    }

    init(state: String, message: String, isConnectionLost: Bool, fault: ServerFault? = nil) {
        self.fault = fault
        self.state = state
        self.message = message
        self.isConnectionLost = isConnectionLost
    }

    /// A failure that did not come from the server.
    init(_ failure: StoreFailure) {
        self.init(state: "", message: failure.message, isConnectionLost: false)
        known = failure
    }
}
