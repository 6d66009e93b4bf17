// Makes and reads the local parts of reverse addresses and return paths. Stateless, except for
// addresses that do not fit.

import InternetMessage
import MailCrypto
import Support

package struct TokenMint: Sendable {
    private let keys: TokenKeys
    /// The fields with tags of the same keys.
    package let feedback: FeedbackFields

    /// RFC 5321 section 4.5.3.1.1.
    private static let maximumLocalPart = 64
    static let accountDigits = 7
    private static let nonceDigits = 8
    private static let dayDigits = 4
    /// Account, nonce and day.
    static let returnPathDigits = accountDigits + nonceDigits + dayDigits
    /// 13 characters are 65 bits of HMAC-SHA-256.
    static let macDigits = 13
    /// The key of a stored address replaces the address itself, so it must not collide: 125 bits.
    static let storedMACDigits = 25

    package init(keys: TokenKeys) {
        self.keys = keys
        feedback = FeedbackFields(keys: keys)
    }

    // MARK: Making

    /// The reverse address of a correspondent for one account. The same key always gives the same
    /// address.
    package func reverse(account: AccountNumber, correspondent: AddrSpec) -> MintedToken {
        mint(
            inline: .reverse, stored: .storedReverse, head: written(account), address: correspondent
        )
    }

    /// The return path of a forwarded message.
    /// - Parameters:
    ///   - sender: the envelope sender, if it was proved; nil makes a return path
    ///     that reports to no one.
    ///   - nonce: 40 random bits.
    ///   - expiryDay: days since 1970.
    ///   - outgoing: the class that the local part must have; nil for any.
    package func forwardReturnPath(
        account: AccountNumber, sender: AddrSpec?, nonce: UInt64, expiryDay: UInt64,
        outgoing: OutgoingClass? = nil
    ) -> MintedToken {
        var token = forwardReturnPath(account, sender, nonce: nonce, expiryDay: expiryDay)
        guard let outgoing else { return token }
        // Each nonce fits with a chance of one in eight.
        for step in 1...Self.outgoingTries where !outgoing.covers(token.localPart) {
            token = forwardReturnPath(
                account, sender, nonce: nonce &+ UInt64(step), expiryDay: expiryDay)
        }
        return token
    }

    /// Nonces that are tried for a class. That none fits happens once in 10^23 messages; such a
    /// message leaves by another identity.
    private static let outgoingTries = 400

    private func forwardReturnPath(
        _ account: AccountNumber, _ sender: AddrSpec?, nonce: UInt64, expiryDay: UInt64
    ) -> MintedToken {
        let head = written(account) + Self.times(nonce: nonce, expiryDay: expiryDay)
        guard let sender else {
            return MintedToken(localPart: bare(.silentForward, head: head), addressToStore: nil)
        }
        return mint(inline: .forward, stored: .storedForward, head: head, address: sender)
    }

    /// The return path of a reply. It contains nothing of the inbox, which is found by the account.
    /// - Parameter recipients: the reply's recipients; a report may name only one of these
    ///   (`isRecipient`).
    package func replyReturnPath(
        account: AccountNumber, recipients: [AddrSpec], nonce: UInt64, expiryDay: UInt64
    ) -> MintedToken {
        let head = written(account) + Self.times(nonce: nonce, expiryDay: expiryDay)
        let witnesses = RecipientWitnesses.written(
            recipients.map(Self.canonical), head: head, key: keys.activeKey)
        return MintedToken(localPart: bare(.reply, head: head + witnesses), addressToStore: nil)
    }

    /// The local part that receives an answer to a verification message.
    package func answer(_ token: AnswerToken) -> String {
        let number = AccountPermutation(key: keys.activeKey, series: .verification).hidden(
            token.number)
        let head =
            Base32.encode(number, digits: Self.accountDigits)
            + Self.times(nonce: token.nonce, expiryDay: token.expiryDay)
        return String(
            decoding: [keys.activeID, AnswerToken.letter] + head
                + Self.mac(
                    AnswerToken.letter, head: head, address: [], key: keys.activeKey,
                    digits: Self.macDigits),
            as: UTF8.self)
    }

    /// The account in the form that tokens have.
    private func written(_ account: AccountNumber) -> [UInt8] {
        Self.written(account, key: keys.activeKey)
    }

    private static func written(_ account: AccountNumber, key: HMACSHA256) -> [UInt8] {
        Base32.encode(
            AccountPermutation(key: key, series: .account).hidden(account.rawValue),
            digits: accountDigits)
    }

    private static func times(nonce: UInt64, expiryDay: UInt64) -> [UInt8] {
        Base32.encode(nonce & ((1 << 40) - 1), digits: nonceDigits)
            + Base32.encode(expiryDay, digits: dayDigits)
    }

    private func mint(
        inline: AddressToken.Purpose, stored: AddressToken.Purpose, head: [UInt8], address: AddrSpec
    ) -> MintedToken {
        let suffixLength = 2 + head.count + Self.macDigits
        if let readable = Self.readable(address),
            readable.count + 1 + suffixLength <= Self.maximumLocalPart
        {
            return MintedToken(
                localPart: token(inline, head: head, address: readable, before: readable),
                addressToStore: nil)
        }
        let canonical = Self.canonical(address)
        let localPart =
            stored.hasSenderHash
            ? token(
                stored, head: head + Self.senderHash(canonical, account: head, key: keys.activeKey),
                address: [])
            : token(stored, head: head, address: canonical)
        return MintedToken(localPart: localPart, addressToStore: address)
    }

    private func bare(_ purpose: AddressToken.Purpose, head: [UInt8]) -> String {
        token(purpose, head: head, address: [])
    }

    /// The local part; the readable address, if any, is before the dot.
    private func token(
        _ purpose: AddressToken.Purpose, head: [UInt8], address: [UInt8],
        before readable: [UInt8] = []
    ) -> String {
        var text = readable
        text.reserveCapacity(readable.count + 3 + head.count + Self.storedMACDigits)
        if !readable.isEmpty { text.append(UInt8(ascii: ".")) }
        text.append(keys.activeID)
        text.append(purpose.rawValue)
        text += head
        text += Self.mac(purpose, head: head, address: address, key: keys.activeKey)
        return String(decoding: text, as: UTF8.self)
    }

    private static func mac(
        _ purpose: AddressToken.Purpose, head: [UInt8], address: [UInt8], key: HMACSHA256
    ) -> ArraySlice<UInt8> {
        mac(purpose.rawValue, head: head, address: address, key: key, digits: purpose.macDigits)
    }

    private static let senderLabel = Array("postern stored sender 1\n".utf8)

    /// Always the same for one sender and account, and different for another account. So the
    /// address is stored once, and nothing shows that two accounts get mail from the same sender.
    /// - Parameter head: begins with the account in the form that tokens have.
    private static func senderHash(
        _ canonical: [UInt8], account head: [UInt8], key: HMACSHA256
    ) -> ArraySlice<UInt8> {
        Base32.encode(
            key.authenticationCode(for: senderLabel + head.prefix(accountDigits) + canonical)
        ).prefix(storedMACDigits)
    }

    private static let label = Array("postern address token 1\n".utf8)

    private static func mac(
        _ letter: UInt8, head: [UInt8], address: [UInt8], key: HMACSHA256, digits: Int
    ) -> ArraySlice<UInt8> {
        var message = label
        message.reserveCapacity(label.count + 1 + head.count + address.count)
        message.append(letter)
        message += head
        message += address
        return Base32.encode(key.authenticationCode(for: message)).prefix(digits)
    }

    /// `local=domain`, if a local part can contain the address unchanged: ASCII dot-atoms, no
    /// letter whose case could matter.
    private static func readable(_ address: AddrSpec) -> [UInt8]? {
        var text = Array(address.localPart.utf8)
        let equals = text.count
        text.append(UInt8(ascii: "="))
        text += address.domain.lowercased().utf8
        guard isDotAtom(text[..<equals]), isDotAtom(text[(equals + 1)...]),
            !text[..<equals].contains(where: { (0x41...0x5A).contains($0) }),
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

    /// The octets that follow the key id in every token of an account, for each key: letter and
    /// account.
    func anchors(account: AccountNumber) -> [[UInt8]] {
        keys.ids.compactMap(keys.key).flatMap { key in
            let digits = Self.written(account, key: key)
            return AddressToken.Purpose.allCases.map { [$0.rawValue] + digits }
        }
    }

    /// Whether the text after the last dot of a local part, in lower case, has the length and
    /// letters of a token. Runs for every word before a relay domain, so it computes no MAC.
    static func mayBeTail(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        guard AddressToken.Purpose.lengths.contains(octets.count) else { return false }
        for octet in octets
        where !(octet >= 0x61 && octet <= 0x7A || octet >= 0x32 && octet <= 0x37) { return false }
        return true
    }

    /// Reads a local part, in any letter case. Checks form and MAC; the caller checks whether a
    /// return path has expired.
    package func read(_ localPart: String) -> TokenReading {
        let text = localPart.utf8.map { $0.asciiLowercased }
        guard text.count <= Self.maximumLocalPart else { return .notAToken }
        let dot = text.lastIndex(of: UInt8(ascii: "."))
        let tail = Array(dot.map { text[($0 + 1)...] } ?? text[...])
        guard tail.count > 2, Base32.isEncoded(tail) else { return .notAToken }
        if tail[1] == AnswerToken.letter, dot == nil { return readAnswer(tail) }
        guard let purpose = AddressToken.Purpose(rawValue: tail[1]), tail.count == purpose.length,
            purpose.hasAddress == (dot != nil)
        else { return .notAToken }

        let head = Array(tail[2..<(2 + purpose.headDigits)])
        guard let key = keys.key(tail[0]) else { return .forged(purpose) }
        var address: AddrSpec?
        if purpose.hasAddress, let dot {
            let readable = Array(text[..<dot])
            guard let equals = readable.lastIndex(of: UInt8(ascii: "=")), equals > 0,
                equals + 1 < readable.count
            else {
                return .notAToken
            }
            guard
                constantTimeEqual(
                    Self.mac(purpose, head: head, address: readable, key: key),
                    tail.suffix(purpose.macDigits))
            else { return .forged(purpose) }
            address = AddrSpec(
                localPart: String(decoding: readable[..<equals], as: UTF8.self),
                domain: String(decoding: readable[(equals + 1)...], as: UTF8.self))
        } else if !purpose.isCheckedByAddress {
            guard
                constantTimeEqual(
                    Self.mac(purpose, head: head, address: [], key: key),
                    tail.suffix(purpose.macDigits))
            else { return .forged(purpose) }
        }
        guard let number = Base32.number(head.prefix(Self.accountDigits)),
            let account = AccountNumber(
                AccountPermutation(key: key, series: .account).revealed(number))
        else { return .forged(purpose) }
        let times = head.dropFirst(Self.accountDigits)
        return .token(
            AddressToken(
                purpose: purpose, account: account, address: address,
                nonce: Base32.number(times.prefix(Self.nonceDigits)) ?? 0,
                expiryDay: Base32.number(times.dropFirst(Self.nonceDigits).prefix(Self.dayDigits))
                    ?? 0,
                localPart: String(decoding: text, as: UTF8.self)))
    }

    private func readAnswer(_ text: [UInt8]) -> TokenReading {
        let end = 2 + Self.returnPathDigits
        guard text.count == end + Self.macDigits else { return .notAToken }
        let head = Array(text[2..<end])
        guard let key = keys.key(text[0]),
            constantTimeEqual(
                Self.mac(
                    AnswerToken.letter, head: head, address: [], key: key, digits: Self.macDigits),
                text[end...]),
            let number = Base32.number(head.prefix(Self.accountDigits)),
            let nonce = Base32.number(head.dropFirst(Self.accountDigits).prefix(Self.nonceDigits)),
            let day = Base32.number(head.suffix(Self.dayDigits))
        else { return .forgedAnswer }
        return .answer(
            AnswerToken(
                number: AccountPermutation(key: key, series: .verification).revealed(number),
                nonce: nonce, expiryDay: day))
    }

    /// Whether the reply of this return path went to this address, as far as the return path shows
    /// it (`RecipientWitnesses`).
    func isRecipient(_ address: AddrSpec, of token: AddressToken) -> Bool {
        let text = Array(token.localPart.utf8)
        guard token.purpose == .reply, text.count == token.purpose.length,
            let key = keys.key(text[0])
        else { return false }
        let witnesses = 2 + Self.returnPathDigits
        return RecipientWitnesses.hold(
            Self.canonical(address), in: text[witnesses..<(witnesses + RecipientWitnesses.digits)],
            head: Array(text[2..<witnesses]), key: key)
    }

    /// Whether this token was made for this stored address.
    package func verifies(_ token: AddressToken, stored address: AddrSpec) -> Bool {
        let (text, purpose) = (Array(token.localPart.utf8), token.purpose)
        guard purpose.isStored, text.count == purpose.length, let key = keys.key(text[0]) else {
            return false
        }
        let (head, canonical) = (Array(text[2..<(2 + purpose.headDigits)]), Self.canonical(address))
        return purpose.hasSenderHash
            ? constantTimeEqual(
                Self.senderHash(canonical, account: head, key: key),
                head.suffix(Self.storedMACDigits))
            : constantTimeEqual(
                Self.mac(purpose, head: head, address: canonical, key: key),
                text.suffix(purpose.macDigits))
    }
}
