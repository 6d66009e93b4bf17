// Writes mailboxes and address lists (RFC 5322 section 3.4, RFC 2047 section 5).

extension Mailbox {
    /// The mailbox as ASCII text (except for an internationalised address): `local@domain`, or
    /// `phrase <local@domain>`. Without folds.
    package var serialized: String {
        guard let phrase = displayName.map(Self.phrase), !phrase.isEmpty else {
            return addrSpec.wireForm
        }
        return "\(phrase) <\(addrSpec.wireForm)>"
    }

    /// A display name as an RFC 5322 phrase: atoms if all words are atoms, otherwise a quoted
    /// string. Encoded words if it is not ASCII or looks like an encoded word.
    ///
    /// Control characters become spaces; white space at the ends is dropped. Empty if no other text
    /// remains.
    package static func phrase(_ name: String) -> String {
        let octets = HeaderField.trim(Array(EncodedWord.withoutControls(name).utf8)[...])
        guard !octets.isEmpty else { return "" }
        let text = String(decoding: octets, as: UTF8.self)
        let isPlain =
            octets.allSatisfy { $0 < 0x80 } && !octets.holdsEncodedWordMark
            && octets.count <= EncodedWord.longestPlainWord
        guard isPlain else { return EncodedWord.encode(text) }
        let words = octets.split(separator: 0x20, omittingEmptySubsequences: false)
        if words.allSatisfy({ !$0.isEmpty && $0.allSatisfy(\.isAtomText) }) { return text }
        return AddrSpec.quoted(octets)
    }
}

extension Address {
    /// The address as text, without folds: a mailbox, or `phrase: mailbox, mailbox;`.
    package var serialized: String {
        switch self {
        case .mailbox(let mailbox): return mailbox.serialized
        case .group(let name, let members):
            let phrase = Mailbox.phrase(name)
            // A group must have a name. Our parser gives an empty one if it was missing.
            let list = members.map(\.serialized).joined(separator: ", ")
            return (phrase.isEmpty ? "\"\"" : phrase) + ":" + (list.isEmpty ? "" : " " + list) + ";"
        }
    }
}

extension AddressList {
    /// The addresses as the value of a header field, without folds.
    package var serialized: String { addresses.map(\.serialized).joined(separator: ", ") }
}

extension AddrSpec {
    /// The wire form with the domain in A-labels, for mail without SMTPUTF8; nil if the local part
    /// is not ASCII or the domain has no such form.
    package var asciiWireForm: String? {
        if isASCII { return wireForm }
        return localPart.utf8.allSatisfy { $0 < 0x80 } ? normalized?.wireForm : nil
    }
}
