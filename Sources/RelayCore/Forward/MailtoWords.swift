// The words that a `mailto:` link puts into a new message. They return to the team as the user's
// own. So a team could write guesses of the inbox there, and learn from one click which guess was
// right.

import InternetMessage
import Support

/// Changes the subject and the body in `mailto:` URIs of a forward.
struct MailtoWords {
    /// The one address that stays in them.
    let relayAddress: AddrSpec
    /// Whether a body of plain words stays: only if the team's program may need it and the field
    /// has no other link.
    var keepsBody = false

    /// Whether a text contains only words of a language, so that no word can be a guess of an
    /// address or a local part. The answer then contains them as if the user had typed them.
    static func isPlain(_ text: [UInt8]) -> Bool {
        text.split { $0 <= 0x20 }.allSatisfy { word in
            let word = word.map(\.asciiLowercased)
            let letters =
                word.last.map { ".,!?:;".utf8.contains($0) } == true ? word.dropLast() : word[...]
            return letters.allSatisfy(\.isASCIILetter) && LocalPartGuard(Array(letters)) == .none
        }
    }

    private static let replacement = "[address]".unicodeScalars
    private static let delimiters = "<>()[]{}\",;".unicodeScalars
    private static let sentenceEnds = ".!?:'".unicodeScalars
    /// In lower case: `@`, its wide forms, and how it is written in other encodings.
    private static let signs = [
        "@", "\u{FF20}", "\u{FE6B}", "%40", "=40", "&#64", "&#x40", "&commat", "\\u0040",
    ].map {
        Array($0.utf8)
    }

    /// The text without any address except the relay address; nil if nothing changes.
    /// - Parameter text: percent-decoded.
    func neutral(_ text: [UInt8]) -> [UInt8]? {
        var output = String.UnicodeScalarView()
        var word = String.UnicodeScalarView()
        var isChanged = false
        func end() {
            if holdsAddress(word) {
                output += Self.replacement
                isChanged = true
            } else {
                output += word
            }
            word = String.UnicodeScalarView()
        }
        for scalar in EncodedWord.decode(text[...]).unicodeScalars {
            if scalar.properties.isWhitespace || Self.delimiters.contains(scalar) {
                end()
                output.append(scalar)
            } else {
                word.append(scalar)
            }
        }
        end()
        return isChanged ? Array(String(output).utf8) : nil
    }

    private func holdsAddress(_ word: String.UnicodeScalarView) -> Bool {
        let octets = String(word).utf8.map(\.asciiLowercased)
        guard Self.signs.contains(where: { octets.holds($0) }) else { return false }
        var bare = word
        while let last = bare.last, Self.sentenceEnds.contains(last) { bare.removeLast() }
        return !String(bare).utf8.equalsIgnoringASCIICase(relayAddress.wireForm.utf8)
    }
}

extension [UInt8] {
    fileprivate func holds(_ word: [UInt8]) -> Bool {
        count >= word.count
            && (0...(count - word.count)).contains { self[$0...].starts(with: word) }
    }
}
