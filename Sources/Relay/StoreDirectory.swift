// The relay's directory, backed by the store: it turns records into the values that RelayCore decides on.

import Database
import Accounts
import InternetMessage
import RelayCore
import Synchronization

/// Accounts, tokens and counters of one installation.
package struct StoreDirectory: RelayDirectory {
    private let store: Store
    /// Nil for a read-only directory, as in `postern explain`: limits are checked, but nothing is counted.
    private let counters: CounterBuffer?
    /// Where tokens are written in one transaction with those of other messages; nil for a transaction each.
    private let commits: GroupCommit?
    /// Tokens that a read-only directory was asked to store: kept only for the life of the process, so that in one run of
    /// `postern explain --batch` an answer finds the correspondent of the earlier message.
    private let unwritten = Unwritten()
    /// Seconds since 1970.
    private let now: @Sendable () -> Int64

    package init(store: Store, counters: CounterBuffer?, commits: GroupCommit? = nil, now: @escaping @Sendable () -> Int64) {
        self.store = store
        self.counters = counters
        self.commits = commits
        self.now = now
    }

    private var isReadOnly: Bool { counters == nil }

    package func account(relayAddress localPart: String, domain: String) throws(DirectoryFailure) -> RelayAccount? {
        try reading {
            let now = now()
            guard let record = try store.relay.relayAddress(localPart: localPart, domain: domain, now: now) else { return nil }
            for record in [record] + record.successors {
                note(record.forwarded, .forwarded, account: record.accountNumber, now: now)
            }
            let successors =
                record.isRetired
                ? [] : try record.successors.compactMap { try account($0, isWanted: record.isForwardingOn, successors: []) }
            return try account(record, isWanted: true, successors: successors)
        }
    }

    /// Notes the value of a daily counter for `reserve`.
    private func note(_ count: Int, _ kind: CounterKind, account: Int64, now: Int64) {
        counters?.note(count, account: account, kind: kind, day: Day.number(now), now: now)
    }

    /// - Parameter isWanted: whether the user wants mail through the requested address.
    private func account(_ record: RelayAddressRecord, isWanted: Bool, successors: [RelayAccount]) throws -> RelayAccount? {
        guard let number = UInt64(exactly: record.accountNumber).flatMap(AccountNumber.init) else { return nil }
        return RelayAccount(
            number: number, relayAddress: record.address, isForwardingOn: record.isForwardingOn && isWanted,
            isActive: !record.isRetired && record.hasLiveGrant,
            inbox: record.inbox.map {
                UserInbox(address: $0, isVerified: record.isInboxVerified, isSuspended: record.isInboxSuspended)
            },
            inboxes: [], sharedName: nil, sources: record.sources.compactMap(Self.source),
            successors: successors, hasBlocks: record.hasBlocks, team: record.team.id)
    }

    package func account(_ number: AccountNumber) throws(DirectoryFailure) -> RelayAccount? {
        try reading {
            let now = now()
            guard let record = try store.relay.account(number: Int64(number.rawValue), day: Day.number(now)) else { return nil }
            note(record.usage.replied, .replied, account: record.accountNumber, now: now)
            // A retired account keeps the address that the team knows: a late bounce still has to name it.
            guard let address = record.currentAddress ?? record.lastAddress else { return nil }
            return RelayAccount(
                number: number, relayAddress: address, isForwardingOn: record.isForwardingOn,
                isActive: record.currentAddress != nil && record.hasLiveGrant,
                inbox: record.inbox.map {
                    UserInbox(address: $0, isVerified: record.isInboxVerified, isSuspended: record.isInboxSuspended)
                },
                inboxes: record.inboxes.map { UserInbox(address: $0.address, isVerified: $0.isVerified) },
                sharedName: record.sharedName?.full, sources: record.sources.compactMap(Self.source),
                team: record.team.id)
        }
    }

    package func sources(covering author: AddrSpec) throws(DirectoryFailure) -> [RegisteredSource] {
        try reading {
            try store.sources.sources(covering: author).compactMap(Self.source).filter { $0.covers(author) }
        }
    }

    package func isBlocked(_ author: AddrSpec, by account: AccountNumber) throws(DirectoryFailure) -> Bool {
        try reading { try store.relay.isBlocked(author, account: Int64(account.rawValue)) }
    }

    package func storedAddress(_ token: AddressToken) throws(DirectoryFailure) -> AddrSpec? {
        let key = token.storageKey
        if let address = unwritten.tokens.withLock({ $0[key] }) { return address }
        return try reading {
            let now = now()
            let purpose = token.purpose.isReverse ? StoredTokenPurpose.reverse : .returnPath
            guard let stored = try store.tokens.find(key, purpose: purpose, now: now) else { return nil }
            // If this cannot be written now, the next mail will do it.
            if token.purpose.isReverse, !isReadOnly { try? store.tokens.keep(stored, key, now: now) }
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
        let tokens = addresses.map { address in
            address.expiryDay.map {
                NewStoredToken(returnPath: address.token, address: address.address, expiresAt: (Int64($0) + 1) * 86_400)
            }
                ?? NewStoredToken(reverse: address.token, address: address.address)
        }
        return try reading {
            try store.tokens.store(
                tokens, account: Int64(account.rawValue), day: Int64(day), newPerDay: newPerDay, now: now(), in: commits)
        }
    }

    package func reserve(
        _ direction: LimitedDirection, account: AccountNumber, day: UInt64, limit: Int
    ) throws(DirectoryFailure) -> Bool {
        let kind = direction.kind
        return try reading {
            guard let counters else {
                return try store.counters.wouldReserve(
                    account: Int64(account.rawValue), kind: kind, day: Int64(day), limit: limit)
            }
            return try counters.reserve(account: Int64(account.rawValue), kind: kind, day: Int64(day), limit: limit, now: now())
        }
    }

    package func release(_ direction: LimitedDirection, account: AccountNumber, day: UInt64) {
        try? counters?.release(account: Int64(account.rawValue), kind: direction.kind, day: Int64(day))
    }

    package func isHandedOver(_ mark: [UInt8], account: AccountNumber, now: Int64) throws(DirectoryFailure) -> Bool {
        try reading {
            try store.counters.isMarked(account: Int64(account.rawValue), purpose: Self.handedOver, mark: mark, now: now)
        }
    }

    package func beginHandOver(_ copies: [(mark: [UInt8], account: AccountNumber)], until: Int64) throws(DirectoryFailure) {
        guard !isReadOnly else { return }
        let marks = copies.map { (account: Int64($0.account.rawValue), mark: $0.mark, expiresAt: until) }
        try reading { try store.counters.mark(purpose: Self.begun, marks, .durable) }
    }

    package func rememberHandedOver(_ marks: [[UInt8]], account: AccountNumber, until: Int64) throws(DirectoryFailure) {
        guard !isReadOnly else { return }
        let marks = marks.map { (account: Int64(account.rawValue), mark: $0, expiresAt: until) }
        try reading { try store.counters.mark(purpose: Self.handedOver, marks, inPlaceOf: Self.begun) }
    }

    /// The purposes of the marks for fan-out copies: about to be handed over, and handed over.
    private static let begun = "fan-out-begun"
    private static let handedOver = "fan-out"

    package func reserveAutomatic(account: AccountNumber, correspondent: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool {
        let number = Int64(account.rawValue)
        return try reading {
            isReadOnly
                ? try store.counters.wouldReserveAutomaticReply(account: number, correspondentKey: correspondent, day: Int64(day))
                : try store.counters.automaticReplyReserve(account: number, correspondentKey: correspondent, day: Int64(day))
        }
    }

    package func recordFailure(
        _ failure: InboxFailure, of account: AccountNumber, rate: SuspensionRate?
    ) throws(DirectoryFailure) -> FailureRecord {
        guard let counters else { return .recorded }
        let mark = (0..<5).map { UInt8(truncatingIfNeeded: failure.nonce >> (8 * UInt64($0))) }
        return try reading {
            // The failure is judged against the number of forwards, the last of which may not be written yet.
            try counters.flush()
            let record = try store.bounces.record(
                BounceRepository.Failure(
                    account: Int64(account.rawValue), mark: mark, expiresAt: (Int64(failure.expiryDay) + 1) * 86_400,
                    sentDay: Int64(failure.sentDay), rules: ReportRules.version),
                days: rate?.days ?? 1, now: now()
            ) { standing in rate?.isReached(failures: standing.failures, forwarded: standing.forwarded) ?? false }
            return switch record {
            case .known: .known
            case .recorded: .recorded
            case .suspended: .suspended
            }
        }
    }

    package func recordComplaint(of account: AccountNumber, mark: [UInt8], day: UInt64) throws(DirectoryFailure) -> Bool {
        guard !isReadOnly else { return true }
        return try reading {
            try store.complaints.record(account: Int64(account.rawValue), mark: mark, day: Int64(day), now: now())
        }
    }

    package func record(_ report: AggregateReport, reporter: String, now: Int64) throws(DirectoryFailure) -> Bool {
        guard !isReadOnly else { return true }
        let sources = report.messages.map { source, count in
            AggregateReportRepository.Source(
                address: source.address.description, passesDKIM: source.passesDKIM, passesSPF: source.passesSPF,
                disposition: source.disposition, messages: count)
        }
        return try reading {
            try store.aggregateReports.add(
                AggregateReportRepository.Report(
                    domain: report.domain, reporter: reporter, identifier: report.identifier, beginsAt: report.beginsAt,
                    endsAt: report.endsAt, passed: report.passed, failed: report.failed), sources, now: now)
        }
    }

    package func recordAnswer(to token: AnswerToken, author: AddrSpec) throws(DirectoryFailure) -> AnswerRecord {
        let answered = try reading {
            try store.verifications.recordAnswer(
                to: Int64(clamping: token.number), nonce: Int64(clamping: token.nonce), author: author, isTrial: isReadOnly,
                now: now())
        }
        guard let answered else { return .notTheInbox }
        return answered.isFirstToday ? .first(language: answered.language) : .repeated
    }

    package func count(_ counter: RelayCounter, account: AccountNumber, day: UInt64) {
        counters?.count(account: Int64(account.rawValue), kind: counter.kind, day: Int64(day))
    }

    private final class Unwritten: Sendable {
        let tokens = Mutex<[String: AddrSpec]>([:])
    }

    /// Nil for a source that cannot be read: it then proves nothing.
    private static func source(_ source: OutboundSource) -> RegisteredSource? {
        source.relayScope.map { RegisteredSource(scope: $0, pairedEnvelopeDomain: source.envelopeDomain) }
    }

    /// If the store cannot answer, that is a failure, never an answer.
    private func reading<Value>(_ work: () throws -> Value) throws(DirectoryFailure) -> Value {
        do { return try work() } catch { throw DirectoryFailure("\(error)") }
    }
}

extension LimitedDirection {
    /// The store's counter for the daily limit.
    fileprivate var kind: CounterKind { self == .forward ? .forwarded : .replied }
}

extension RelayCounter {
    /// The store's counter.
    fileprivate var kind: CounterKind {
        switch self {
        case .forwarded: .forwarded
        case .replied: .replied
        case .inboxBounced: .bouncedPermanently
        case .reportRelayed: .reportsRelayed
        case .reportDropped: .reportsDropped
        case .automaticDropped: .automaticDiscarded
        case .leakIncident: .leakIncident
        }
    }
}

extension OutboundSource {
    fileprivate var relayScope: RegisteredSource.Scope? {
        switch kind {
        case .domain: .domain(value)
        case .address: AddrSpec(envelope: value).map { .address($0) }
        }
    }
}
