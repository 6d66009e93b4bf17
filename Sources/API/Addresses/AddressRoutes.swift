// `POST /v1/addresses/lookup`: whether a relay address is active, whether the team may write to it
// now, and if not, why. It also has the operator's switch.

import Accounts
import HTTP
import Hummingbird
import InternetMessage
import RelayCore

/// The reasons why a team cannot write to an address now, in the order in which the relay checks.
package enum AddressReason: Encodable, CaseIterable {
    case unknownAddress, unregisteredSource, addressRetired, userFrozen, teamFrozen,
        forwardingOff, senderBlocked, inboxUnverified, dailyLimit

    /// The relay's own code for the reason.
    package var code: RelayReason.Code {
        switch self {
        case .unknownAddress: .unknownAddress
        case .unregisteredSource: .unregisteredSource
        case .addressRetired: .addressRetired
        case .userFrozen: .userFrozen
        case .teamFrozen: .teamFrozen
        case .forwardingOff: .forwardingOff
        case .senderBlocked: .senderBlocked
        case .inboxUnverified: .inboxUnverified
        case .dailyLimit: .dailyLimit
        }
    }

    package func encode(to encoder: any Encoder) throws { try code.encode(to: encoder) }
}

package struct AddressRoutes: RouteModule {
    private let parts: RouteParts
    private let messagesPerDay: Int

    package init(_ parts: RouteParts, messagesPerDay: Int) {
        self.parts = parts
        self.messagesPerDay = messagesPerDay
    }

    struct Lookup: Decodable {
        let address: String
        let from: String?
    }

    /// The members are the same for an address that never existed and for another team's.
    struct Finding: Encodable {
        let address: String
        let isKnown: Bool
        let canWrite: Bool
        let reasons: [AddressReason]
        let account: Known?

        struct Known: Encodable {
            let sub: String
            let isForwardingOn: Bool
            /// The account's current address, if it differs.
            let currentAddress: String?
            let messagesLeftToday: Int
        }
    }

    struct Switch: Decodable {
        let address: String
        let forwarding: Bool
    }

    struct Switched: Encodable {
        let address: String
        let forwarding: Bool
        let changed: Bool
    }

    package func addRoutes(to routes: Routes) {
        routes.team(.addressesRead).post("/v1/addresses/lookup", use: lookup)
        routes.operator(.usersWrite).post("/v1/addresses/forwarding", use: setForwarding)
    }

    private func lookup(_ request: Request, _ context: TeamContext) async throws -> Response {
        let body = try await request.decode(Lookup.self, context)
        let address = try AddrSpec(member: body.address, at: "/address").folded
        let from = try body.from.map { try AddrSpec(member: $0, at: "/from").folded }
        return try await .json(
            parts.run { try finding(address, from: from, team: context.caller, $0) })
    }

    private func setForwarding(
        _ request: Request, _ context: OperatorContext
    ) async throws -> Response {
        let body = try await request.decode(Switch.self, context)
        let address = try AddrSpec(member: body.address, at: "/address").folded
        let change = context.change(now: parts.now())
        let changed = try await parts.run {
            try $0.addresses.setForwarding(address, on: body.forwarding, change)
        }
        return try .json(
            Switched(address: address.wireForm, forwarding: body.forwarding, changed: changed))
    }

    private func finding(
        _ address: AddrSpec, from: AddrSpec?, team: TeamCaller, _ store: Store
    ) throws -> Finding {
        guard
            let record = try store.relay.relayAddress(
                localPart: address.localPart, domain: address.domain),
            record.team.map({ $0.hasSameOctets(as: team.id) }) == true
        else {
            return Finding(
                address: address.wireForm, isKnown: false, canWrite: false,
                reasons: [.unknownAddress], account: nil)
        }
        let today = Day.number(parts.now())
        let sub = try store.addresses.address(address).account.sub
        let used = try store.counters.count(
            account: record.number.stored, kind: .forwarded, day: today)
        let isRegistered =
            try from.map { try store.sources.teams(registering: $0).contains(team.number) } ?? true
        let isBlocked =
            try record.hasBlocks
            && from.map { try store.relay.isBlocked($0, account: record.number) } ?? false
        let reasons = AddressReason.allCases.filter { reason in
            switch reason {
            case .unknownAddress: false
            case .unregisteredSource: !isRegistered
            case .addressRetired: record.isRetired || !record.hasLiveGrant
            case .userFrozen: record.freeze == .user
            case .teamFrozen: record.freeze == .team
            case .forwardingOff: !record.isForwardingOn
            case .senderBlocked: isBlocked
            case .inboxUnverified: record.inbox?.isVerified != true
            case .dailyLimit: used >= messagesPerDay
            }
        }
        return Finding(
            address: address.wireForm, isKnown: true, canWrite: reasons.isEmpty, reasons: reasons,
            account: Finding.Known(
                sub: sub, isForwardingOn: record.isForwardingOn,
                currentAddress: record.currentAddress == record.relayAddress
                    ? nil : record.currentAddress?.wireForm,
                messagesLeftToday: max(0, messagesPerDay - used)))
    }
}

extension AddrSpec {
    /// An email address in a body. Throws `Problem` (422).
    init(member text: String, at pointer: String) throws {
        guard text.utf8.count <= 320, let address = try? AddrSpec.typed(text) else {
            throw Problem.invalid("this is not a valid email address", at: pointer)
        }
        self = address
    }
}
