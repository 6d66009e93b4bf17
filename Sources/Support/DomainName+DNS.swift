// Domain names in the DNS: ASCII, of limited length, compared case-insensitively
// (RFC 1035, RFC 4343).

extension DomainName {
    /// Octets in a name that can be looked up in the DNS, without the trailing dot (RFC 1035
    /// section 2.3.4: 255 octets on the wire). A mail address may contain a name of two octets more
    /// (`maximumLength`), which then has no records.
    package static let maximumQueryLength = 253

    /// The name in lower case without its trailing dot, if it can be looked up in the
    /// DNS: labels of 1 to 63 octets of printable ASCII, 253 in all. Labels need not be
    /// host names. Nil otherwise.
    package static func queryable(_ name: String) -> String? {
        var name = name
        // Nearly every name is already in this form.
        guard let form = name.withUTF8(form) else { return nil }
        if form.isLower, form.length == name.utf8.count { return name }
        return String(decoding: name.utf8.prefix(form.length).map(\.asciiLowercased), as: UTF8.self)
    }

    /// The length of the name without its trailing dot, and whether it has no capitals. Nil
    /// if it cannot be looked up.
    private static func form(_ octets: UnsafeBufferPointer<UInt8>) -> (length: Int, isLower: Bool)?
    {
        let length = octets.last == UInt8(ascii: ".") ? octets.count - 1 : octets.count
        guard length > 0, length <= maximumQueryLength else { return nil }
        var label = 0
        var isLower = true
        for octet in octets[..<length] {
            guard octet >= 0x20, octet < 0x7F else { return nil }
            if octet == UInt8(ascii: ".") {
                guard label > 0 else { return nil }
                label = 0
            } else {
                label += 1
                guard label <= maximumLabelLength else { return nil }
                if octet.asciiLowercased != octet { isLower = false }
            }
        }
        return label > 0 ? (length, isLower) : nil
    }

    /// Like `queryable`, but the name must also have two or more labels of letters, digits, hyphens
    /// and underscores, so that mail can come from it. Internationalised names must be given as
    /// A-labels.
    package static func mailDomain(_ name: String) -> String? {
        guard let name = queryable(name), name.utf8.contains(UInt8(ascii: ".")) else { return nil }
        let isPlain = name.utf8.allSatisfy { octet in
            octet.isASCIILetter || octet.isASCIIDigit || octet == UInt8(ascii: "-")
                || octet == UInt8(ascii: "_")
                || octet == UInt8(ascii: ".")
        }
        return isPlain ? name : nil
    }

    /// Whether a name equals another or is below it. Both are in lower case, without trailing dot.
    package static func isEqualOrBelow(_ name: String, _ parent: String) -> Bool {
        let name = name.utf8
        let parent = parent.utf8
        guard name.count != parent.count else { return name.elementsEqual(parent) }
        guard name.count > parent.count, !parent.isEmpty else { return false }
        let tail = name.suffix(parent.count + 1)
        return tail.first == UInt8(ascii: ".") && tail.dropFirst().elementsEqual(parent)
    }

    /// A name for the log: octets outside printable ASCII become question marks, and
    /// the name is cut after 253.
    package static func printable(_ name: String) -> String {
        let isPrintable =
            name.utf8.count <= maximumQueryLength
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        return isPrintable ? name : printable(name.utf8)
    }

    /// The same for octets.
    package static func printable(_ bytes: some Sequence<UInt8>) -> String {
        let text = bytes.prefix(maximumQueryLength).map {
            $0 >= 0x20 && $0 < 0x7F ? $0 : UInt8(ascii: "?")
        }
        return String(decoding: text, as: UTF8.self)
    }
}
