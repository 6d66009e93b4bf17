// Rehearsals: what a change would do, without doing it.

extension Database {
    /// Runs `body` on a database with the contents of this one, of which nothing remains afterwards.
    /// This one way fits every engine with versions of rows: a transaction that is rolled back at the end. An engine that
    /// would keep other writers waiting for so long brings its own.
    package func rehearsedInTransaction<T>(_ body: (any Database) throws(StoreFailure) -> T) throws(StoreFailure) -> T {
        try rehearsed(body) { change throws(StoreFailure) in try write(.relaxed, change) }
    }

    /// The same in a transaction of the engine's own making.
    package func rehearsed<T>(
        _ body: (any Database) throws(StoreFailure) -> T,
        in transaction: @escaping (_ change: TransactionBody<Void>) throws(StoreFailure) -> Void
    ) throws(StoreFailure) -> T {
        var result: Result<T, StoreFailure>?
        do {
            try transaction { connection throws(StoreFailure) in
                let rehearsal = JoinedDatabase(dialect: dialect, connection: connection)
                result = Result { () throws(StoreFailure) in try body(rehearsal) }
                // Whatever its result: only what throws is rolled back.
                throw .permanent(.rehearsed, "a rehearsal has ended")
            }
        } catch  where error.code == .permanent(.rehearsed) {}
        guard let result else { throw .permanent(.statement, "a rehearsal gave no result") }
        return try result.get()
    }
}
