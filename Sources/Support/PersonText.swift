// Text that people write for people (names, notes), and identifiers: the scalars that they can
// contain. Pure.

/// Names and notes: the letters of every language with their marks, and emoji. They cannot contain
/// invisible scalars, or scalars that turn the direction of other text, because these would hide
/// text from a reader.
package enum PersonText {
    /// The most marks on one letter. Hebrew with vowels and accents has four;
    /// hundreds cover the lines above.
    static let mostMarks = 8

    package static func isPlain(_ text: String) -> Bool { place(in: text) == nil }

    /// The position, from 1, of the first scalar that cannot be in the text; nil if there is none.
    package static func place(in text: String) -> Int? {
        var reading = Reading(text)
        while let isKept = reading.next() { if !isKept { return reading.place } }
        return nil
    }

    /// The text without the scalars that cannot be in it, and the number of those scalars.
    package static func cleaned(_ text: String) -> (text: String, removed: Int) {
        var reading = Reading(text)
        var kept = String.UnicodeScalarView()
        while let isKept = reading.next() { if isKept { kept.append(reading.current) } }
        return (String(kept), reading.place - kept.count)
    }

    /// The text in lines, with any of Unicode's line ends.
    package static func lines(_ text: String) -> [String] {
        var lines = [String.UnicodeScalarView()]
        var isAfterReturn = false
        for scalar in text.unicodeScalars {
            if isAfterReturn, scalar == "\n" {
                isAfterReturn = false
                continue
            }
            isAfterReturn = scalar == "\r"
            if ["\n", "\r", "\u{0B}", "\u{0C}", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalar) {
                lines.append(String.UnicodeScalarView())
            } else {
                lines[lines.count - 1].append(scalar)
            }
        }
        return lines.map { String($0) }
    }

    /// The text with one space for each stretch of white space, and none around it.
    package static func withSingleSpaces(_ text: String) -> String {
        text.unicodeScalars.split(whereSeparator: \.properties.isWhitespace).map { String($0) }
            .joined(separator: " ")
    }

    /// Reads a text once. The kept scalars before a scalar, and the next one, decide about it.
    private struct Reading {
        private let scalars: [Unicode.Scalar]
        /// The number of scalars that were read.
        private(set) var place = 0
        private var previous: Unicode.Scalar?
        /// Marks since the last letter.
        private var marks = 0
        /// The end of a flag that is made of tags (UTS #51).
        private var flagEnd = 0

        init(_ text: String) { scalars = Array(text.unicodeScalars) }

        var current: Unicode.Scalar { scalars[place - 1] }

        /// Whether the next scalar is kept; nil at the end.
        mutating func next() -> Bool? {
            guard place < scalars.count else { return nil }
            place += 1
            guard isKept else { return false }
            marks = current.isMark ? marks + 1 : 0
            previous = current
            return true
        }

        private var isKept: Bool {
            mutating get {
                if place <= flagEnd { return true }
                let (scalar, following) = (current, place < scalars.count ? scalars[place] : nil)
                if scalar == "\u{1F3F4}" { flagEnd = endOfFlag() }
                switch scalar.properties.generalCategory {
                case .control, .lineSeparator, .paragraphSeparator, .surrogate: return false
                default: break
                }
                if scalar == "\u{200C}" || scalar == "\u{200D}" { return joins(scalar, following) }
                if scalar.properties.isDefaultIgnorableCodePoint,
                    !scalar.properties.isVariationSelector
                {
                    return false
                }
                if scalar.properties.generalCategory == .format
                    || scalar.properties.isNoncharacterCodePoint
                {
                    return false
                }
                if scalar.isPrepended { return following?.isPlainLetter ?? false }
                return !scalar.isMark
                    || marks < PersonText.mostMarks && (previous?.carriesMarks ?? false)
            }
        }

        /// Whether a joiner is between letters, or within an emoji.
        private func joins(_ joiner: Unicode.Scalar, _ following: Unicode.Scalar?) -> Bool {
            guard let previous, let following else { return false }
            if previous.isLetter || previous.isMark, following.isPlainLetter { return true }
            return joiner == "\u{200D}" && (previous.isPictograph || previous.isMark)
                && following.isPictograph
        }

        /// The position of the last tag of a flag such as Scotland's; 0 if no flag begins here.
        private func endOfFlag() -> Int {
            let tags = scalars[place...].prefix {
                (0xE0030...0xE0039).contains($0.value) || (0xE0061...0xE007A).contains($0.value)
            }
            let end = place + tags.count
            guard (1...6).contains(tags.count), end < scalars.count, scalars[end].value == 0xE007F
            else { return 0 }
            return end + 1
        }
    }
}

/// Identifiers: local parts, domains, and other text that programs compare. Two identifiers that
/// look the same must be the same.
package enum IdentifierText {
    /// Whether every scalar is visible, and every mark follows a letter or digit.
    package static func isPlain(_ text: String) -> Bool {
        var previous: Unicode.Scalar?
        return text.unicodeScalars.allSatisfy { scalar in
            defer { previous = scalar }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: return false
            default: break
            }
            guard !scalar.properties.isDefaultIgnorableCodePoint, !scalar.isPrepended,
                !scalar.properties.isNoncharacterCodePoint
            else { return false }
            return !scalar.isMark
                || previous.map { $0.isLetter || $0.isMark || $0.properties.numericType != nil }
                    ?? false
        }
    }
}

extension Unicode.Scalar {
    fileprivate var isLetter: Bool {
        switch properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter:
            true
        default: false
        }
    }

    /// A letter that can be in a text before any scalar. Fillers are letters that are invisible.
    fileprivate var isPlainLetter: Bool {
        isLetter && !isPrepended && !properties.isDefaultIgnorableCodePoint
    }

    /// A scalar that extends the one before it (`Grapheme_Extend`), or is drawn with it.
    fileprivate var isMark: Bool {
        switch properties.generalCategory {
        case .nonspacingMark, .spacingMark, .enclosingMark: true
        default: false
        }
    }

    /// Beyond ASCII and Latin-1, whose digits are emoji too.
    fileprivate var isPictograph: Bool {
        value > 0xFF && (properties.isEmoji || properties.isEmojiModifier)
    }

    fileprivate var carriesMarks: Bool {
        if isLetter || isMark || isPictograph { return true }
        switch properties.generalCategory {
        case .decimalNumber, .letterNumber, .otherNumber, .otherSymbol: return true
        // Parts of keycaps, and joiners.
        default: return self == "#" || self == "*" || self == "\u{200C}" || self == "\u{200D}"
        }
    }

    /// Letters that join the following ones to themselves (`Grapheme_Cluster_Break=Prepend`,
    /// without the invisible signs).
    fileprivate var isPrepended: Bool {
        switch value {
        case 0x0D4E, 0x111C2...0x111C3, 0x113D1, 0x1193F, 0x11941, 0x11A3A, 0x11A84...0x11A89,
            0x11D46, 0x11F02:
            true
        default: false
        }
    }
}
