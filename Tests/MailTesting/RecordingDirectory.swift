// A directory that records each call: the reads of the store, and the rows written.

import InternetMessage
import RelayCore
import Synchronization

/// Passes on every call. In a record, a hash or a token is only its length, as it differs for each
/// message.
package final class RecordingDirectory: RelayDirectory {
    private let other: any RelayDirectory
    private let state = Mutex<[String]>([])

    package init(_ other: any RelayDirectory) { self.other = other }

    /// The calls since the last call of this method, in order.
    package func take() -> [String] {
        state.withLock { records in
            defer { records = [] }
            return records
        }
    }

    private func record(_ call: String) { state.withLock { $0.append(call) } }

    package func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? {
        record("account of \(localPart)@\(domain)")
        return try other.account(relayAddress: localPart, domain: domain)
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        record("account \(number.rawValue)")
        return try other.account(number)
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        record("sources covering \(author.wireForm)")
        return try other.sources(covering: author)
    }

    package func isBlocked(
        _ author: AddrSpec, by account: AccountNumber
    ) throws(DirectoryFailure) -> Bool {
        record("is \(author.wireForm) blocked by \(account.rawValue)")
        return try other.isBlocked(author, by: account)
    }

    package func senderContext(
        _ account: AccountNumber
    ) throws(DirectoryFailure) -> SenderContext? {
        record("senders of \(account.rawValue)")
        return try other.senderContext(account)
    }

    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        record("stored address of \(token.storageKey?.utf8.count ?? 0) octets")
        return try other.storedAddress(token)
    }

    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        record(
            "store \(addresses.map { "\($0.address.wireForm) until \($0.expiryDay ?? 0)" }) for \(account.rawValue)"
        )
        return try other.store(addresses, account: account, day: day, newPerDay: newPerDay)
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        record("reserve \(direction) for \(account.rawValue)")
        return try other.reserve(direction, account: account, day: day, limit: limit)
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        record("release \(direction) for \(account.rawValue)")
        other.release(direction, account: account, day: day)
    }

    package func reserveWarmUp(
        host: String, team: String, day: UInt64, ceiling: Int
    ) throws(DirectoryFailure) -> Bool {
        record("reserve warm-up at \(team)")
        return try other.reserveWarmUp(host: host, team: team, day: day, ceiling: ceiling)
    }

    package func releaseWarmUp(host: String, team: String, day: UInt64) {
        record("release warm-up at \(team)")
        other.releaseWarmUp(host: host, team: team, day: day)
    }

    package func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        record("is handed over for \(account.rawValue)")
        return try other.isHandedOver(mark, account: account, now: now)
    }

    package func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {
        record("begin to hand over \(copies.map(\.account.rawValue))")
        try other.beginHandOver(copies, until: until)
    }

    package func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {
        record("handed over for \(account.rawValue)")
        try other.rememberHandedOver(marks, account: account, until: until)
    }

    package func forgetHandedOver(
        _ marks: [[UInt8]], account: AccountNumber
    ) throws(DirectoryFailure) {
        record("forget for \(account.rawValue)")
        try other.forgetHandedOver(marks, account: account)
    }

    package func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        record("reserve automatic mail for \(account.rawValue)")
        return try other.reserveAutomatic(account: account, correspondent: correspondent, day: day)
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        record("failure of \(account.rawValue)")
        return try other.recordFailure(failure, of: account, rate: rate)
    }

    package func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission {
        try other.admission(of: team, to: provider, perHour: perHour, now: now)
    }

    package func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        record("complaint of \(account.rawValue)")
        return try other.recordComplaint(
            of: account, mark: mark, at: provider, day: day)
    }

    package func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        record("aggregate report")
        return try other.record(report, reporter: reporter, now: now)
    }

    package func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord {
        record("answer")
        return try other.recordAnswer(to: token, author: author)
    }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        record("count \(counter) for \(account.rawValue)")
        other.count(counter, account: account, day: day)
    }

    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {
        record("count \(outcome) for \(account.rawValue)")
        other.count(outcome, at: provider, account: account, now: now)
    }
}
