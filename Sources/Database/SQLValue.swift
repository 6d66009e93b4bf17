// Values that pass between repositories and a database engine.

/// A bound argument or a column: the four types that both engines have. Booleans
/// are integers 0 and 1.
package enum SQLValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])
}
