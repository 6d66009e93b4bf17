// Moves written pages from the log into the database's file, while others write.

import Concurrency
import Database

/// Starts a thread with its own connection once the log has grown. By default SQLite lets the commit that fills the log move
/// all of it and sync the file: meanwhile no one else could write.
///
/// The log grows meanwhile, so further rounds move what was added, less each time. The last round, and the return to the log's
/// start, take the writers' turn; they are short.
final class SQLiteCheckpointer: Sendable {
    private struct State {
        /// Pages of the log at which a checkpoint is due.
        var due = SQLiteDatabase.checkpointPages
        var pages = 0
        var isRunning = false
        var isClosed = false
    }

    /// How long writers wait for readers that began before the log's pages were moved. A reader that takes longer, for example
    /// a copy, keeps the log growing until it has ended.
    static let timeout = Duration.milliseconds(20)
    /// How long to wait for the writers' turn.
    private static let patience = Duration.seconds(1)
    /// Pages that a round may leave for the last one: some milliseconds.
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

    /// Call this after each commit.
    /// - Parameter pages: the pages of the log.
    func note(pages: Int) {
        let starts = state.with { state in
            // The log begins again from its start.
            if pages < state.pages { state.due = SQLiteDatabase.checkpointPages }
            state.pages = pages
            guard pages >= state.due, !state.isRunning, !state.isClosed else { return false }
            state.isRunning = true
            return true
        }
        // Without a thread the log grows until there is one again.
        if starts, SystemThread.detach({ [self] in run() }) != 0 { state.with { $0.isRunning = false } }
    }

    /// Waits for pages that are being moved; nothing is moved after that.
    func close() {
        state.with { $0.isClosed = true }
        _ = state.wait(atMost: nil) { !$0.isRunning }
    }

    private func run() {
        // What fails here, for example on a full disk, fails for writers too; the log is moved the next time.
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
            // In the writers' turn: the next writer reads this, and resets it if the log begins again.
            state.with { $0.due = max($0.pages, pages) + SQLiteDatabase.checkpointPages }
        }
    }
}
