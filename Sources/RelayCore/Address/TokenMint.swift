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
    private static let nonceDigits = 8
    private static let dayDigits = 4
    /// Number, nonce and day of an answer token.
    private static let answerDigits = AccountNumber.digits + nonceDigits + dayDigits
    /// 13 characters are 65 bits of HMAC-SHA-256.
    static let macDigits = 13
    /// The key of a stored address replaces the address itself, so it must not collide: 125 bits.
    static let storedMACDigits = 25
    /// 25 bits of a sender's hash show which of the addresses a code means.
    private static let senderCheckDigits = ReturnPath.contentDigits - SenderCode.digits

    package init(keys: TokenKeys) {
        self.keys = keys
        feedback = FeedbackFields(keys: keys)
    }

    // MARK: Making

    /// The reverse address of a correspondent for one account. The same key always gives the same
    /// address.
    package func reverse(account: AccountNumber, correspondent: AddrSpec) -> MintedToken {
        let head = Self.written(account, key: keys.activeKey)
        if let readable = Self.readable(correspondent),
            readable.count + 1 + AddressToken.Form.reverse.length <= Self.maximumLocalPart
        {
            return MintedToken(
                readable + [UInt8(ascii: ".")] + token(.reverse, head: head, address: readable))
        }
        return MintedToken(
            token(.storedReverse, head: head, address: Self.canonical(correspondent)),
            storing: correspondent)
    }

    /// The return path of a forwarded message.
    /// - Parameters:
    ///   - sender: the envelope sender, if it was proved; nil makes a return path
    ///     that reports to no one.
    ///   - context: what the sender is written against.
    ///   - nonce: 20 random bits.
    ///   - expiryDay: days since 1970.
    ///   - outgoing: the class that the local part must have; nil for any.
    package func forwardReturnPath(
        account: AccountNumber, sender: AddrSpec?, context: SenderContext, nonce: UInt64,
        expiryDay: UInt64, outgoing: OutgoingClass? = nil
    ) -> MintedToken {
        func sealed(_ kind: ReturnPath.Kind, _ content: [UInt8]) -> [UInt8] {
            let path = ReturnPath(kind: kind, account: account, expiryDay: expiryDay, nonce: nonce)
            return fitting(outgoing, path) { path in
                [keys.activeID, AddressToken.Form.returnPath.rawValue]
                    + path.sealed(content: content, key: keys.activeKey)
            }
        }
        guard let sender else { return MintedToken(sealed(.silentForward, [])) }
        let canonical = Self.canonical(sender)
        let hash = Array(Self.senderHash(canonical, account: account, key: keys.activeKey))
        // Only what reads back as the same address is right.
        if let code = SenderCode.encode(sender, context: context) {
            let content = hash.prefix(Self.senderCheckDigits) + code
            if Self.sender(in: content[...], account, context, keys.activeKey)
                .map(Self.canonical) == canonical
            {
                return MintedToken(sealed(.forward, Array(content)))
            }
        }
        if let code = SenderCode.encodeWhole(sender),
            SenderCode.decodeWhole(code).map(Self.canonical) == canonical
        {
            return MintedToken(sealed(.wholeForward, code))
        }
        return MintedToken(
            sealed(.storedForward, hash), storing: sender,
            under: AddressToken.storageKey(keys.activeID, senderHash: hash))
    }

    /// The return path of a reply. It contains nothing of the inbox, which is found by the account.
    /// - Parameters:
    ///   - recipients: the reply's recipients; a report may name only one of these (`isRecipient`).
    ///   - outgoing: as of a forward.
    package func replyReturnPath(
        account: AccountNumber, recipients: [AddrSpec], nonce: UInt64, expiryDay: UInt64,
        outgoing: OutgoingClass? = nil
    ) -> MintedToken {
        func sealed(_ path: ReturnPath) -> [UInt8] {
            let witnesses = RecipientWitnesses.written(
                recipients.map(Self.canonical), head: path.head, key: keys.activeKey)
            return [keys.activeID, AddressToken.Form.returnPath.rawValue]
                + path.sealed(content: witnesses, key: keys.activeKey)
        }
        return MintedToken(
            fitting(
                outgoing,
                ReturnPath(kind: .reply, account: account, expiryDay: expiryDay, nonce: nonce),
                sealed))
    }

    /// The local part of a class; its nonce may be a later one. Each fits with a chance of one in
    /// eight.
    private func fitting(
        _ outgoing: OutgoingClass?, _ path: ReturnPath, _ sealed: (ReturnPath) -> [UInt8]
    ) -> [UInt8] {
        var path = path
        var local = sealed(path)
        guard let outgoing else { return local }
        for _ in 1...Self.outgoingTries where !outgoing.covers(local) {
            path = path.next
            local = sealed(path)
        }
        return local
    }

    /// Nonces that are tried for a class. That none fits happens once in 10^23 messages; such a
    /// message leaves by another identity.
    private static let outgoingTries = 400

    /// The local part that receives an answer to a verification message.
    package func answer(_ token: AnswerToken) -> String {
        let number = AccountPermutation(key: keys.activeKey, series: .verification).hidden(
            token.number)
        let head =
            Base32.encode(number, digits: AccountNumber.digits)
            + Self.times(nonce: token.nonce, expiryDay: token.expiryDay)
        return String(
            decoding: [keys.activeID, AnswerToken.letter] + head
                + Self.mac(
                    AnswerToken.letter, head: head, address: [], key: keys.activeKey,
                    digits: Self.macDigits),
            as: UTF8.self)
    }

    /// The account in the form that reverse addresses have.
    private static func written(_ account: AccountNumber, key: HMACSHA256) -> [UInt8] {
        Base32.encode(
            AccountPermutation(key: key, series: .account).hidden(account.rawValue),
            digits: AccountNumber.digits)
    }

    private static func times(nonce: UInt64, expiryDay: UInt64) -> [UInt8] {
        Base32.encode(nonce & ((1 << 40) - 1), digits: nonceDigits)
            + Base32.encode(expiryDay, digits: dayDigits)
    }

    private func token(
        _ form: AddressToken.Form, head: [UInt8], address: [UInt8]
    ) -> [UInt8] {
        [keys.activeID, form.rawValue] + head
            + Self.mac(form, head: head, address: address, key: keys.activeKey)
    }

    private static func mac(
        _ form: AddressToken.Form, head: [UInt8], address: [UInt8], key: HMACSHA256
    ) -> ArraySlice<UInt8> {
        mac(
            form.rawValue, head: head, address: address, key: key,
            digits: form.isCheckedByAddress ? storedMACDigits : macDigits)
    }

    private static let senderLabel = Array("postern stored sender 1\n".utf8)

    /// Always the same for one sender and account, and different for another account. So the
    /// address is stored once, and nothing shows that two accounts get mail from the same sender.
    private static func senderHash(
        _ canonical: [UInt8], account: AccountNumber, key: HMACSHA256
    ) -> ArraySlice<UInt8> {
        Base32.encode(
            key.authenticationCode(
                for: senderLabel + Base32.encode(account.rawValue, digits: AccountNumber.digits)
                    + canonical)
        ).prefix(storedMACDigits)
    }

    /// The sender in the content of a return path: the one of those that the code can mean whose
    /// hash is right. Nil if the team has given up its domain.
    private static func sender(
        in content: ArraySlice<UInt8>, _ account: AccountNumber, _ context: SenderContext,
        _ key: HMACSHA256
    ) -> AddrSpec? {
        SenderCode.decode(content.dropFirst(senderCheckDigits), context: context).first { address in
            constantTimeEqual(
                senderHash(canonical(address), account: account, key: key).prefix(
                    senderCheckDigits),
                content.prefix(senderCheckDigits))
        }
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

    /// The octets that follow the key id in every reverse address of an account, for each key:
    /// letter and account.
    func anchors(account: AccountNumber) -> [[UInt8]] {
        keys.ids.compactMap(keys.key).flatMap { key in
            let digits = Self.written(account, key: key)
            return AddressToken.Form.ofCorrespondents.map { [$0.rawValue] + digits }
        }
    }

    /// Whether the text after the last dot of a local part, in lower case, has the length and
    /// letters of a token. Runs for every word before a relay domain, so it computes no MAC.
    static func mayBeTail(_ octets: UnsafeBufferPointer<UInt8>) -> Bool {
        guard AddressToken.Form.lengths.contains(octets.count) else { return false }
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
        guard let form = AddressToken.Form(rawValue: tail[1]), tail.count == form.length,
            form.hasAddress == (dot != nil)
        else { return .notAToken }
        guard let key = keys.key(tail[0]) else { return .forged(form) }
        if form == .returnPath { return readReturnPath(tail, key) }

        let head = Array(tail[2..<(2 + AccountNumber.digits)])
        var address: AddrSpec?
        if form.hasAddress, let dot {
            let readable = Array(text[..<dot])
            guard let equals = readable.lastIndex(of: UInt8(ascii: "=")), equals > 0,
                equals + 1 < readable.count
            else {
                return .notAToken
            }
            guard
                constantTimeEqual(
                    Self.mac(form, head: head, address: readable, key: key),
                    tail.suffix(Self.macDigits))
            else { return .forged(form) }
            address = AddrSpec(
                localPart: String(decoding: readable[..<equals], as: UTF8.self),
                domain: String(decoding: readable[(equals + 1)...], as: UTF8.self))
        }
        guard let number = Base32.number(head),
            let account = AccountNumber(
                AccountPermutation(key: key, series: .account).revealed(number))
        else { return .forged(form) }
        return .token(
            AddressToken(
                purpose: form == .reverse ? .reverse : .storedReverse, account: account,
                address: address, nonce: 0, expiryDay: 0,
                localPart: String(decoding: text, as: UTF8.self), content: [], head: []))
    }

    private func readReturnPath(_ text: [UInt8], _ key: HMACSHA256) -> TokenReading {
        guard let (path, content) = ReturnPath.opened(text[2...], key: key) else {
            return .forged(.returnPath)
        }
        return .token(
            AddressToken(
                purpose: AddressToken.Purpose(path.kind), account: path.account, address: nil,
                nonce: path.nonce, expiryDay: path.expiryDay,
                localPart: String(decoding: text, as: UTF8.self), content: Array(content),
                head: path.head))
    }

    private func readAnswer(_ text: [UInt8]) -> TokenReading {
        let end = 2 + Self.answerDigits
        guard text.count == end + Self.macDigits else { return .notAToken }
        let head = Array(text[2..<end])
        guard let key = keys.key(text[0]),
            constantTimeEqual(
                Self.mac(
                    AnswerToken.letter, head: head, address: [], key: key, digits: Self.macDigits),
                text[end...]),
            let number = Base32.number(head.prefix(AccountNumber.digits)),
            let nonce = Base32.number(
                head.dropFirst(AccountNumber.digits).prefix(Self.nonceDigits)),
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
        guard token.purpose == .reply, let key = key(of: token) else { return false }
        return RecipientWitnesses.hold(
            Self.canonical(address), in: token.content.prefix(RecipientWitnesses.digits),
            head: token.head, key: key)
    }

    /// The sender that a return path holds as a code.
    func sender(of token: AddressToken, context: SenderContext) -> AddrSpec? {
        guard token.purpose == .forward, let key = key(of: token) else { return nil }
        if token.head.first == ReturnPath.Kind.wholeForward.rawValue {
            return SenderCode.decodeWhole(token.content)
        }
        return Self.sender(in: token.content[...], token.account, context, key)
    }

    /// Whether this token was made for this stored address.
    package func verifies(_ token: AddressToken, stored address: AddrSpec) -> Bool {
        guard let key = key(of: token) else { return false }
        let canonical = Self.canonical(address)
        switch token.purpose {
        case .storedReverse:
            let text = Array(token.localPart.utf8)
            return constantTimeEqual(
                Self.mac(
                    .storedReverse, head: Array(text[2..<(2 + AccountNumber.digits)]),
                    address: canonical, key: key),
                text.suffix(Self.storedMACDigits))
        case .storedForward:
            return constantTimeEqual(
                Self.senderHash(canonical, account: token.account, key: key),
                token.content.prefix(Self.storedMACDigits))
        case .reverse, .forward, .silentForward, .reply: return false
        }
    }

    private func key(of token: AddressToken) -> HMACSHA256? {
        token.localPart.utf8.first.flatMap { keys.key($0) }
    }
}
