// Makes and reads the local parts of reverse addresses and return paths. Stateless but for addresses that do not fit.

import InternetMessage
import MailCrypto

package struct TokenMint: Sendable {
    private let keys: TokenKeys

    /// RFC 5321 section 4.5.3.1.1.
    private static let maximumLocalPart = 64
    private static let accountDigits = 7
    private static let nonceDigits = 8
    private static let dayDigits = 4
    /// 13 characters are 65 bits of HMAC-SHA-256.
    private static let macDigits = 13
    /// The name of a stored token stands for the address itself, so it has to be free of collisions too: 125 bits.
    private static let storedMACDigits = 25

    package init(keys: TokenKeys) { self.keys = keys }

    // MARK: Making

    /// The reverse address of a correspondent for one account; always the same for the same key.
    package func reverse(account: AccountNumber, correspondent: AddrSpec) -> MintedToken {
        let head = Base32.encode(account.rawValue, digits: Self.accountDigits)
        return mint(inline: .reverse, stored: .storedReverse, head: head, address: correspondent)
    }

    /// The return path of a forwarded message.
    /// - Parameters:
    ///   - sender: the envelope sender, where it was proved; nil makes a return path that reports to nobody.
    ///   - nonce: 40 random bits.
    ///   - expiryDay: days since 1970.
    package func forwardReturnPath(account: AccountNumber, sender: AddrSpec?, nonce: UInt64, expiryDay: UInt64) -> MintedToken {
        let head = returnPathHead(account: account, nonce: nonce, expiryDay: expiryDay)
        guard let sender else { return MintedToken(localPart: bare(.silentForward, head: head), addressToStore: nil) }
        return mint(inline: .forward, stored: .storedForward, head: head, address: sender)
    }

    /// The return path of a reply. Holds nothing of the inbox: the account leads to it.
    package func replyReturnPath(account: AccountNumber, nonce: UInt64, expiryDay: UInt64) -> MintedToken {
        let head = returnPathHead(account: account, nonce: nonce, expiryDay: expiryDay)
        return MintedToken(localPart: bare(.reply, head: head), addressToStore: nil)
    }

    /// The local part that an answer to a verification message comes to.
    package func answer(_ token: AnswerToken) -> String {
        let head = returnPathHead(number: token.number, nonce: token.nonce, expiryDay: token.expiryDay)
        return String(
            decoding: [keys.activeID, AnswerToken.letter] + head + Self.mac(AnswerToken.letter, head: head, address: [], key: keys.activeKey),
            as: UTF8.self)
    }

    private func returnPathHead(account: AccountNumber, nonce: UInt64, expiryDay: UInt64) -> [UInt8] {
        returnPathHead(number: account.rawValue, nonce: nonce, expiryDay: expiryDay)
    }

    private func returnPathHead(number: UInt64, nonce: UInt64, expiryDay: UInt64) -> [UInt8] {
        Base32.encode(number, digits: Self.accountDigits)
            + Base32.encode(nonce & ((1 << 40) - 1), digits: Self.nonceDigits)
            + Base32.encode(expiryDay, digits: Self.dayDigits)
    }

    private func mint(
        inline: AddressToken.Purpose, stored: AddressToken.Purpose, head: [UInt8], address: AddrSpec
    ) -> MintedToken {
        let suffixLength = 2 + head.count + Self.macDigits
        if let readable = Self.readable(address), readable.count + 1 + suffixLength <= Self.maximumLocalPart {
            return MintedToken(localPart: token(inline, head: head, address: readable, before: readable), addressToStore: nil)
        }
        return MintedToken(localPart: token(stored, head: head, address: Self.canonical(address)), addressToStore: address)
    }

    private func bare(_ purpose: AddressToken.Purpose, head: [UInt8]) -> String { token(purpose, head: head, address: []) }

    /// The local part, with what can be read before the dot where there is anything.
    private func token(_ purpose: AddressToken.Purpose, head: [UInt8], address: [UInt8], before readable: [UInt8] = []) -> String {
        var text = readable
        text.reserveCapacity(readable.count + 3 + head.count + Self.storedMACDigits)
        if !readable.isEmpty { text.append(UInt8(ascii: ".")) }
        text.append(keys.activeID)
        text.append(purpose.rawValue)
        text += head
        text += Self.mac(purpose, head: head, address: address, key: keys.activeKey)
        return String(decoding: text, as: UTF8.self)
    }

    private static func mac(_ purpose: AddressToken.Purpose, head: [UInt8], address: [UInt8], key: HMACSHA256) -> ArraySlice<UInt8> {
        mac(purpose.rawValue, head: head, address: address, key: key, digits: purpose.isStored ? storedMACDigits : macDigits)
    }

    private static let label = Array("postern address token 1\n".utf8)

    private static func mac(
        _ letter: UInt8, head: [UInt8], address: [UInt8], key: HMACSHA256, digits: Int = macDigits
    ) -> ArraySlice<UInt8> {
        var message = label
        message.reserveCapacity(label.count + 1 + head.count + address.count)
        message.append(letter)
        message += head
        message += address
        return Base32.encode(key.authenticationCode(for: message)).prefix(digits)
    }

    /// `local=domain`, where the address can stand in a local part as it is: ASCII dot-atoms, no letter whose case could matter.
    private static func readable(_ address: AddrSpec) -> [UInt8]? {
        var text = Array(address.localPart.utf8)
        let equals = text.count
        text.append(UInt8(ascii: "="))
        text += address.domain.lowercased().utf8
        guard isDotAtom(text[..<equals]), isDotAtom(text[(equals + 1)...]), !text[..<equals].contains(where: { (0x41...0x5A).contains($0) }),
            !text[(equals + 1)...].contains(UInt8(ascii: "="))
        else { return nil }
        return text
    }

    private static func isDotAtom(_ text: ArraySlice<UInt8>) -> Bool {
        var isAfterAtom = false
        for octet in text {
            let isDot = octet == UInt8(ascii: ".")
            guard isDot ? isAfterAtom : octet < 0x80 && octet.isAtomText else { return false }
            isAfterAtom = !isDot
        }
        return isAfterAtom
    }

    /// The octets of an address that a stored token authenticates.
    private static func canonical(_ address: AddrSpec) -> [UInt8] {
        Array(address.localPart.utf8) + [0] + Array(address.domain.lowercased().utf8)
    }

    // MARK: Reading

    /// How the tokens of one account and purpose look behind the last dot, whatever address and key they are made with.
    struct Form {
        let purpose: AddressToken.Purpose
        /// What stands right behind the key id: purpose and account.
        let anchor: [UInt8]
        /// Octets from the key id to the end.
        let length: Int
    }

    /// The forms of all purposes.
    static func forms(account: AccountNumber) -> [Form] {
        let digits = Base32.encode(account.rawValue, digits: accountDigits)
        return [.reverse, .forward, .storedReverse, .storedForward, .silentForward, .reply].map { (purpose: AddressToken.Purpose) in
            Form(
                purpose: purpose, anchor: [purpose.rawValue] + digits,
                length: 2 + accountDigits + (purpose.isReverse ? 0 : nonceDigits + dayDigits) + (purpose.isStored ? storedMACDigits : macDigits))
        }
    }

    /// Whether what stands behind the last dot of a local part, in lower case, has length and letters of a token: told without a code,
    /// as every word before a relay domain is asked.
    static func mayBeTail(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        let (reverse, returnPath) = (2 + accountDigits, 2 + accountDigits + nonceDigits + dayDigits)
        switch octets.count {
        case reverse + macDigits, reverse + storedMACDigits, returnPath + macDigits, returnPath + storedMACDigits: break
        default: return false
        }
        for octet in octets where !(octet >= 0x61 && octet <= 0x7A || octet >= 0x32 && octet <= 0x37) { return false }
        return true
    }

    /// Whether a local part is written as a token whose key is no longer there, so that it can only be told by its form.
    func isRetired(_ localPart: String) -> Bool {
        let text = localPart.utf8.map { $0.asciiLowercased }
        let tail = text.lastIndex(of: UInt8(ascii: ".")).map { text[($0 + 1)...] } ?? text[...]
        guard case .forged = read(localPart), let id = tail.first else { return false }
        return keys.key(id) == nil
    }

    /// Reads a local part, in any letter case. Judges form and MAC; whether a return path is expired is the caller's to ask.
    package func read(_ localPart: String) -> TokenReading {
        let text = localPart.utf8.map { $0.asciiLowercased }
        guard text.count <= Self.maximumLocalPart else { return .notAToken }
        let dot = text.lastIndex(of: UInt8(ascii: "."))
        let tail = Array(dot.map { text[($0 + 1)...] } ?? text[...])
        guard tail.count > 2, Base32.isEncoded(tail) else { return .notAToken }
        if tail[1] == AnswerToken.letter, dot == nil { return readAnswer(tail) }
        guard let purpose = AddressToken.Purpose(rawValue: tail[1]) else { return .notAToken }
        let headDigits = Self.accountDigits + (purpose.isReverse ? 0 : Self.nonceDigits + Self.dayDigits)
        let macDigits = purpose.isStored ? Self.storedMACDigits : Self.macDigits
        guard tail.count == 2 + headDigits + macDigits else { return .notAToken }
        let hasAddress = purpose == .reverse || purpose == .forward
        guard hasAddress == (dot != nil) else { return .notAToken }

        let head = Array(tail[2..<(2 + headDigits)])
        guard let account = Base32.number(head.prefix(Self.accountDigits)).flatMap(AccountNumber.init),
            let key = keys.key(tail[0])
        else { return .forged(purpose) }
        var address: AddrSpec?
        if hasAddress, let dot {
            let readable = Array(text[..<dot])
            guard let equals = readable.lastIndex(of: UInt8(ascii: "=")), equals > 0, equals + 1 < readable.count else { return .notAToken }
            guard constantTimeEqual(Self.mac(purpose, head: head, address: readable, key: key), tail.suffix(macDigits)) else {
                return .forged(purpose)
            }
            address = AddrSpec(
                localPart: String(decoding: readable[..<equals], as: UTF8.self),
                domain: String(decoding: readable[(equals + 1)...], as: UTF8.self))
        } else if !purpose.isStored {
            guard constantTimeEqual(Self.mac(purpose, head: head, address: [], key: key), tail.suffix(macDigits)) else {
                return .forged(purpose)
            }
        }
        let times = head.dropFirst(Self.accountDigits)
        return .token(
            AddressToken(
                purpose: purpose, account: account, address: address,
                nonce: Base32.number(times.prefix(Self.nonceDigits)) ?? 0,
                expiryDay: Base32.number(times.dropFirst(Self.nonceDigits)) ?? 0,
                localPart: String(decoding: text, as: UTF8.self)))
    }

    private func readAnswer(_ text: [UInt8]) -> TokenReading {
        let end = 2 + Self.accountDigits + Self.nonceDigits + Self.dayDigits
        guard text.count == end + Self.macDigits else { return .notAToken }
        let head = Array(text[2..<end])
        guard let key = keys.key(text[0]),
            constantTimeEqual(Self.mac(AnswerToken.letter, head: head, address: [], key: key), text[end...]),
            let number = Base32.number(head.prefix(Self.accountDigits)),
            let nonce = Base32.number(head.dropFirst(Self.accountDigits).prefix(Self.nonceDigits)),
            let day = Base32.number(head.suffix(Self.dayDigits))
        else { return .forgedAnswer }
        return .answer(AnswerToken(number: number, nonce: nonce, expiryDay: day))
    }

    /// Whether a stored address is the one that this token was made for.
    package func verifies(_ token: AddressToken, stored address: AddrSpec) -> Bool {
        let tail = Array(token.localPart.utf8)
        guard token.purpose.isStored, let id = tail.first, let key = keys.key(id), tail.count > 2 + Self.storedMACDigits else { return false }
        let head = Array(tail[2..<(tail.count - Self.storedMACDigits)])
        return constantTimeEqual(
            Self.mac(token.purpose, head: head, address: Self.canonical(address), key: key), tail.suffix(Self.storedMACDigits))
    }
}
