// The local parts of return paths: sealed, so that only the relay sees account, day and sender.

import MailCrypto
import Support

/// What a return path holds, in base32 characters. All return paths have the same length.
struct ReturnPath {
    /// The first character.
    enum Kind: UInt8 {
        /// Of a forward; the content is a hash of the sender, and its code against what the relay
        /// knows (`SenderCode`).
        case forward = 0x61
        /// Of a forward; the content is the hash under which the sender is stored.
        case storedForward = 0x62
        /// Of a forward whose sender was not proved.
        case silentForward = 0x63
        /// Of a reply; the content is `RecipientWitnesses`.
        case reply = 0x64
        /// Of a forward; the content is the code of the whole sender.
        case wholeForward = 0x65
    }

    /// The letter after the key id.
    static let letter: UInt8 = 0x64  // d
    static let nonceDigits = 4
    static let dayDigits = 4
    static let headDigits = 1 + AccountNumber.digits + dayDigits + nonceDigits
    static let contentDigits = 33
    /// 13 characters are 65 bits of HMAC-SHA-256.
    static let macDigits = 13
    /// Octets of the local part: as many as RFC 5321 section 4.5.3.1.1 allows.
    static let length = 2 + macDigits + headDigits + contentDigits

    let kind: Kind
    let account: AccountNumber
    /// Days since 1970; 20 bits.
    let expiryDay: UInt64
    /// 20 bits, so that two messages of one day hardly ever have the same path.
    let nonce: UInt64

    /// The same with the next nonce.
    var next: ReturnPath {
        ReturnPath(kind: kind, account: account, expiryDay: expiryDay, nonce: nonce &+ 1)
    }

    /// Kind, account, day and nonce.
    var head: [UInt8] {
        [kind.rawValue] + Base32.encode(account.rawValue, digits: AccountNumber.digits)
            + Base32.encode(expiryDay, digits: Self.dayDigits)
            + Base32.encode(nonce, digits: Self.nonceDigits)
    }

    private static let macLabel = Array("postern return path 1\n".utf8)
    private static let streamLabel = Array("postern return path stream 1\n".utf8)

    /// The MAC over head and content, and both of them encrypted under it: deterministic
    /// authenticated encryption as in RFC 5297, with HMAC-SHA-256 for both steps. Its 256 bits are
    /// enough for one step.
    /// - Parameter content: at most `contentDigits` characters; the rest is filled.
    func sealed(content: [UInt8], key: HMACSHA256) -> [UInt8] {
        let filler = [UInt8](
            repeating: Base32.alphabet[0], count: Self.contentDigits - content.count)
        let plain = head + content + filler
        let mac = Self.mac(plain, key)
        return mac + Self.crypted(plain, mac: mac, key)
    }

    /// - Parameter text: what follows the letter, in lower case.
    /// - Returns: nil if the MAC is wrong.
    static func opened(
        _ text: some Collection<UInt8>, key: HMACSHA256
    ) -> (path: ReturnPath, content: ArraySlice<UInt8>)? {
        let mac = Array(text.prefix(macDigits))
        let plain = crypted(Array(text.dropFirst(macDigits)), mac: mac, key)
        guard plain.count == headDigits + contentDigits,
            constantTimeEqual(Self.mac(plain, key), mac),
            let kind = Kind(rawValue: plain[0]),
            let account = Base32.number(plain[1...].prefix(AccountNumber.digits)).flatMap(
                AccountNumber.init),
            let day = Base32.number(plain[(1 + AccountNumber.digits)...].prefix(dayDigits)),
            let nonce = Base32.number(plain[..<headDigits].suffix(nonceDigits))
        else { return nil }
        return (
            ReturnPath(kind: kind, account: account, expiryDay: day, nonce: nonce),
            plain[headDigits...]
        )
    }

    private static func mac(_ plain: [UInt8], _ key: HMACSHA256) -> [UInt8] {
        Array(Base32.encode(key.authenticationCode(for: macLabel + plain)).prefix(macDigits))
    }

    /// The same step encrypts and decrypts.
    private static func crypted(_ text: [UInt8], mac: [UInt8], _ key: HMACSHA256) -> [UInt8] {
        Base32.exclusiveOr(text, Base32.encode(key.authenticationCode(for: streamLabel + mac)))
    }
}
