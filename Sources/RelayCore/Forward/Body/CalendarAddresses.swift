// The addresses to which a calendar program would write (RFC 5545): organizer, attendees, and any
// other `mailto:`.

import InternetMessage

/// The edits of one calendar.
struct CalendarAddresses {
    /// In order. Lines that became too long are folded again.
    private(set) var edits: [TextEdit] = []

    private let words: MailtoWords
    private let transform: (AddrSpec, _ isParticipant: Bool) -> AddrSpec

    /// - Parameters:
    ///   - text: in UTF-8 or another superset of ASCII.
    ///   - words: decides what happens to the subject and the body of a link.
    ///   - transform: returns the replacement address. `isParticipant`: whether the address is of
    ///     the organizer or an attendee.
    init(
        _ text: [UInt8], words: MailtoWords,
        transform: @escaping (AddrSpec, _ isParticipant: Bool) -> AddrSpec
    ) {
        self.words = words
        self.transform = transform
        let unfolded = ContentLines.Unfolded(text)
        var found: [TextEdit] = []
        var start = 0
        while start < unfolded.octets.count {
            let end = unfolded.octets[start...].firstIndex(of: 0x0A) ?? unfolded.octets.count
            let line = unfolded.octets[start..<end]
            found += edits(of: line.last == 0x0D ? line.dropLast() : line)
            start = end + 1
        }
        edits = found.isEmpty ? [] : ContentLines.refolding(found.map(unfolded.folded), in: text)
    }

    private func edits(of line: ArraySlice<UInt8>) -> [TextEdit] {
        let name = line.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ":") }
        if name.equalsIgnoringASCIICase("ORGANIZER".utf8)
            || name.equalsIgnoringASCIICase("ATTENDEE".utf8)
        {
            return participant(line, after: name.endIndex)
        }
        guard line.contains(where: { "@%?&".utf8.contains($0) }) else { return [] }
        // A description for programs that show HTML.
        let isMarkup = name.equalsIgnoringASCIICase("X-ALT-DESC".utf8)
        return MailtoLinks(Array(line), syntax: isMarkup ? .markup : .calendar, words: words) {
            transform($0, false)
        }.edits.map {
            TextEdit(
                range: ($0.range.lowerBound + line.startIndex)..<($0.range.upperBound
                    + line.startIndex),
                replacement: $0.replacement)
        }
    }

    /// Organizer or attendee: parameters, then the address.
    private func participant(_ line: ArraySlice<UInt8>, after name: Int) -> [TextEdit] {
        var edits: [TextEdit] = []
        var index = name
        while index < line.endIndex, line[index] == UInt8(ascii: ";") {
            let parameter = line[(index + 1)...].prefix { !"=;:".utf8.contains($0) }
            let isEmail = parameter.equalsIgnoringASCIICase("EMAIL".utf8)
            index = parameter.endIndex
            // Values are after the equals sign, with commas between them.
            while index < line.endIndex,
                line[index] == UInt8(ascii: "=") || line[index] == UInt8(ascii: ",")
            {
                index += 1
                let isQuoted = index < line.endIndex && line[index] == UInt8(ascii: "\"")
                let value =
                    isQuoted
                    ? line[(index + 1)...].prefix { $0 != UInt8(ascii: "\"") }
                    : line[index...].prefix { !",;:".utf8.contains($0) }
                // `SENT-BY=mailto:a@b` without quotes is invalid, but occurs.
                let isBareURI = !isQuoted && value.equalsIgnoringASCIICase("mailto".utf8)
                let whole =
                    isBareURI
                    ? line[index...].prefix(while: isOfBareURI(from: value.endIndex)) : value
                index = whole.endIndex + (isQuoted && whole.endIndex < line.endIndex ? 1 : 0)
                edits += address(whole, isEmail: isEmail)
            }
        }
        guard index < line.endIndex, line[index] == UInt8(ascii: ":") else { return edits }
        return edits + address(line[(index + 1)...], isEmail: true)
    }

    /// Octets of an unquoted URI: its own colon, then all up to the next separator.
    private func isOfBareURI(from colon: Int) -> (UInt8) -> Bool {
        var hasColon = false
        return { octet in
            if octet == UInt8(ascii: ":"), !hasColon {
                hasColon = true
                return true
            }
            return !",;:".utf8.contains(octet)
        }
    }

    /// The edits of a value that is an address.
    /// - Parameter isEmail: whether a value without a scheme is also an address.
    private func address(_ value: ArraySlice<UInt8>, isEmail: Bool) -> [TextEdit] {
        let trimmed = HeaderField.trim(value)
        if let mailto = MailtoURI(Array(trimmed)) {
            let holdsAddress =
                trimmed.contains(UInt8(ascii: "@")) || trimmed.contains(UInt8(ascii: "%"))
            guard holdsAddress || mailto.hasFields else { return [] }
            let new =
                holdsAddress
                ? mailto.mapping(keepsEquals: true, words: words) {
                    $0.leadsSomewhere ? transform($0, true) : nil
                }
                : mailto.keepingRecipients(words: words)
            return new.elementsEqual(trimmed)
                ? [] : [TextEdit(range: trimmed.startIndex..<trimmed.endIndex, replacement: new)]
        }
        guard isEmail, trimmed.contains(UInt8(ascii: "@")) else { return [] }
        // `eva@app.example`, and `Eva <eva@app.example>` as in vCalendar 1.0.
        return AddressList.parse(trimmed).mailboxes.compactMap { mailbox in
            guard mailbox.addrSpec.leadsSomewhere else {
                return TextEdit(range: mailbox.addrSpecRange, replacement: [])
            }
            let new = transform(mailbox.addrSpec, true)
            return new == mailbox.addrSpec || mailbox.addrSpecRange.isEmpty
                ? nil
                : TextEdit(range: mailbox.addrSpecRange, replacement: Array(new.wireForm.utf8))
        }
    }
}
