// The relay's values as the store keeps them.

import Database
import MailAuth
import RelayCore

extension AccountNumber {
    /// As in tables: the row's number.
    package var stored: Int64 { Int64(rawValue) }
}

extension UserRefusal: SQLBindable, SQLReadable {}

extension DKIMAlgorithm: SQLBindable, SQLReadable {}
