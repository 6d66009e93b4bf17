// The parts of a sandbox that a developer's orders change, in one place.

import Accounts
import Database
import Decisions
import MailAuth
import SignIn
import Support
import Synchronization

final class SandboxDesk: Sendable {
    let facts: SandboxFacts
    let clock: SandboxClock
    let zone: SandboxZone
    let failures: SandboxFailures
    let journal: SandboxJournal
    /// Signs the tokens for a `sub`.
    let issuer: SandboxIssuer
    /// The store as it was at the start: a file.
    let copy: String
    let statuses = OrderedStatuses()
    private let records: [String: ZoneResolver.Node]
    private let held = Mutex<SandboxMailRoom?>(nil)

    init(
        facts: SandboxFacts, clock: SandboxClock, zone: SandboxZone, failures: SandboxFailures,
        journal: SandboxJournal,
        issuer: SandboxIssuer, copy: String, records: [String: ZoneResolver.Node]
    ) {
        (self.facts, self.clock, self.zone, self.failures, self.journal) = (
            facts, clock, zone, failures, journal
        )
        (self.issuer, self.copy, self.records) = (issuer, copy, records)
    }

    /// From now on, mail is accepted.
    func open(_ room: SandboxMailRoom) { held.withLock { $0 = room } }

    /// The mail system; nil until it is made.
    var room: SandboxMailRoom? { held.withLock { $0 } }

    /// Resets all parts except the store and the journal.
    func clear() {
        failures.removeAll()
        statuses.clear()
        zone.snapshot = records
        room?.clear()
        clock.reset()
    }
}

/// `real_user_status` of users, as ordered.
final class OrderedStatuses: Sendable {
    private let values = Mutex<[WireText: Int]>([:])

    /// - Parameter status: 0 … 2; nil: the policy decides.
    func set(_ status: Int?, of user: String) { values.withLock { $0[WireText(user)] = status } }

    func status(of user: String) -> Int? { values.withLock { $0[WireText(user)] } }

    func clear() { values.withLock { $0 = [:] } }
}

/// The status policy, with the ordered status in place of its result.
struct SandboxStatuses: StatusSource {
    let base: any StatusSource
    let ordered: OrderedStatuses

    func status(
        _ connection: any DatabaseConnection, of request: ProviderAuthorization, now: Int64
    ) throws(StoreFailure) -> GivenStatus? {
        guard let given = try base.status(connection, of: request, now: now) else { return nil }
        guard let status = ordered.status(of: request.grant.userID) else { return given }
        return GivenStatus(
            status: status, reasons: [], signals: given.signals, policyName: given.policyName,
            policyVersion: given.policyVersion, policyHash: given.policyHash)
    }
}
