// Decides when a local part alone, without its domain, reveals the inbox.

/// How the bare local part of an inbox is searched for. Letters that can be pronounced are a word
/// or a name, and stay: *market*, *berlin*, *michael*. A local part with a digit or a separator, or
/// one that cannot be pronounced, is distinctive and is hidden.
package enum LocalPartGuard: Sendable, Hashable {
    /// Not searched for: short, or letters that are a word or a name.
    case none
    /// Hidden as a whole word in any letter case.
    case word
    /// Random, or made by a program: hidden at every occurrence, even inside longer words.
    case anywhere

    /// Minimum octets of a bare local part that is searched for. Shorter ones occur in too many
    /// words and numbers.
    package static let minimumLength = 6

    /// - Parameter local: lower case.
    package init(_ local: [UInt8]) {
        guard local.count >= Self.minimumLength else {
            self = .none
            return
        }
        let letters = local.count { $0.isASCIILetter || $0 >= 0x80 }
        let digits = local.count(where: \.isASCIIDigit)
        if letters == local.count {
            self = Self.isPronounceable(local) ? .none : .word
        } else {
            self = letters >= 3 && digits >= 2 && local.count >= 8 ? .anywhere : .word
        }
    }

    /// This many consonants in a row cannot be pronounced. Letters of one sound count once:
    /// *Marktstrasse* has five.
    private static let unspeakable = 6
    /// Letters that form one sound in the languages of Europe, longest first.
    private static let sounds = [
        "tsch", "tch", "sch", "ch", "ck", "gh", "ng", "ph", "sh", "sp", "st", "th", "ts", "tz",
    ].map {
        Array($0.utf8)
    }

    /// Whether letters have a vowel, and not more consonants in a row than words of several
    /// languages have.
    private static func isPronounceable(_ letters: [UInt8]) -> Bool {
        var consonants = 0
        var hasVowel = false
        var index = 0
        while index < letters.count {
            if "aeiouy".utf8.contains(letters[index]) || letters[index] >= 0x80 {
                hasVowel = true
                consonants = 0
                index += 1
            } else {
                consonants += 1
                if consonants == unspeakable { return false }
                index += sounds.first { letters[index...].starts(with: $0) }?.count ?? 1
            }
        }
        return hasVowel
    }
}
