// Records of a stub: nothing is kept, and no limit is reached.

import InternetMessage
import RelayCore

/// A directory that adopts it only needs to define accounts.
package protocol ForgetfulRecords: RelayRecords {}

extension ForgetfulRecords {
    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? { nil }
    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool { true }
    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool { true }
    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {}
    package func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool { false }
    package func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {}
    package func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {}
    package func forgetHandedOver(
        _ marks: [[UInt8]], account: AccountNumber
    ) throws(DirectoryFailure) {}
    package func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool { true }
    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord { .recorded }
    package func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool { true }
    package func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool { true }
    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {}
    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {}
}
