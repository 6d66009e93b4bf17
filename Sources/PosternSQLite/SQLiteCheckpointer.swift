// Moves written pages from the log into the database's file, while others write.

import Concurrency
import Database

/// Starts a thread with a separate connection when the log has grown. By default, the SQLite commit
/// that fills the log moves all of it and syncs the file, and no other process can write during
/// this time.
///
/// The log grows during a round, so further rounds move the added pages, fewer each time. The last
/// round, and the return to the log's start, block other writers; they are short.
final class SQLiteCheckpointer: Sendable {
    private struct State {
        /// The number of pages in the log at which a checkpoint is due.
        var due = SQLiteDatabase.checkpointPages
        var pages = 0
        var isRunning = false
        var isClosed = false
    }

    /// How long to wait for readers that began before the log's pages were moved. While a slower
    /// reader runs, for example a copy, the log keeps growing.
    static let timeout = Duration.milliseconds(20)
    /// How long to wait for the right to write.
    private static let patience = Duration.seconds(1)
    /// Pages that a round may leave to the last round: some milliseconds of work.
    private static let rest = 200
    private static let rounds = 4

    private let turn: WriterTurn
    private let open: @Sendable () throws(StoreFailure) -> SQLiteConnection
    private let state = Monitor(State())

    /// - Parameter open: opens the thread's connection.
    init(_ turn: WriterTurn, open: @escaping @Sendable () throws(StoreFailure) -> SQLiteConnection)
    {
        self.turn = turn
        self.open = open
    }

    /// Must be called after each commit.
    /// - Parameter pages: the pages in the log.
    func note(pages: Int) {
        let starts = state.with { state in
            // The log began again from its start.
            if pages < state.pages { state.due = SQLiteDatabase.checkpointPages }
            state.pages = pages
            guard pages >= state.due, !state.isRunning, !state.isClosed else { return false }
            state.isRunning = true
            return true
        }
        // If no thread can be created, the log grows until one can.
        if starts, SystemThread.detach({ [self] in run() }) != 0 {
            state.with { $0.isRunning = false }
        }
    }

    /// Waits for pages that are being moved, and moves no more.
    func close() {
        state.with { $0.isClosed = true }
        _ = state.wait(atMost: nil) { !$0.isRunning }
    }

    private func run() {
        // An error here, for example a full disk, also fails the writers. The log is moved the next
        // time.
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
            // Set while this thread may write: the next writer reads it, and resets it if the log
            // begins again.
            state.with { $0.due = max($0.pages, pages) + SQLiteDatabase.checkpointPages }
        }
    }
}
