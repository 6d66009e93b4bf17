// Moves what was written from the log into the database's file, beside those who write.

import Concurrency
import Database

/// A thread with its own connection, once the log has grown. SQLite itself has the commit that fills the log move all of it, and
/// sync the file: for as long, no one else could write.
///
/// The log grows meanwhile, so that what came in between is moved too, each time less. The last of it, and the way back to the
/// log's start, take the writers' turn; they are short.
final class SQLiteCheckpointer: Sendable {
    private struct State {
        /// Pages of the log at which there is something to do.
        var due = SQLiteDatabase.checkpointPages
        var pages = 0
        var isRunning = false
        var isClosed = false
    }

    /// How long writers wait for readers who began before the log's pages were moved. Who reads on for longer, a copy for
    /// example, keeps the log growing until they have ended.
    static let timeout = Duration.milliseconds(20)
    /// How long to wait for the writers' turn.
    private static let patience = Duration.seconds(1)
    /// Pages that a round may leave to the last one: some milliseconds.
    private static let rest = 200
    private static let rounds = 4

    private let turn: WriterTurn
    private let open: @Sendable () throws(StoreFailure) -> SQLiteConnection
    private let state = Monitor(State())

    /// - Parameter open: opens the thread's connection.
    init(_ turn: WriterTurn, open: @escaping @Sendable () throws(StoreFailure) -> SQLiteConnection) {
        self.turn = turn
        self.open = open
    }

    /// To be told after each commit.
    /// - Parameter pages: of the log.
    func note(pages: Int) {
        let starts = state.with { state in
            // It begins again from its start.
            if pages < state.pages { state.due = SQLiteDatabase.checkpointPages }
            state.pages = pages
            guard pages >= state.due, !state.isRunning, !state.isClosed else { return false }
            state.isRunning = true
            return true
        }
        // Without a thread the log grows until there is one again.
        if starts, SystemThread.detach({ [self] in run() }) != 0 { state.with { $0.isRunning = false } }
    }

    /// Waits for what is being moved; nothing is moved after that.
    func close() {
        state.with { $0.isClosed = true }
        _ = state.wait(atMost: nil) { !$0.isRunning }
    }

    private func run() {
        // What fails here, a full disk for example, fails for those who write as well; the log waits for the next time.
        do {
            try move()
        } catch {
            state.with { $0.due = $0.pages + SQLiteDatabase.checkpointPages }
        }
        state.with { $0.isRunning = false }
    }

    private func move() throws(StoreFailure) {
        let connection = try open()
        defer { connection.close() }
        for _ in 0..<Self.rounds {
            let result = try connection.checkpoint()
            if result.pages - result.moved <= Self.rest { break }
        }
        try turn.run(by: .now + Self.patience) { () throws(StoreFailure) in
            let pages = try connection.checkpoint(restarting: true).pages
            // In the writers' turn: whoever writes next finds it, and sets it back where the log begins again.
            state.with { $0.due = max($0.pages, pages) + SQLiteDatabase.checkpointPages }
        }
    }
}
