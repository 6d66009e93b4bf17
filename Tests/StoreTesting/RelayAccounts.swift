// The relay's accounts by row numbers.

import Accounts
import Database
import RelayCore

extension RelayRepository {
    package func account(number: Int64, day: Int64) throws(StoreFailure) -> RelayAccount? {
        guard let number = UInt64(exactly: number).flatMap(AccountNumber.init) else { return nil }
        return try account(number, day: day)
    }
}
