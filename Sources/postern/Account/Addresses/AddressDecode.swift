// postern address decode: the account of an address at a relay domain, for every form of address.

import Accounts
import ArgumentParser
import Foundation
import InternetMessage
import PosternConfiguration
import RelayCore
import Support

extension AddressCommand {
    struct Decode: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Show what an address at a relay domain is: a relay address, a reverse address or a return path.",
            discussion: """
                A reverse address leads from a user to a correspondent, and a return path to the sender of a message: the logs \
                of Postfix have them. The correspondent shows as l…@example.com; --reveal shows it in full, and the audit \
                records that.
                """)

        @Argument(help: "The address, as a log has it; - reads it from standard input.")
        var address: String
        @OptionGroup var reveal: RevealOptions
        @OptionGroup var installation: InstallationOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            let text =
                address == "-" ? try lineOfInput("give an address on standard input") : address
            let bare =
                text.utf8.first == UInt8(ascii: "<") && text.utf8.last == UInt8(ascii: ">")
                ? String(text.unicodeScalars.dropFirst().dropLast()) : text
            let address = try AddrSpec.typed(bare)
            let decoded = try installation.withInstallation {
                try DecodedAddress(address, $0, reveal)
            }
            try output.print(decoded) { decoded.lines }
        }
    }
}

/// The meaning of an address at a relay domain.
struct DecodedAddress: Encodable {
    let kind: String
    let account: Int64
    let sub: String
    let team: String
    let user: String?
    /// The account's own relay address.
    let relayAddress: String?
    /// Hidden in part, unless --reveal was given.
    let correspondent: String?
    let goodUntil: String?
    /// The state of a relay address.
    let state: String?

    /// The number of the account that a reverse address or a return path belongs to;
    /// nil for other addresses.
    static func account(of address: AddrSpec, _ installation: Installation) -> Int64? {
        guard isAtRelayDomain(address, installation),
            let keys = TokenKeys(installation.keys.token),
            case .token(let token) = TokenMint(keys: keys).read(address.localPart)
        else { return nil }
        return Int64(token.account.rawValue)
    }

    private static func isAtRelayDomain(_ address: AddrSpec, _ installation: Installation) -> Bool {
        installation.configuration.relayDomains.contains {
            $0.hasSameOctets(as: address.domain.asciiLowercased)
        }
    }

    init(_ address: AddrSpec, _ installation: Installation, _ reveal: RevealOptions) throws {
        let store = installation.store
        guard Self.isAtRelayDomain(address, installation) else {
            throw CommandError.data(
                "the address is not at a relay domain (\(installation.configuration.relayDomains.joined(separator: ", ")))"
            )
        }
        guard let keys = TokenKeys(installation.keys.token) else {
            throw CommandError.data("the key file has no token key")
        }
        let mint = TokenMint(keys: keys)
        let number: Int64
        switch mint.read(address.localPart) {
        case .token(let token):
            let directory = StoreDirectory(store: store, counters: nil, now: PosternClock.now)
            let stored = StoredAddresses(directory: directory, tokens: mint)
            let correspondent = stored.address(of: token)
            if let failure = stored.failure { throw failure }
            number = Int64(token.account.rawValue)
            let shown = try reveal.disclosure(
                of: "account:\(number)", in: store, as: .address)
            self.correspondent = correspondent.map { shown.shown(InboxAddress($0)) }
            state = nil
            goodUntil =
                token.purpose.isReverse
                ? nil : String(timestamp(Int64(token.expiryDay) * 86_400).prefix(10))
            kind =
                switch token.purpose {
                case .reverse, .storedReverse:
                    "reverse address: mail from the user to it goes to the correspondent"
                case .forward, .storedForward:
                    "return path of a forwarded message: reports go to the correspondent, who sent it"
                case .silentForward:
                    "return path of a forwarded message without a proved sender: reports are only counted"
                case .reply: "return path of a reply: reports go to the user"
                }
        case .answer, .forgedAnswer:
            throw CommandError.data(
                "it receives the answers to a verification message, and belongs to no account")
        case .forged:
            throw CommandError.data("another installation made it, or the key file lacks its key")
        case .notAToken:
            let found = try store.addresses.address(address)
            number = found.account.number
            (correspondent, goodUntil, state) = (nil, nil, found.state)
            kind = "relay address"
        }
        let account = try store.accounts.account(number)
        (self.account, sub, team, user) = (number, account.sub, account.teamID, account.userID)
        relayAddress = try store.addresses.current(account: number)?.address.wireForm
    }

    var lines: [(String, String)] {
        [
            ("kind", kind), ("account", "\(account)"), ("sub", sub), ("team", team),
            ("user", user ?? "-"),
            ("address", relayAddress ?? "-"), ("correspondent", correspondent ?? "-"),
        ] + (goodUntil.map { [("good until", $0)] } ?? []) + (state.map { [("state", $0)] } ?? [])
    }
}
