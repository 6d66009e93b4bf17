// The scope of a transaction with a single recipient, from its path and the directory.

import InternetMessage

struct RecipientScope {
    let engine: RelayEngine
    /// Days since 1970.
    let day: UInt64

    /// Decides by form and MAC, and by whether a relay address exists. The result reveals nothing
    /// of an account's state.
    func scope(of path: String) throws(Refusal) -> TransactionScope {
        switch RecipientReading.read(path, settings: engine.settings, tokens: engine.tokens) {
        case .unknown: throw .unknownAddress("no such local part")
        case .forgedReverse: throw .replyNotProved(RelayReason(.badReverseAddress, "MAC is wrong"))
        case .forgedReturnPath: throw .badReturnPath("MAC is wrong")
        case .elsewhere: return .elsewhere
        case .operatorMailbox(let target):
            guard let target else { throw .notConfigured("operator_address is not set") }
            return .operatorMail([target])
        case .relayAddress(let localPart, let domain):
            guard
                let account = try Refusal.deferring(
                    engine.directory.account(relayAddress: localPart, domain: domain))
            else {
                throw .unknownAddress("relay address was never issued")
            }
            return .forward(account)
        case .reverse(let token):
            return .reply(token.account, correspondents: [try correspondent(of: token)], beside: [])
        case .returnPath(let token):
            guard token.expiryDay >= day else { throw .badReturnPath("expired") }
            return .returnPath(token)
        case .answer(let token):
            guard token.expiryDay >= day else {
                throw .unknownAddress("the verification has expired")
            }
            return .answer(token)
        }
    }

    private func correspondent(of token: AddressToken) throws(Refusal) -> AddrSpec {
        guard let address = try engine.address(of: token) else {
            throw .replyNotProved(RelayReason(.badReverseAddress, "nothing is stored under it"))
        }
        guard engine.settings.isDeadEnd(address.domain, for: token.account) else { return address }
        guard
            case .operatorMailbox(let target) = RecipientReading.read(
                "<\(address.wireForm)>", settings: engine.settings, tokens: engine.tokens)
        else { throw .anotherUsersAddress }
        guard target != nil else { throw .notConfigured("operator_address is not set") }
        return address
    }
}
