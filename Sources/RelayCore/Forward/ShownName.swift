// Display names in a forward. Programs write them above a quotation. A name that looks like the end
// of that line, or fills it, would hide the start of the quotation from the relay.

import InternetMessage
import Support

enum ShownName {
    /// Maximum scalars of a name; longer than the longest name of a person.
    static let maximumLength = 64

    /// Characters that form addresses and attributions, and characters that look like them; `@` and
    /// similar.
    private static let signs = Set<Unicode.Scalar>([
        ":", "<", ">", "\u{FF1A}", "\u{FE55}", "\u{FE13}", "\u{2236}", "\u{A789}", "\u{FF1C}",
        "\u{FE64}", "\u{2039}",
        "\u{FF1E}", "\u{FE65}", "\u{203A}",
    ])
    private static let ats = Set<Unicode.Scalar>(["@", "\u{FF20}", "\u{FE6B}"])

    /// The name on one line, at most 64 scalars, without those characters and without invisible
    /// ones; nil if nothing is left.
    static func shown(_ name: String) -> String? {
        let spaced = PersonText.cleaned(PersonText.withSingleSpaces(name)).text.unicodeScalars
        // A word with an `@` is removed completely, as the rest of it could be taken for a name.
        let words = spaced.split { $0 == " " || signs.contains($0) }.filter { word in
            !word.contains { ats.contains($0) }
        }
        var scalars = Array(words.joined(separator: " ".unicodeScalars))
        if scalars.count > maximumLength {
            var end = maximumLength
            // Do not cut between a letter and its marks.
            while end > 0,
                scalars[end].properties.isGraphemeExtend || scalars[end - 1] == "\u{200D}"
            { end -= 1 }
            scalars.removeSubrange((end > 0 ? end : maximumLength)...)
            while scalars.last == " " { scalars.removeLast() }
        }
        return scalars.isEmpty ? nil : String(String.UnicodeScalarView(scalars))
    }

    /// The same for the name of a mailbox; nil also if the name only repeats the address.
    static func shown(_ name: String?, of address: AddrSpec) -> String? {
        guard let name, !name.utf8.equalsIgnoringASCIICase(address.wireForm.utf8) else {
            return nil
        }
        return shown(name)
    }

    /// The name for a mailbox without one. A long name keeps the beginning of the local part and
    /// the end of the domain.
    static func madeUp(_ address: AddrSpec) -> String {
        let (local, domain) = (address.localPart.unicodeScalars, address.domain.unicodeScalars)
        let fits = local.count + domain.count + 4 <= maximumLength
        let name =
            fits
            ? "\(local) at \(domain)"
            : "\(String(local.prefix(15)))... at ...\(String(domain.suffix(39)))"
        return shown(name) ?? "unknown"
    }

    private static func isShown(_ name: String) -> Bool {
        shown(name)?.hasSameOctets(as: name) ?? name.utf8.isEmpty
    }

    /// Whether every name, comment and group name of an address field already has the form that a
    /// forward shows, so that the field can stay.
    static func isShown(_ list: AddressList, in value: ArraySlice<UInt8>) -> Bool {
        list.mailboxes.allSatisfy { isShown($0.displayName ?? "") }
            && list.addresses.allSatisfy {
                if case .group(let name, _) = $0 { isShown(name) } else { true }
            }
            && comments(in: value).allSatisfy { isShown(EncodedWord.decode($0[...])) }
    }

    /// The texts between parentheses outside quoted strings; some programs show them as names.
    private static func comments(in value: ArraySlice<UInt8>) -> [[UInt8]] {
        var comments: [[UInt8]] = []
        var current: [UInt8] = []
        var depth = 0
        var isQuoted = false
        var isEscaped = false
        for octet in HeaderField.unfold(value) {
            defer { if depth > 0 { current.append(octet) } }
            if isEscaped {
                isEscaped = false
            } else if octet == UInt8(ascii: "\\") {
                isEscaped = true
            } else if depth == 0, octet == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else if !isQuoted, octet == UInt8(ascii: "(") {
                depth += 1
            } else if depth > 0, octet == UInt8(ascii: ")") {
                depth -= 1
                if depth == 0 {
                    comments.append(Array(HeaderField.trim(current.dropFirst())))
                    current = []
                }
            }
        }
        return depth > 0 ? comments + [current] : comments
    }
}
