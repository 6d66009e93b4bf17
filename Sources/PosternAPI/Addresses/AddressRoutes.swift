// `POST /v1/addresses/lookup`: is a relay address active, may we write to it now, and why not. And the operator's switch.

import Hummingbird
import InternetMessage
import PosternStore

package struct AddressRoutes: RouteModule {
    private let store: Store
    private let pool: BlockingPool
    private let now: @Sendable () -> Int64
    private let messagesPerDay: Int

    package init(_ store: Store, _ pool: BlockingPool, now: @escaping @Sendable () -> Int64, messagesPerDay: Int) {
        self.store = store
        self.pool = pool
        self.now = now
        self.messagesPerDay = messagesPerDay
    }

    struct Lookup: Decodable { let address: String; let from: String? }

    /// The same members for an address that never was and for another team's.
    struct Finding: Encodable {
        let address: String
        let isKnown: Bool
        let canWrite: Bool
        let reasons: [String]
        let account: Known?

        struct Known: Encodable {
            let sub: String
            let isForwardingOn: Bool
            /// Where it differs: the address of the account now.
            let currentAddress: String?
            let messagesLeftToday: Int
        }
    }

    struct Switch: Decodable { let address: String; let forwarding: Bool }

    struct Switched: Encodable {
        let address: String
        let forwarding: Bool
        let changed: Bool
    }

    package func addRoutes(to routes: APIRoutes) {
        routes.post("/v1/addresses/lookup", access: .team(.addressesRead)) { [self] request, context in
            let team = try context.team(scope: .addressesRead)
            let body = try await request.decode(Lookup.self, context)
            let address = try Self.address(body.address, at: "/address")
            let from = try body.from.map { try Self.address($0, at: "/from") }
            return try await .json(pool.run { try finding(address, from: from, team: team) })
        }
        routes.post("/v1/addresses/forwarding", access: .operator(.usersWrite)) { [self] request, context in
            let body = try await request.decode(Switch.self, context)
            let address = try Self.address(body.address, at: "/address")
            let change = context.change(now: now())
            let changed = try await pool.run { try store.addresses.setForwarding(address, on: body.forwarding, change) }
            return try .json(Switched(address: address.wireForm, forwarding: body.forwarding, changed: changed))
        }
    }

    static func address(_ text: String, at pointer: String) throws -> AddrSpec {
        guard text.utf8.count <= 320, let address = try? AddrSpec.typed(text) else {
            throw Problem.invalid("this is not a valid email address", at: pointer)
        }
        return address.folded
    }

    private func finding(_ address: AddrSpec, from: AddrSpec?, team: APIContext.Team) throws -> Finding {
        guard let record = try store.relay.relayAddress(localPart: address.localPart, domain: address.domain),
            record.team.number == team.number
        else {
            return Finding(address: address.wireForm, isKnown: false, canWrite: false, reasons: ["unknown-address"], account: nil)
        }
        let today = Day.number(now())
        let sub = try store.addresses.address(address).account.sub
        let used = try store.counters.count(account: record.accountNumber, kind: .forwarded, day: today)
        // In the order in which the relay asks.
        var reasons: [String] = []
        if let from, !(try store.sources.teams(registering: from).contains(team.number)) { reasons.append("unregistered-source") }
        if record.isRetired || !record.hasLiveGrant { reasons.append("address-retired") }
        if !record.isForwardingOn { reasons.append("forwarding-off") }
        if record.inbox == nil || !record.isInboxVerified { reasons.append("inbox-unverified") }
        if used >= messagesPerDay { reasons.append("daily-limit") }
        return Finding(
            address: address.wireForm, isKnown: true, canWrite: reasons.isEmpty, reasons: reasons,
            account: Finding.Known(
                sub: sub, isForwardingOn: record.isForwardingOn,
                currentAddress: record.currentAddress == record.address ? nil : record.currentAddress.wireForm,
                messagesLeftToday: max(0, messagesPerDay - used)))
    }
}
