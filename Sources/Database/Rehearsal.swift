// Rehearsals: the effects of a change, without the change.

extension Database {
    /// Runs `body` on a database with the contents of this one; none of its changes remain. This
    /// uses a transaction that is rolled back at the end, which works for every engine with row
    /// versions. An engine in which this would block other writers has its own implementation.
    package func rehearsedInTransaction<T>(
        _ body: (any Database) throws(StoreFailure) -> T
    ) throws(StoreFailure) -> T {
        try rehearsed(body) { change throws(StoreFailure) in try write(.relaxed, change) }
    }

    /// The rehearsal in a transaction that the engine provides.
    package func rehearsed<T>(
        _ body: (any Database) throws(StoreFailure) -> T,
        in transaction: @escaping (_ change: TransactionBody<Void>) throws(StoreFailure) -> Void
    ) throws(StoreFailure) -> T {
        var result: Result<T, StoreFailure>?
        do {
            try transaction { connection throws(StoreFailure) in
                let rehearsal = JoinedDatabase(dialect: dialect, connection: connection)
                result = Result { () throws(StoreFailure) in try body(rehearsal) }
                // Throws in any case, because only a transaction that throws is rolled back.
                throw .permanent(.rehearsed, "a rehearsal has ended")
            }
        } catch  where error.code == .permanent(.rehearsed) {}
        guard let result else { throw .permanent(.statement, "a rehearsal gave no result") }
        return try result.get()
    }
}
