// Replacements in a text, collected from several readings of it and applied at once.

/// One stretch of a text and its replacement.
package struct TextEdit: Sendable, Hashable {
    package let range: Range<Int>
    package let replacement: [UInt8]

    /// Whether any other overlapping edit replaces it, as that edit considers more of the context.
    package let isWeak: Bool

    /// Whether it writes a correspondent, or text with one. Nothing is searched for in that text,
    /// as any correspondent is sent.
    let isMade: Bool

    package init(
        range: Range<Int>, replacement: [UInt8], isWeak: Bool = false, isMade: Bool = false
    ) {
        self.isMade = isMade
        self.range = range
        self.replacement = replacement
        self.isWeak = isWeak
    }

    /// The same edit, marked as writing a correspondent or not.
    func making(_ isMade: Bool) -> TextEdit {
        isMade
            ? TextEdit(range: range, replacement: replacement, isWeak: isWeak, isMade: true) : self
    }

    /// The same edit for a text with this many more octets before it.
    func moved(by offset: Int) -> TextEdit {
        TextEdit(
            range: (range.lowerBound + offset)..<(range.upperBound + offset),
            replacement: replacement, isWeak: isWeak,
            isMade: isMade)
    }
}

extension [TextEdit] {
    /// In order and without overlaps. Of two overlapping edits the longer one stays, as it
    /// considers more of the text.
    var reconciled: [TextEdit] {
        guard contains(where: \.isWeak) else { return longest }
        let strong = filter { !$0.isWeak }.longest
        var next = strong[...]
        let weak = filter(\.isWeak).longest.filter { edit in
            while let first = next.first, first.range.upperBound <= edit.range.lowerBound {
                next.removeFirst()
            }
            return next.first.map { !$0.range.overlaps(edit.range) } ?? true
        }
        return (strong + weak).sorted { $0.range.lowerBound < $1.range.lowerBound }
    }

    private var longest: [TextEdit] {
        func precedes(_ one: TextEdit, _ other: TextEdit) -> Bool {
            one.range.lowerBound != other.range.lowerBound
                ? one.range.lowerBound < other.range.lowerBound
                : one.range.upperBound > other.range.upperBound
        }
        // The edits of one reading are already in order.
        let isOrdered = indices.dropFirst().allSatisfy { !precedes(self[$0], self[$0 - 1]) }
        let ordered = isOrdered ? self : sorted(by: precedes)
        var kept: [TextEdit] = []
        kept.reserveCapacity(count)
        for edit in ordered {
            guard let last = kept.last, last.range.overlaps(edit.range) || last.range == edit.range
            else {
                kept.append(edit)
                continue
            }
            if edit.range.count > last.range.count { kept[kept.count - 1] = edit }
        }
        return kept
    }

    /// Whether any edit writes a correspondent.
    var isAnyMade: Bool { contains(where: \.isMade) }

    /// The text with reconciled edits applied.
    func applied(to text: some Collection<UInt8>) -> [UInt8] {
        let text = [UInt8](text)
        var output: [UInt8] = []
        output.reserveCapacity(text.count + count * 16)
        var position = 0
        for edit in self
        where edit.range.lowerBound >= position && edit.range.upperBound <= text.count {
            output += text[position..<edit.range.lowerBound]
            output += edit.replacement
            position = edit.range.upperBound
        }
        output += text[position...]
        return output
    }
}
