// The relay's directory, backed by the store: its reads, and its writes, some of which are
// collected and written together.

import Database
import InternetMessage
import RelayCore
import Synchronization

/// Accounts, tokens and counters of one installation.
package struct StoreDirectory: RelayDirectory {
    private let store: Store
    /// Nil for a read-only directory, as in `postern explain`: limits are
    /// checked, but nothing is counted.
    private let counters: CounterBuffer?
    /// Writes tokens in one transaction with those of other messages; nil for a separate
    /// transaction each.
    private let commits: GroupCommit?
    /// Tokens that a read-only directory would have stored, kept only while the process runs. So in
    /// one run of `postern explain --batch` a reply finds the correspondent of the earlier message.
    private let unwritten = Unwritten()
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    package init(
        store: Store, counters: CounterBuffer?, commits: GroupCommit? = nil,
        now: @escaping @Sendable () -> Int64
    ) {
        self.store = store
        self.counters = counters
        self.commits = commits
        self.now = now
    }

    private var isReadOnly: Bool { counters == nil }

    package func account(
        relayAddress localPart: String, domain: String
    ) throws(DirectoryFailure) -> RelayAccount? {
        try reading {
            let now = now()
            guard
                let account = try store.relay.relayAddress(
                    localPart: localPart, domain: domain, now: now)
            else { return nil }
            for account in [account] + account.successors { note(account, .forwarded, now: now) }
            return account
        }
    }

    /// Notes the value of a daily counter for `reserve`.
    private func note(_ account: RelayAccount, _ kind: CounterKind, now: Int64) {
        counters?.note(
            account.counted, account: account.number.stored, kind: kind, day: Day.number(now),
            now: now)
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        try reading {
            let now = now()
            guard let account = try store.relay.account(number, day: Day.number(now)) else {
                return nil
            }
            note(account, .replied, now: now)
            return account
        }
    }

    package func senderContext(
        _ account: AccountNumber
    ) throws(DirectoryFailure) -> SenderContext? {
        try reading { try store.relay.senderContext(account) }
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        try reading {
            try store.sources.sources(covering: author).compactMap(\.registered).filter {
                $0.covers(author)
            }
        }
    }

    package func isBlocked(
        _ author: AddrSpec, by account: AccountNumber
    ) throws(DirectoryFailure) -> Bool {
        try reading { try store.relay.isBlocked(author, account: account) }
    }

    package func admission(
        of team: String, to provider: ProviderFamily, perHour: Int, now: Int64
    ) throws(DirectoryFailure) -> DeliveryAdmission {
        if let counters {
            return counters.deliveries.gate.admission(
                of: team, to: provider, perHour: perHour, now: now)
        }
        return try reading {
            let gate = DeliveryGate()
            try gate.refresh(store.deliveries, now: now)
            return gate.admission(of: team, to: provider, perHour: perHour, now: now)
        }
    }

    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        guard let key = token.storageKey else { return nil }
        if let address = unwritten.tokens.withLock({ $0[key] }) { return address }
        return try reading {
            let now = now()
            let purpose = token.purpose.isReverse ? StoredTokenPurpose.reverse : .returnPath
            guard let stored = try store.tokens.find(key, purpose: purpose, now: now) else {
                return nil
            }
            // If this cannot be written now, the next mail will do it.
            if token.purpose.isReverse, !isReadOnly {
                try? store.tokens.keep(stored, key, now: now)
            }
            return stored.address
        }
    }

    package func store(
        _ addresses: [StoredAddress], account: AccountNumber, day: UInt64, newPerDay: Int
    ) throws(DirectoryFailure) -> Bool {
        guard !isReadOnly else {
            unwritten.tokens.withLock { tokens in
                for address in addresses { tokens[address.token] = address.address }
            }
            return true
        }
        return try reading {
            try store.tokens.store(
                addresses, account: account, day: Int64(day), newPerDay: newPerDay, now: now(),
                in: commits)
        }
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        let kind = direction.kind
        return try reading {
            guard let counters else {
                return try store.counters.wouldReserve(
                    account: account.stored, kind: kind, day: Int64(day), limit: limit)
            }
            return try counters.reserve(
                account: account.stored, kind: kind, day: Int64(day), limit: limit, now: now())
        }
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        try? counters?.release(account: account.stored, kind: direction.kind, day: Int64(day))
    }

    package func reserveWarmUp(
        host: String, team: String, day: UInt64, ceiling: Int
    ) throws(DirectoryFailure) -> Bool {
        try reading {
            isReadOnly
                ? try store.deliveries.wouldReserveWarmUp(
                    host: host, team: team, day: Int64(day), ceiling: ceiling)
                : try store.deliveries.reserveWarmUp(
                    host: host, team: team, day: Int64(day), ceiling: ceiling)
        }
    }

    package func releaseWarmUp(host: String, team: String, day: UInt64) {
        guard !isReadOnly else { return }
        try? store.deliveries.releaseWarmUp(host: host, team: team, day: Int64(day))
    }

    package func isHandedOver(
        _ mark: [UInt8], account: AccountNumber, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        try reading {
            try store.counters.isMarked(
                account: account.stored, purpose: Self.handedOver, mark: mark, now: now)
        }
    }

    package func beginHandOver(
        _ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64
    ) throws(DirectoryFailure) {
        guard !isReadOnly else { return }
        let marks = copies.map { (account: $0.account.stored, mark: $0.mark, expiresAt: until) }
        try reading { try store.counters.mark(purpose: Self.begun, marks, .durable) }
    }

    package func rememberHandedOver(
        _ marks: [[UInt8]], account: AccountNumber, until: Int64
    ) throws(DirectoryFailure) {
        guard !isReadOnly else { return }
        let marks = marks.map { (account: account.stored, mark: $0, expiresAt: until) }
        try reading {
            try store.counters.mark(purpose: Self.handedOver, marks, inPlaceOf: Self.begun)
        }
    }

    package func forgetHandedOver(
        _ marks: [[UInt8]], account: AccountNumber
    ) throws(DirectoryFailure) {
        guard !isReadOnly else { return }
        try reading {
            try store.counters.unmark(account: account.stored, purpose: Self.handedOver, marks)
        }
    }

    /// The purposes of the marks for copies to further users: before the hand-over to the mail
    /// server, and after it.
    private static let begun = "fan-out-begun"
    private static let handedOver = "fan-out"

    package func reserveAutomatic(
        account: AccountNumber, correspondent: [UInt8], day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        let number = account.stored
        return try reading {
            isReadOnly
                ? try store.counters.wouldReserveAutomaticReply(
                    account: number, correspondentKey: correspondent, day: Int64(day))
                : try store.counters.automaticReplyReserve(
                    account: number, correspondentKey: correspondent, day: Int64(day))
        }
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        guard let counters else { return .recorded }
        return try reading {
            // The failure is compared with the number of forwards, so the counts in memory are
            // written first.
            try counters.flush()
            return try store.bounces.record(failure, of: account, rate: rate, now: now())
        }
    }

    package func recordComplaint(
        of account: AccountNumber, mark: [UInt8], at provider: ProviderFamily?, day: UInt64
    ) throws(DirectoryFailure) -> Bool {
        guard !isReadOnly else { return true }
        return try reading {
            try store.complaints.record(
                account: account.stored, mark: mark, provider: provider, day: Int64(day),
                now: now())
        }
    }

    package func record(
        _ report: AggregateReport, reporter: String, now: Int64
    ) throws(DirectoryFailure) -> Bool {
        guard !isReadOnly else { return true }
        return try reading { try store.aggregateReports.add(report, reporter: reporter, now: now) }
    }

    package func recordAnswer(
        to token: AnswerToken, author: AddrSpec
    ) throws(DirectoryFailure) -> AnswerRecord {
        try reading {
            try store.verifications.recordAnswer(
                to: token, author: author, isTrial: isReadOnly, now: now())
        }
    }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        counters?.count(account: account.stored, kind: counter.kind, day: Int64(day))
    }

    package func count(
        _ outcome: DeliveryOutcome, at provider: ProviderFamily, account: AccountNumber, now: Int64
    ) {
        counters?.deliveries.count(outcome, at: provider, account: account.stored, now: now)
    }

    private final class Unwritten: Sendable {
        let tokens = Mutex<[String: AddrSpec]>([:])
    }

    /// An error of the store is thrown as a failure, and never looks like a result.
    private func reading<Value>(_ work: () throws -> Value) throws(DirectoryFailure) -> Value {
        do { return try work() } catch { throw DirectoryFailure("\(error)") }
    }
}
